"""The oracle's queries for windows whose records may be late: their rows follow the events of a lineage.

Each record that a window took has the subtask's watermark just before the record (`wm`).
A record that comes after the window's lateness is dropped.  A record that comes after
the window's last event time, within its lateness, emits the window again, with the
record in it.  All other records make the pane: the first advance of the watermark to the
window's last event time emits it.  A cut holds the windows whose lateness had not passed
with an advance of an earlier epoch.

`place` orders the rows that one subtask emits.  A row that comes with a record has twice
the record's place, plus one.  A row that comes before a record has twice its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..model.workload import PANE
from .operators import Windowed
from .session_windows import FIRED, HELD, LATE
from .windows import FOREVER

ADVANCES = "cutproof_advances"
FOLDED = "cutproof_sessions"
"""Names of the temporary views that the queries read."""

TAKEN = ("lane", "wm", "p1", "p2", "lateness", "sums")
"""The columns of a record that a window took, besides those of any row."""

_ORIGIN = f"shiftright(origin, 8) << 8 | {PANE}L"
"""A pane's origin, from the origin of one of its records: without the copy."""

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
    """The records that sessions took, for the fold: those of a key together, in the order in which they were taken."""
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
    """The state, if some cut before the key's next change holds it, and before its window has expired."""
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
    """Keep the rows that an attempt made itself, and the state of the run's lineage."""
    return f"select then, made.* from ({made}) where made is not null and (made.what = 1 or made.attempt = lineage)"
