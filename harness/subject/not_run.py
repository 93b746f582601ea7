"""Scenarios that a subject could not run: reported, and counted as failures of the harness, not of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from ...reports.model import NotRun
from ...reports.overview import by_reason

REASONS = 5
"""the number of reasons that are reported, each in one sentence"""


def with_commands(not_run: Iterable[NotRun], command: Callable[[str], str]) -> list[NotRun]:
    """The scenarios, each with the command that runs it again if it was stored."""
    return [replace(one, replay=command(one.scenario)) if one.scenario else one for one in not_run]


def in_sentences(not_run: list[NotRun]) -> Iterator[str]:
    """A sentence for each of the first few reasons, and one for all others."""
    groups = list(by_reason(not_run).items())
    for reason, alike in groups[:REASONS]:
        if len(alike) == 1:
            yield f"scenario {alike[0].number} could not be run: {reason}"
        else:
            yield f"{len(alike):,} scenarios could not be run, the first of them scenario {alike[0].number}: {reason}"
    others = [one for _, alike in groups[REASONS:] for one in alike]
    if others:
        yield f"{len(others):,} more could not be run, for {len(groups) - REASONS} other reasons; summary.json has all"
