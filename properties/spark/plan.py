"""The oracle's query: one SQL text for every batch, whatever its workloads are.

A row carries `place` and `seq`, its place in the order of its split (the copies
of a flat map one after the other), and the epoch in which it was made.

The SQL window that computes the rows also computes the state at all cuts: the
entry after a key's last row of an epoch is held from that epoch until the epoch
of the key's next row.  This is an interval of cuts, so records are never
multiplied by cuts.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import late_windows as late
from .operators import Keyed, Meaning, Stateless, Windowed
from .windows import panes, sessions

RECORDS = "cutproof_records"
ROWS = "cutproof_rows"
APPLIES = "cutproof_applies"
"""Names of the temporary views that the queries read; those that both kinds of `Plan` read end with the kind."""

JOINS = ("join", "join-signed")

_VALUES = ("key", "value", "tag", "tag2")
_ROW = ("what", "at", *_VALUES, "epoch", "until", "place", "seq", "ts")
_TRACED = (*_ROW, "origin", "attempt", "nth", "total")
_READER = ("kind", "side", "node", "then")
_LINEAGE = ("lineage", "tip")
"""The columns that an application adds to a row: its lineage, and whether this is the run's lineage."""


class Plan:
    """The queries for one set of meanings; if `traced`, rows carry their origin and follow apply events."""

    def __init__(self, meanings: Mapping[str, Meaning], kinds: Mapping[str, int], traced: bool) -> None:
        self.traced = traced
        self.row = _TRACED if traced else _ROW
        own = "_traced" if traced else ""
        self.records_view, self.rows_view = RECORDS + own, ROWS + own
        self.stateless = {kinds[name]: meaning for name, meaning in meanings.items() if isinstance(meaning, Stateless)}
        self.keyed = {kinds[name]: meaning for name, meaning in meanings.items() if isinstance(meaning, Keyed)}
        self.windows = {kinds[name]: meaning for name, meaning in meanings.items() if isinstance(meaning, Windowed)}
        self.session = kinds["session"]
        self.rules, self.model = kinds["rules"], kinds["model"]
        self.joins = {kind: meaning for kind, meaning in self.keyed.items() if kind in [kinds[one] for one in JOINS]}
        self.is_join = f"kind in ({', '.join(map(str, self.joins))})"
        self.flat_map = kinds["flat-map"]

    def source(self) -> str:
        """The rows of all records after the stateless operators that follow their input."""
        return self.counted(self.steps(self.records(), "steps"))

    def round(self) -> str:
        """The rows that the keyed nodes of one depth emit, and the state that they hold."""
        rows = (
            f"({self.applied((*_READER, 'keeps', 'lane', 'scale'), 'or not traced')})"
            if self.traced
            else self.rows_view
        )
        return self.counted(self.steps(self.emitted(self.window(rows)), "then"))

    def windowed(self) -> str:
        """The rows that the tumbling and sliding windows of one depth emit, and the panes that they hold."""
        fixed = {kind: meaning for kind, meaning in self.windows.items() if kind != self.session}
        if self.traced:
            return self.counted(self.steps(late.panes(self.taken(), fixed, self.row, _choose), "then"))
        rows = f"(select * from {self.rows_view} where kind <> {self.session})"
        return self.steps(panes(rows, self.records_view, fixed), "then")

    def in_sessions(self) -> str:
        """The rows and state of session windows; if they follow apply events, from the fold over the rows of `took`."""
        if self.traced:
            made = late.sessions(self.rows_view, self.windows[self.session], self.row)
            return self.counted(self.steps(made, "then"))
        made = sessions(self.rows_view, self.records_view, self.session, self.windows[self.session])
        return self.steps(made, "then")

    def took(self) -> str:
        """The records that session windows took, for the fold."""
        return late.records(self.taken(), self.windows[self.session])

    def taken(self) -> str:
        """The records that windows took, according to the lineage's apply events."""
        return f"({self.applied((*_READER, *late.TAKEN), '')})"

    def arrivals(self) -> str:
        """The rows that sinks took, according to their apply events."""
        return f"select {self.kept((), {})} from ({self.applied((), '')}) where tip"

    def kept(self, more: tuple[str, ...], replaced: Mapping[str, str]) -> str:
        """The columns of a row and some more, some of them `replaced`."""
        return ", ".join(f"{replaced[name]} as {name}" if name in replaced else name for name in (*self.row, *more))

    def struct(self, columns: Mapping[str, str]) -> str:
        return f"struct({', '.join(f'{columns.get(name, name)} as {name}' for name in self.row)})"

    def records(self) -> str:
        """Each record of each split, in each period; its epoch is the first cut whose position lies above it, and NULL
        if it is of another period."""
        epoch = "cast(nullif(array_position(transform(cuts, cut -> cut > ordinal), true), 0) - 1 as int)"
        columns = {
            "what": "0",
            "key": "record.keys",
            "value": "record.values",
            "tag": "record.tags",
            "tag2": "0L",
            "epoch": f"if({epoch} between first and last, {epoch}, null)",
            "until": "cast(null as int)",
            "place": "split << 32 | ordinal",
            "seq": "0L",
            "ts": "record.times",
            "origin": "(split << 32 | ordinal) << 8",
            "attempt": "cast(null as bigint)",
            "nth": "1L",
            "total": "1L",
        }
        condition = "" if self.traced else " where epoch is not null"
        arrays = "arrays_zip(keys, values, tags, times)"
        exploded = f"select *, posexplode({arrays}) as (ordinal, record) from {self.records_view}"
        return f"(select * from (select {self.kept(('steps',), columns)} from ({exploded})){condition})"

    def steps(self, text: str, steps: str) -> str:
        """The rows of a stream after all its stateless operators, which make zero, one or several rows of each row."""
        whole = {"key": "row.key", "value": "row.value", "seq": "row.seq", "origin": "row.origin"}
        names = [name for name in whole if name in self.row]
        flat = f"step.kind = {self.flat_map}"
        after = {
            "key": _choose("step.kind", {kind: meaning.key for kind, meaning in self.stateless.items()}),
            "value": _choose("step.kind", {kind: meaning.value for kind, meaning in self.stateless.items()}),
            "seq": f"if({flat}, row.seq << 8 | copy, row.seq)",
            "origin": f"if({flat}, shiftright(row.origin, 8) << 8 | copy, row.origin)",
        }
        copies = _choose("step.kind", {kind: meaning.copies for kind, meaning in self.stateless.items()})
        made = f"struct({', '.join(f'{after[name]} as {name}' for name in names)})"
        one = f"array(struct({', '.join(names)}))"
        fold = (
            f"aggregate({steps}, {one}, (rows, step) -> flatten(transform(rows, row ->\n"
            f"    transform(filter(sequence(0L, {copies}), copy -> copy < {copies}), copy -> {made}))))"
        )
        done = f"if(what = 0 and size({steps}) > 0, {fold}, {one})"
        columns = {name: whole[name] for name in names}
        return f"select {self.kept((), columns)} from (\nselect *, explode({done}) as row from (\n{text}))"

    def applied(self, more: tuple[str, ...], others: str) -> str:
        """Rows with the order, epoch and repeats that their readers' applications have.

        The n-th row that an attempt made of an origin is the n-th one taken.  If
        more rows were taken than made, each of the others is the last row again.
        """
        columns = {
            "epoch": "if(to_node is null, epoch, to_epoch)",
            "place": "coalesce(to_place, place)",
            "seq": "if(to_node is null, seq, 0L)",
            "attempt": "coalesce(to_attempt, attempt)",
            "lineage": "to_lineage",
            "tip": "coalesce(to_tip, true)",
            "ts": "coalesce(to_moment, ts)",
            "lane": "to_lane",
            "wm": "to_wm",
            "scale": "coalesce(to_scale, 1L)",
        }
        return (
            f"select {self.kept((*more, *_LINEAGE), columns)} from {self.rows_view} left join {APPLIES}\n"
            "  on node = to_node and origin = to_origin and (attempt is null or attempt = to_maker)\n"
            "    and (nth = to_nth or (nth = total and to_nth > total))\n"
            f"  where to_node is not null {others}"
        )

    def counted(self, text: str) -> str:
        """The rows, numbered within each origin and attempt: the number identifies a row."""
        if not self.traced:
            return text
        group = "partition by what, at, attempt, origin"
        columns = {"nth": f"cast(row_number() over ({group} order by place, seq) as bigint)"}
        columns["total"] = f"count(*) over ({group})"
        return f"select {self.kept((), columns)} from (\n{text})"

    def window(self, rows: str) -> str:
        """The columns that a keyed meaning may read; every frame is a ROWS frame, never a RANGE frame."""
        key = f"partition by keeps, {'lineage, lane, ' if self.traced else ''}key order by epoch, place, seq"
        so_far = f"over ({key} rows between unbounded preceding and current row)"
        whole = f"over ({key} rows between unbounded preceding and unbounded following)"
        learnt = f"collect_list(if(kind = {self.model}, value, null)) {so_far}"
        other = ", ".join(name for name in ("value", "tag", "epoch", "place", "origin", "attempt") if name in self.row)
        columns = [
            *(() if self.traced else ("1L as scale",)),
            f"row_number() over ({key}) as n",
            f"lead(epoch) over ({key}) as next_epoch",
            f"lag(value) over ({key}) as before",
            f"sum(value) {so_far} as sum_value",
            f"sum(tag) {so_far} as sum_tag",
            "if(tag < 0, -1L, 1L) as sign",
            f"sum(if(tag < 0, -1L, 1L)) {so_far} as net",
            f"sum(if(tag < 0, -1L, 1L) * coalesce(value, 0L)) {so_far} as net_value",
            f"max(if(kind = {self.rules} and side = 1, struct(tag, value), null)) {so_far} as rule",
            f"count(value) {so_far} as learnt",
            f"aggregate({learnt}, 0L, (level, value) -> level + shiftright(value - level, 2)) as level",
            f"collect_list(if({self.is_join} and side = 1, struct({other}), null)) {whole} as others",
        ]
        return (
            f"select *, {', '.join(columns)}\nfrom {rows}\n"
            f"where epoch is not null and (not {self.is_join} or key is not null)"
        )

    def emitted(self, text: str) -> str:
        """The rows emitted for each row, and the state held after it."""
        without_joins = {kind: meaning for kind, meaning in self.keyed.items() if kind not in self.joins}
        columns = {
            name: _choose("kind", {kind: getattr(meaning, name) for kind, meaning in without_joins.items()})
            for name in _VALUES
        }
        changes = {kind: meaning.takes_back != "false" for kind, meaning in without_joins.items()}
        columns |= {
            "at": "node",
            "seq": _choose("kind", {kind: "seq << 1 | 1" if changes[kind] else "seq" for kind in without_joins}),
        }
        emits = _choose("kind", {kind: meaning.emits for kind, meaning in without_joins.items()})
        made = f"array({self.taken_back(without_joins)}, if({emits}, {self.struct(columns)}, null), {self.state()})"
        made = f"if({self.is_join}, concat({self.pairs()}, array({self.state()})),\n  {made})"
        lineage = ", lineage, tip" if self.traced else ""
        text = f"select then{lineage}, explode({made}) as made from (\n{text})"
        # Keep the rows that an attempt made itself, and the state of the run's lineage.
        own = "and if(made.what = 1, tip, lineage is null or made.attempt = lineage)" if self.traced else ""
        return f"select then, made.* from (\n{text})\nwhere made is not null {own}"

    def taken_back(self, meanings: Mapping[int, Keyed]) -> str:
        """The retraction that is emitted before the new row."""
        columns = {
            "at": "node",
            "value": _choose("kind", {kind: meaning.old_value for kind, meaning in meanings.items()}),
            "tag": _choose("kind", {kind: meaning.old_tag for kind, meaning in meanings.items()}),
            "tag2": "0L",
            "seq": "seq << 1",
        }
        when = _choose("kind", {kind: meaning.takes_back for kind, meaning in meanings.items()})
        return f"if({when}, {self.struct(columns)}, null)"

    def state(self) -> str:
        """The entry that the state holds after this row: for a join for ever, else if the row is its epoch's last."""
        columns = {
            "what": "1",
            "at": "node",
            "value": _choose("kind", {kind: meaning.a for kind, meaning in self.keyed.items()}),
            "tag": _choose("kind", {kind: meaning.b for kind, meaning in self.keyed.items()}),
            "tag2": f"if({self.is_join}, cast(side as bigint), 0L)",
            "until": f"if({self.is_join}, null, next_epoch)",
            "origin": "cast(null as bigint)",
        }
        holds = _choose("kind", {kind: meaning.holds for kind, meaning in self.keyed.items()})
        held = f"({self.is_join} or next_epoch is null or next_epoch > epoch) and ({holds})"
        return f"if({held},\n    {self.struct(columns)}, null)"

    def pairs(self) -> str:
        """A left row with each right row of its key; a pair is emitted when the later of the two rows is taken."""
        columns = {
            name: _choose("kind", {kind: getattr(meaning, name) for kind, meaning in self.joins.items()})
            for name in _VALUES
        } | {
            "at": "node",
            "epoch": "greatest(epoch, pair.epoch)",
            "place": "greatest(place, pair.place)",
            "seq": "least(place, pair.place)",
            "origin": "if(pair.place > place, pair.origin, origin)",
            "attempt": "if(pair.place > place, pair.attempt, attempt)",
        }
        return f"if(side = 0, transform(others, pair -> {self.struct(columns)}), array())"


def _choose(by: str, texts: Mapping[int, str]) -> str:
    """A CASE over kinds; the most frequent text is the ELSE."""
    kinds: dict[str, list[int]] = {}
    for kind, text in texts.items():
        kinds.setdefault(text, []).append(kind)
    rest = max(kinds, key=lambda text: len(kinds[text]))
    cases = [f"when {by} in ({str(numbers)[1:-1]}) then {text}" for text, numbers in kinds.items() if text != rest]
    return f"case {' '.join(cases)} else {rest} end" if cases else rest
