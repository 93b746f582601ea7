"""Session windows with late records: a fold over partitions sorted by key and place, in Spark's Python workers.

A late record may merge sessions, join one that was emitted, or be dropped because all
have expired.  Which of these happens depends on the records before it, so no window
function of SQL can express it.  The fold is written independently of the engine and of
the quick checker.  Here the sessions of a key are a list in the order of time.  Each
state of a session becomes a row, with the epochs in which the session had this state.

Spark sends this module to the workers as it is, so it must import nothing of this
package.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

FIRED, HELD, LATE = 0, 1, 2
"""The kinds of rows that the fold returns: a session that its watermark emits, if that watermark comes; a session's
state; a session that a late record emits again."""

COLUMNS = {
    "sort": pa.int32(),
    "node": pa.int32(),
    "lineage": pa.int64(),
    "tip": pa.bool_(),
    "lane": pa.int32(),
    "key": pa.int64(),
    "start": pa.int64(),
    "last": pa.int64(),
    "kept": pa.int64(),
    "sum_n": pa.int64(),
    "sum_total": pa.int64(),
    "sum_tags": pa.int64(),
    "origin": pa.int64(),
    "epoch": pa.int32(),
    "until": pa.int32(),
    "place": pa.int64(),
    "attempt": pa.int64(),
}
SCHEMA = pa.schema(list(COLUMNS.items()))
_IN_SPARK = {"int32": "int", "int64": "bigint", "bool": "boolean"}
SPARK_SCHEMA = ", ".join(f"{name} {_IN_SPARK[str(kind)]}" for name, kind in COLUMNS.items())

Taken = dict[str, Any]
"""A record that a window took: its columns by name."""


class Span:
    """A session from `start` to before `end`: its aggregates, and the epoch since which it has had them."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.count = 0
        self.total: int | None = None
        self.tags = 0
        self.origin = 0
        self.epoch = 0
        self.done = False
        """whether it was emitted with these records"""

    def add(self, count: int, total: int | None, tags: int, origin: int) -> None:
        self.count += count
        if total is not None:
            self.total = total if self.total is None else self.total + total
        self.tags += tags
        self.origin = max(self.origin, origin)


def fold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of `COLUMNS` for records; those of a key come together, in the order in which they were taken."""
    group: tuple[Any, ...] | None = None
    spans: list[Span] = []
    before: Taken = {}
    for batch in batches:
        rows: list[tuple[Any, ...]] = []
        for record in batch.to_pylist():
            own = (record["node"], record["lineage"], record["key"])
            if own != group:
                rows.extend(_closed(spans, before))
                group, spans = own, []
            spans = _take(spans, record, rows)
            before = record
        yield _batch(rows)
    yield _batch(_closed(spans, before))


def _take(spans: list[Span], record: Taken, rows: list[tuple[Any, ...]]) -> list[Span]:
    """The sessions after a record; the rows that the record causes are added to `rows`."""
    now, kept, epoch = record["wm"], record["kept"], record["epoch"]
    alive = []
    for span in spans:
        if span.end - 1 <= now and not span.done:
            rows.append(_row(FIRED, span, record, epoch=None))
            span.done = True
        if span.end - 1 + kept > now:
            alive.append(span)
        else:
            rows.append(_row(HELD, span, record, epoch=span.epoch))
    start, end = record["ts"], record["ts"] + record["reach"]
    met = [span for span in alive if span.start < end and span.end > start]
    whole = Span(min([start, *(span.start for span in met)]), max([end, *(span.end for span in met)]))
    if whole.end - 1 + kept <= now:
        return alive
    for span in met:
        whole.add(span.count, span.total, span.tags, span.origin)
        if span.epoch < epoch:
            rows.append(_row(HELD, span, record, epoch=span.epoch, until=epoch))
    whole.add(1, record["value"], record["tag"], record["origin"])
    whole.epoch = epoch
    if whole.end - 1 <= now:
        whole.done = True
        rows.append(_row(LATE, whole, record, epoch=epoch))
    return [span for span in alive if span not in met] + [whole]


def _closed(spans: list[Span], record: Taken) -> list[tuple[Any, ...]]:
    """The rows of a key's sessions after its last record."""
    rows = [_row(FIRED, span, record, epoch=None) for span in spans if not span.done]
    return rows + [_row(HELD, span, record, epoch=span.epoch) for span in spans]


def _row(sort: int, span: Span, record: Taken, *, epoch: int | None, until: int | None = None) -> tuple[Any, ...]:
    sums = (span.start, span.end - 1, record["kept"], span.count, span.total, span.tags, span.origin)
    whose = tuple(record[name] for name in ("node", "lineage", "tip", "lane", "key"))
    return (sort, *whose, *sums, epoch, until, record["place"], record["attempt"])


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [() for _ in COLUMNS]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, COLUMNS.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
