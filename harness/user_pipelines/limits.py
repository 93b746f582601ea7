"""The numbers of a pipeline's file within their limits, and names that only one column may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .description import RECORD, ROW, PipelineFile, Program

HOUR_MS = 3_600_000
DAY_S = 86_400
MOST = 2**53
"""up to here every reader of JSON keeps a whole number"""


class Limit(NamedTuple):
    """What a number may be; both limits are allowed, and not a number is not."""

    least: float
    most: float

    @property
    def in_words(self) -> str:
        return f"it has to be a number from {self.least:,} to {self.most:,}"

    def allows(self, value: float) -> bool:
        return self.least <= value <= self.most


def number_problems(file: PipelineFile) -> list[str]:
    """Each number that is out of its limits, in words."""
    return [
        f"{where}: it is {value}; {limit.in_words}" for where, value, limit in _numbers(file) if not limit.allows(value)
    ]


def _numbers(file: PipelineFile) -> Iterator[tuple[str, float, Limit]]:
    yield "keys", file.keys, Limit(1, 1_000_000)
    yield "values", file.values, Limit(0, 1_000_000_000)
    yield "run.timeout_s", file.run.timeout_s, Limit(0.1, DAY_S)
    yield "run.settle_s", file.run.settle_s, Limit(0, DAY_S)
    yield "feed.records_per_file", file.feed.records_per_file, Limit(1, 1_000_000)
    yield "feed.every_ms", file.feed.every_ms, Limit(0, HOUR_MS)
    for name, value in file.feed.last_record.items():
        yield f"feed.last_record.{name}", value, Limit(-MOST, MOST)
    yield "read.every_ms", file.read.every_ms, Limit(0, HOUR_MS)
    yield "computes.delay", file.computes.delay, Limit(0, MOST)
    yield from _of_process("run", file.run)
    for name, role in file.roles.items():
        yield f"roles.{name}.ready_within_s", role.ready_within_s, Limit(0.1, DAY_S)
        yield from _of_process(f"roles.{name}", role)
    for number in file.commands.parallelism:
        yield "commands.parallelism", number, Limit(1, 1_000)


def _of_process(where: str, process: Program) -> Iterator[tuple[str, float, Limit]]:
    yield f"{where}.restart_after_ms", process.restart_after_ms, Limit(0, HOUR_MS)
    for pause in process.paused_for_ms:
        yield f"{where}.paused_for_ms", pause, Limit(1, HOUR_MS)


def pause_problems(programs: Sequence[tuple[str, Program]]) -> list[str]:
    """Processes that are paused, and nothing says for how long."""
    return [
        f"{where}.paused_for_ms is empty: it has to have a number of milliseconds"
        for where, process in programs
        if not process.paused_for_ms
    ]


def column_problems(file: PipelineFile) -> list[str]:
    """Columns of a record, or of a row, that have one name."""
    return [
        f"{where}: {one} and {other} have the name {name!r}; give each column a name of its own"
        for where, columns, names in (
            ("feed.columns", file.feed.columns, RECORD),
            ("read.columns", file.read.columns, ROW),
        )
        for one, other, name in _shared_names({column: columns.get(column, column) for column in names})
    ]


def _shared_names(columns: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    first: dict[str, str] = {}
    for column, name in columns.items():
        if name and name in first:
            yield first[name], column, name
        first.setdefault(name, column)
