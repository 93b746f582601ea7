"""Records, rows and journal entries as phrases, for the witnesses of violations."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

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


COLUMNS = ("key", "value", "tag", "tag")
"""what the columns of a row are called"""


def columns_of(history: History) -> tuple[str, ...]:
    """What the columns of a history's rows are called; empty for one that is not there."""
    if isinstance(history.columns, msgspec.UnsetType):
        return COLUMNS
    return tuple(history.columns.get(*both) for both in zip(("key", "value", "tag", "tag2"), COLUMNS, strict=True))


def row_in_words(row: Row, columns: tuple[str, ...] = COLUMNS) -> str:
    """The columns of a row; a second tag only if there is one."""
    shown = columns if row[3] else columns[:3]
    return ", ".join(f"{name} {value}" for name, value in zip(shown, row, strict=False) if name)


def change_in_words(expected: Row, committed: Row, columns: tuple[str, ...] = COLUMNS) -> str:
    """A row that has another value than the one that was expected of its key."""
    (key, *others), (there, *_) = columns, expected
    sides = (("expected", expected), ("committed", committed))
    values = ", ".join(f"{side} {row_in_words(row, ('', *others))}" for side, row in sides)
    return f"{key} {there}: {values}"


def why_unapplied(words: str) -> str:
    """Why a fault was not applied, of an entry of `History.unapplied` that says it in brackets, such as "kill-node,
    halfway (its aim was never met)"; else empty."""
    return words.partition(" (")[2].removesuffix(")")


def entry_in_words(entry: JournalEntry) -> str:
    """A journal entry as one short phrase without its empty fields, and without values that its sentence tells."""
    kind = str(type(entry).__struct_config__.tag).replace("-", " ")
    has_sentence = any(hasattr(entry, name) for name in ("reason", "error", "detail"))
    told = ("cause", "struck") if has_sentence else ()
    fields = [
        f"{name} {getattr(entry, name)}"
        for name in entry.__struct_fields__
        if name not in ("order", "at_us", *told) and getattr(entry, name) not in (None, "", False, [])
    ]
    return f"at {entry.at_us} µs: {kind}" + (f" ({', '.join(fields)})" if fields else "")


def journal_until(history: History, order: int | None) -> tuple[str, ...]:
    """The last few journal entries up to an order (None: the end), in words."""
    entries: Iterable[JournalEntry] = history.journal
    fields = [entry_in_words(entry) for entry in entries if order is None or entry.order <= order]
    return tuple(fields[-LIMIT:])
