"""Two banks become one: machines that worked in parallel, or a cache restored from yesterday.

Merging takes the files of both.  Of two failures with one id, found by two machines, the one that was found first
stays; of two states of one night, the later one.  Both choices depend on the files alone, so neither the order of
merging nor its repetition makes a difference.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from ...reports.nights.model import Failure, Night
from ..runtime.exit_codes import UsageError
from .bank import Bank, locked
from .contents import Contents, contents_of, demand_bank, digest_of
from .records import FAILURES, LOCK, text_of


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """What a bank got from another one."""

    format: str = "cutproof-merge/1"
    failures: int = 0
    """that it did not have"""
    nights: int = 0
    """that it did not have, or had at an earlier state"""
    remarks: list[str] = []
    """what could not be read, each in one line"""


def merge(into: Path, other: Path) -> Merged:
    """Make the first bank hold what both hold; the other one is only read.

    Raises UsageError if one of them is in use, of a later version, or no bank.
    """
    demand_bank(other)
    if into.exists() and into.samefile(other):
        raise UsageError(f"{into} and {other} are the same folder; name two banks")
    with contextlib.ExitStack() as stack:
        bank = stack.enter_context(Bank(into))
        if (other / LOCK).exists():
            stack.enter_context(locked(other, shared=True))
        theirs = contents_of(other)
        merged = Merged(
            nights=_merge_nights(bank, theirs), failures=_merge_failures(bank, theirs, other), remarks=bank.remarks
        )
        ours = {(one.night, one.name) for one in bank.unshrunk.values()}
        for one in theirs.unshrunk.values():
            if (one.night, one.name) not in ours:
                bank.add_unshrunk(one)
        for broken in theirs.broken:
            bank.put_aside(broken, from_elsewhere=True)
            merged.remarks.append(broken.words)
        return merged


def _merge_failures(bank: Bank, theirs: Contents, other: Path) -> int:
    new = 0
    for failure, found in theirs.failures.items():
        ours, place = bank.failures.get(failure), Path(FAILURES) / failure
        if ours is None or _age(found, other / place) < _age(ours, bank.path / place):
            bank.replace_failure(failure, other / place)
            bank.failures[failure] = found
        new += ours is None
    return new


def _age(failure: Failure, folder: Path) -> tuple[str, str]:
    """What says which of two failures with one id stays: the day on which it was found, then its files."""
    return failure.found.isoformat(), digest_of(folder)


def _merge_nights(bank: Bank, theirs: Contents) -> int:
    taken = 0
    for name, found in theirs.nights.items():
        ours = bank.contents.nights.get(name)
        if ours is None or _state(found) > _state(ours):
            bank.write_night(found, durable=True)
            taken += 1
    return taken


def _state(night: Night) -> tuple[bool, int, int, bytes]:
    """How far a night had gone on: a later state is greater."""
    scenarios = sum(one.scenarios.run for one in night.subjects)
    return night.ended is not None, scenarios, len(night.replays), text_of(night)
