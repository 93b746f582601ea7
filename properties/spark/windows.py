"""The oracle's queries for windows in event time without late data (`late_windows` has the others).

The watermarks at the cuts follow from the records themselves: the least one of all
splits that feed a window.  A pane is emitted in the epoch of the first cut whose
watermark has reached the window's last event time.  The pane is held until the epoch
of the first cut whose watermark is further by the window's lateness.

Sessions are islands of records: each record comes less than the gap after the previous
record.  At a cut, the state holds the islands of the records up to that cut.  So each
record of a session is processed once for each cut at which the session is held.
"""

from __future__ import annotations

from ..model.workload import BEGINNING, END_OF_TIME
from .operators import Windowed

FOREVER = (1 << 31) - 1
"""An index greater than that of any cut."""

WINDOW_COLUMNS = ("node", "then", "kind", "p1", "p2", "lateness", "sums")


def marks(records: str) -> str:
    """By window, the watermark at each cut: (cut, time) in the order of the cuts."""
    time = (
        f"case when drained[at] or (bounded and position >= size(tags)) then {END_OF_TIME}L "
        f"when position = 0 then {BEGINNING}L else array_max(slice(times, 1, position)) - delay - 1 end"
    )
    times = f"transform(cuts, (position, at) -> {time})"
    by_split = f"select window, posexplode({times}) as (cut, time) from {records} where window is not null"
    least = f"select window, cut, min(time) as time from ({by_split}) group by window, cut"
    return f"select window, collect_list(struct(cut, time)) as marks from ({least}) group by window"


def first_cut(time: str) -> str:
    """The first cut whose watermark has reached a time; NULL if there is none."""
    return f"array_min(transform(filter(marks, mark -> mark.time >= {time}), mark -> mark.cut))"


def panes(rows: str, records: str, meanings: dict[int, Windowed]) -> str:
    """Rows (`what` 0) and state (`what` 1) of tumbling and sliding windows, with the columns of `_row`."""
    starts = _of_kind({kind: meaning.starts for kind, meaning in meanings.items()})
    last = _of_kind({kind: meaning.last for kind, meaning in meanings.items()})
    value = _of_kind({kind: meaning.value for kind, meaning in meanings.items()})
    tag = _of_kind({kind: meaning.tag for kind, meaning in meanings.items()})
    columns = ", ".join(WINDOW_COLUMNS)
    put = f"select {columns}, key, value, tag, epoch, explode({starts}) as start from {rows} where epoch is not null"
    group = "node, key, start"
    parts = (
        f"select {group}, epoch, {_any(WINDOW_COLUMNS[1:])}, count(*) as n, sum(value) as total, sum(tag) as tags\n"
        f"from ({put}) group by {group}, epoch"
    )
    so_far = f"over (partition by {group} order by epoch rows between unbounded preceding and current row)"
    sums = ", ".join(f"sum({name}) {so_far} as sum_{name}" for name in ("n", "total", "tags"))
    whole = (
        f"select *, {sums}, lead(epoch) over (partition by {group} order by epoch) as next_epoch, {last} as last\n"
        f"from ({parts})"
    )
    timed = (
        f"select *, {value} as a, {tag} as b, {first_cut('last')} as fired, {first_cut('last + lateness')} as gone\n"
        f"from ({whole}) join ({marks(records)}) on node = window"
    )
    fired = "if(next_epoch is null and fired is not null, " + _row("0", "a", "b", "fired", "null") + ", null)"
    held = (
        f"if(coalesce(least(next_epoch, gone), {FOREVER}) > epoch, "
        + _row("1", "state_value", "state_tag", "epoch", "least(next_epoch, gone)")
        + ", null)"
    )
    states = _of_kind({kind: meaning.a for kind, meaning in meanings.items()})
    state_tags = _of_kind({kind: meaning.b for kind, meaning in meanings.items()})
    stated = f"select *, {states} as state_value, {state_tags} as state_tag from ({timed})"
    return _exploded(stated, f"array({fired}, {held})")


def sessions(rows: str, records: str, kind: int, meaning: Windowed) -> str:
    """Rows and state of session windows."""
    columns = ", ".join(WINDOW_COLUMNS)
    taken = f"select {columns}, key, value, tag, ts, epoch from {rows} where epoch is not null and kind = {kind}"
    island = "node, key, island"
    islands = _islands(taken, "node, key", meaning)
    lived = f"select *, max(ts) over (partition by {island}) + p1 - 1 as last from ({islands})"
    timed = (
        f"select *, {first_cut('last')} as fired, {first_cut('last + lateness')} as gone\n"
        f"from ({lived}) join ({marks(records)}) on node = window"
    )
    parts = "min(ts) as start, count(*) as sum_n, sum(value) as sum_total, sum(tag) as sum_tags"
    done = (
        f"select {island}, last, fired, {_any(WINDOW_COLUMNS[1:])}, {parts}\n"
        f"from ({timed}) where fired is not null group by {island}, last, fired"
    )
    emitted = f"select *, {meaning.value} as a, {meaning.tag} as b, 0 as what, fired as until from ({done})"
    at_cuts = (
        f"select {columns}, key, value, tag, ts, explode(sequence(epoch, coalesce(gone, size(marks)) - 1)) as cut\n"
        f"from ({timed}) where coalesce(gone, size(marks)) > epoch"
    )
    again = _islands(at_cuts, "node, key, cut", meaning)
    held = (
        f"select {island}, max(ts) + any_value(p1) - 1 as last, cut as fired, {_any(WINDOW_COLUMNS[1:])}, {parts}\n"
        f"from ({again}) group by {island}, cut"
    )
    states = f"select *, {meaning.a} as a, {meaning.b} as b, 1 as what, fired + 1 as until from ({held})"
    names = "node, key, start, then, last, fired, what, a, b, until"
    both = f"select {names} from ({emitted}) union all select {names} from ({states})"
    made = _row("what", "a", "b", "fired", "if(what = 1, until, null)")
    return _exploded(both, f"array({made})")


def _islands(rows: str, by: str, meaning: Windowed) -> str:
    """The rows numbered by island: a new island begins where the gap after the previous row is too long."""
    order = f"over (partition by {by} order by ts, tag)"
    fresh = f"select *, if({meaning.near.replace('before', f'lag(ts) {order}')}, 0, 1) as fresh from ({rows})"
    frame = f"over (partition by {by} order by ts, tag rows between unbounded preceding and current row)"
    return f"select *, sum(fresh) {frame} as island from ({fresh})"


def _any(names: tuple[str, ...]) -> str:
    return ", ".join(f"any_value({name}) as {name}" for name in names)


def _row(what: str, value: str, tag: str, epoch: str, until: str) -> str:
    """A pane as a row; the order of a key's rows is the order of their windows."""
    columns = {
        "what": f"cast({what} as int)",
        "at": "node",
        "key": "key",
        "value": value,
        "tag": tag,
        "tag2": "start",
        "epoch": f"cast({epoch} as int)",
        "until": f"cast({until} as int)",
        "place": "last",
        "seq": "start",
        "ts": "last",
    }
    return f"struct({', '.join(f'{text} as {name}' for name, text in columns.items())})"


def _exploded(text: str, made: str) -> str:
    return f"select then, made.* from (select then, explode({made}) as made from (\n{text})) where made is not null"


def _of_kind(texts: dict[int, str]) -> str:
    """A CASE over kinds."""
    return f"case {' '.join(f'when kind = {kind} then {text}' for kind, text in texts.items())} end"
