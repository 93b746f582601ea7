"""What follows from the nights of a bank: how often they hit each coverage target, and what became of each failure.

It is kept in index.json, since a bank may have a thousand nights.  Nights that are later than all that the file counts
are added to it: those that were killed.  A file that is missing, broken, of another version, or that counts other
nights than the bank's, is made again from the nights.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import msgspec

from ...reports.nights.model import Night, Replay, Status
from ..generate.aims import Learnt
from ..scenario.files import write_whole
from ..scenario.reading import FileError, bytes_of, json_of
from ..search.coverage import from_a_table
from .bank import Bank
from .records import INDEX, LIMIT_BYTES
from .transitions import learn

FORMAT = "cutproof-bank-index/2"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What the nights saw of one failure, until the last that replayed it."""

    status: Status
    runs: int = 0
    """over all nights"""
    violated: int = 0
    held: int = 0
    """`Replay.held` over the nights since it was violated the last time"""
    fixed: bool = False
    """the last night that could tell found it fixed"""


class Index(msgspec.Struct, kw_only=True):
    format: str = FORMAT
    nights: dict[str, tuple[int, int]] = {}
    """the nights that it counts, each with its number of scenarios and of replays"""
    scenarios: dict[str, int] = {}
    """by subject, over all nights"""
    hits: dict[str, dict[str, int]] = {}
    """by subject, and by coverage target in words"""
    learnt: dict[str, Learnt] = {}
    """by subject: with which features the transitions of its protocol's tables were taken"""
    standings: dict[str, Standing] = {}
    """by failure"""

    def add(self, night: Night) -> None:
        """Count a night, later than all before."""
        self.nights[night.id] = _state(night)
        for one in night.subjects:
            self.scenarios[one.subject] = self.scenarios.get(one.subject, 0) + one.scenarios.run
            hits = self.hits.setdefault(one.subject, {})
            for words, count in (*from_a_table(one.targets), *one.hits.items()):
                hits[words] = hits.get(words, 0) + count
            learn(self.learnt.setdefault(one.subject, Learnt()), one)
        for replay in night.replays:
            self.standings[replay.failure] = _after(self.standings.get(replay.failure), replay)


def index_of(bank: Bank) -> Index:
    """The index of a bank's nights, as far as possible from its file."""
    path = bank.path / INDEX
    nights = bank.nights
    with contextlib.suppress(FileError, msgspec.DecodeError, RecursionError):
        found = msgspec.json.decode(json_of(bytes_of(path, LIMIT_BYTES), str(path)), type=Index)
        counted = len(found.nights)
        if found.format == FORMAT and found.nights == {night.id: _state(night) for night in nights[:counted]}:
            return with_nights(found, nights[counted:])
    return made(nights)


def made(nights: Iterable[Night]) -> Index:
    """The index of nights in their order."""
    return with_nights(Index(), nights)


def with_nights(index: Index, nights: Iterable[Night]) -> Index:
    """The index with later nights, in their order."""
    for night in nights:
        index.add(night)
    return index


def write_index(bank: Bank) -> Index:
    """Write the index, with every night of the bank, and return it; a bank without its file is as good."""
    index = index_of(bank)
    with contextlib.suppress(OSError):
        write_whole(bank.path / INDEX, msgspec.json.encode(index))
    return index


def _state(night: Night) -> tuple[int, int]:
    return sum(one.scenarios.run for one in night.subjects), len(night.replays)


def _after(before: Standing | None, replay: Replay) -> Standing:
    return Standing(
        status=replay.status,
        runs=(before.runs if before else 0) + replay.runs,
        violated=(before.violated if before else 0) + replay.violated,
        held=0 if replay.violated else (before.held if before else 0) + replay.held,
        fixed=replay.status == "fixed" or (replay.status == "not_reached" and before is not None and before.fixed),
    )
