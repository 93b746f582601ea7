"""The oracle's queries for windows whose records may be late: their rows follow the events of a lineage.

Each record that a window took has the watermark of its subtask just before (`wm`).  A
record that comes when the window is past its lateness is dropped.  A record that comes
behind the window's last moment emits the window again, as it then is.  All other records
make the pane that the first advance to that moment emits.  A cut holds the windows that
no advance of an earlier epoch has put past their lateness.

`place` of a row orders the rows that one subtask emits: twice that of the record it came
with, plus one, or twice that of the record it came before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..model.workload import PANE
from .operators import Windowed
from .sessions import FIRED, HELD, LATE
from .windows import FOREVER

ADVANCES = "cutproof_advances"
FOLDED = "cutproof_sessions"
"""Names of the temporary views that the queries read."""

TAKEN = ("lane", "wm", "p1", "p2", "lateness", "sums")
"""What is known of a record that a window took, besides what is known of any."""

_ORIGIN = f"shiftright(origin, 8) << 8 | {PANE}L"
"""Of a pane, by that of one of its records: the copy left out."""

Choose = Callable[[str, Mapping[int, str]], str]


def panes(rows: str, meanings: Mapping[int, Windowed], names: Sequence[str], choose: Choose) -> str:
    """Rows (`what` 0) and state (`what` 1) of tumbling and sliding windows; `names` are the columns of a row."""

    def text(of: Callable[[Windowed], str]) -> str:
        return choose("kind", {kind: of(meaning) for kind, meaning in meanings.items()})

    put = f"select *, explode({text(lambda one: one.starts)}) as start from {rows}"
    ended = f"select *, {text(lambda one: one.last)} as last, {text(lambda one: one.kept)} as kept from ({put})"
    taken = f"select *, wm >= last as late from ({ended}) where wm < last + kept"
    window = "partition by node, lineage, key, start order by place"
    so_far = f"over ({window} rows between unbounded preceding and current row)"
    summed = (
        f"select *, count(*) {so_far} as sum_n, sum(value) {so_far} as sum_total, sum(tag) {so_far} as sum_tags,\n"
        f"  max({_ORIGIN}) {so_far} as pane, lead(late) over ({window}) as next_late,\n"
        f"  lead(epoch) over ({window}) as next_epoch\nfrom ({taken})"
    )
    value, tag = text(lambda one: one.value), text(lambda one: one.tag)
    a, b = text(lambda one: one.a), text(lambda one: one.b)
    valued = f"select *, {value} as row_value, {tag} as row_tag, {a} as held_value, {b} as held_tag from ({summed})"
    moments = _with_advances(valued)
    fired = "not late and coalesce(next_late, true) and fired.at_time is not null"
    made = (
        f"if({fired}, {_fired(names)}, null)",
        f"if(late, {_late(names)}, null)",
        _if_held("next_epoch", names),
    )
    return _kept(f"select then, lineage, explode(array({', '.join(made)})) as made from {moments}")


def records(rows: str, meaning: Windowed) -> str:
    """What sessions took, for the fold: the records of a key together, in the order they were taken."""
    return (
        f"select node, lineage, tip, lane, key, value, tag, ts, wm, epoch, place, attempt, {_ORIGIN} as origin,\n"
        f"  {meaning.reach} as reach, {meaning.kept} as kept\nfrom {rows}\n"
        "distribute by node, lineage, key sort by node, lineage, key, place"
    )


def sessions(rows: str, meaning: Windowed, names: Sequence[str]) -> str:
    """Rows and state of sessions, from the result of the fold over their records."""
    whose = f"select node as of, any_value(then) as then, any_value(sums) as sums from {rows} group by node"
    valued = (
        f"select *, origin as pane, {meaning.value} as row_value, {meaning.tag} as row_tag,\n"
        f"  {meaning.a} as held_value, {meaning.b} as held_tag from {FOLDED} join ({whose}) on node = of"
    )
    made = (
        f"if(sort = {FIRED} and fired.at_time is not null, {_fired(names)}, null)",
        f"if(sort = {LATE}, {_late(names)}, null)",
        f"if(sort = {HELD}, {_if_held('until', names)}, null)",
    )
    return _kept(f"select then, lineage, explode(array({', '.join(made)})) as made from {_with_advances(valued)}")


def _with_advances(rows: str) -> str:
    """Rows with the advance that emits their window, `fired`, and the advance that ends its lateness, `gone`."""
    joins = (
        f"left join {ADVANCES} {name} on {name}.at_node = node and {name}.at_lineage = lineage\n"
        f"  and {name}.at_lane = lane and {name}.at_before < {time} and {time} <= {name}.at_time"
        for name, time in (("fired", "last"), ("gone", "last + kept"))
    )
    return f"({rows})\n" + "\n".join(joins)


def _fired(names: Sequence[str]) -> str:
    return _struct(names, {"epoch": "fired.at_epoch", "place": "2 * fired.at_place", "attempt": "fired.at_attempt"})


def _late(names: Sequence[str]) -> str:
    return _struct(names, {"epoch": "epoch", "place": "2 * place + 1", "attempt": "attempt"})


def _if_held(next_epoch: str, names: Sequence[str]) -> str:
    """State, if it is held at some cut before the key's next change and before its window has expired."""
    until = f"least({next_epoch}, gone.at_epoch)"
    return f"if(tip and coalesce({until}, {FOREVER}) > epoch,\n  {_held(names, until)}, null)"


def _held(names: Sequence[str], until: str) -> str:
    held = {"what": "1", "value": "held_value", "tag": "held_tag", "epoch": "epoch", "until": f"cast({until} as int)"}
    return _struct(names, held | {"place": "place", "attempt": "attempt"})


def _struct(names: Sequence[str], own: dict[str, str]) -> str:
    """A row of a window, its columns in the order of `names`."""
    columns = {
        "what": "0",
        "at": "node",
        "key": "key",
        "value": "row_value",
        "tag": "row_tag",
        "tag2": "start",
        "until": "cast(null as int)",
        "seq": "start",
        "ts": "last",
        "origin": "pane",
        "nth": "1L",
        "total": "1L",
    } | own
    return f"struct({', '.join(f'{columns[name]} as {name}' for name in names)})"


def _kept(made: str) -> str:
    """An attempt sends what it made itself, and the run's lineage is the one whose state is asked for."""
    return f"select then, made.* from ({made}) where made is not null and (made.what = 1 or made.attempt = lineage)"
