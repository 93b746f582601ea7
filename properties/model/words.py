"""Records, rows and journal entries as phrases, for the witnesses of violations."""

from __future__ import annotations

from collections.abc import Iterable

from .history import History, JournalEntry
from .workload import Row, Workload, copy_of, is_pane, offset_of, split_of

LIMIT = 8
"""How many records or events a witness names."""


def plural(number: int, noun: str) -> str:
    """ "1 record", "2 records", "1,000 recoveries"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def record_in_words(workload: Workload, origin: int) -> str:
    """An input record by its place, with its tag if the workload has the record."""
    split, offset, copy = split_of(origin), offset_of(origin), copy_of(origin)
    place = f"record {offset} of split {split}" + (f", copy {copy}" if copy else "")
    place = f"the window of {place}" if is_pane(origin) else place
    for number, _, records in workload.splits():
        if number == split and offset < len(records):
            return f"{place} (tag {records[offset][2]})"
    return place


def row_in_words(row: Row) -> str:
    key, value, tag, tag2 = row
    return f"key {key}, value {value}, tag {tag}" + (f", tag {tag2}" if tag2 else "")


def why_unapplied(words: str) -> str:
    """Why a fault was not applied, of an entry of `History.unapplied` that says it in brackets, such as "kill-node,
    halfway (its aim was never met)"; else empty."""
    return words.partition(" (")[2].removesuffix(")")


def entry_in_words(entry: JournalEntry) -> str:
    """A journal entry as one short phrase without its empty fields."""
    kind = str(type(entry).__struct_config__.tag).replace("-", " ")
    fields = [
        f"{name} {getattr(entry, name)}"
        for name in entry.__struct_fields__
        if name not in ("order", "at_us") and getattr(entry, name) not in (None, "", False, [])
    ]
    return f"at {entry.at_us} µs: {kind}" + (f" ({', '.join(fields)})" if fields else "")


def journal_until(history: History, order: int | None) -> tuple[str, ...]:
    """The last few journal entries up to an order (None: the end), in words."""
    entries: Iterable[JournalEntry] = history.journal
    fields = [entry_in_words(entry) for entry in entries if order is None or entry.order <= order]
    return tuple(fields[-LIMIT:])
