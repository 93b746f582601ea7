"""The record of a night while it goes on: written again after each replay and each chunk of scenarios."""

from __future__ import annotations

import datetime
import os
import platform
import secrets
from collections.abc import Iterable

from msgspec.structs import replace

from ...reports.nights.model import Night, Replay, SubjectNight
from .bank import Bank


class NightLog:
    """A night of a bank."""

    def __init__(
        self,
        bank: Bank,
        *,
        version: str,
        budget_s: float,
        master: str | None = None,
        now: datetime.datetime | None = None,
    ) -> None:
        """Begin a night, and write it; `now` is the time in UTC, as a test sets it."""
        self._bank = bank
        began = now or datetime.datetime.now(tz=datetime.UTC)
        last = bank.nights[-1] if bank.nights else None
        order = int(began.timestamp() * 1000)
        words = list(bank.remarks)
        if last is None:
            words.append("the bank has no earlier night, so whatever fails is new")
        self.went_back = last is not None and began < last.began
        """the machine's clock shows an earlier time than the night before"""
        if last is not None and self.went_back:
            words.append(f"the clock went back: the night before began at {last.began:%Y-%m-%d %H:%M} UTC")
        self.night = Night(
            id=f"{began:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
            order=max(order, last.order + 1) if last is not None else order,
            began=began,
            version=version,
            machine=_machine(master),
            budget_s=budget_s,
            words=words,
            put_aside=len(bank.remarks),
        )
        self.today = max(began, last.began).date() if last is not None else began.date()
        """the day by which known failures expire: a clock that went back revives none"""
        self._written = False
        self.write()

    @property
    def replays(self) -> dict[str, Replay]:
        """By failure."""
        return {one.failure: one for one in self.night.replays}

    def write(self) -> None:
        self._bank.write_night(self.night)

    def set_subject(self, place: int, one: SubjectNight) -> None:
        """Set the record of a subject, the `place`-th of the night, without writing it."""
        subjects = list(self.night.subjects)
        subjects[place:] = [one]
        self.night = replace(self.night, subjects=subjects)

    def add_replay(self, one: Replay) -> None:
        """Set what the night saw of a failure, in place of what it saw before."""
        others = [other for other in self.night.replays if other.failure != one.failure]
        self.night = replace(self.night, replays=[*others, one])
        self.write()

    def add_words(self, words: Iterable[str]) -> None:
        known = self.night.words
        self.night = replace(self.night, words=[*known, *(one for one in words if one not in known)])

    def change(self, **changes: object) -> None:
        """Change other fields, without writing them."""
        self.night = replace(self.night, **changes)

    def end(self, exit_code: int, *, left: int, now: datetime.datetime | None = None) -> None:
        """End the night; `left` failing scenarios are left to the next one."""
        ended = now or datetime.datetime.now(tz=datetime.UTC)
        self.night = replace(self.night, ended=ended, exit_code=exit_code, unshrunk=left)
        self._bank.write_night(self.night, durable=True)


def _machine(master: str | None) -> str:
    here = f"{platform.node() or 'a machine without a name'}, {os.cpu_count() or 1} cores"
    return here if master is None else f"{here}; scenarios on {master}"
