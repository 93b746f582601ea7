"""The snapshots that a resume, a fork or a deletion names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .model import Savepoint, Scenario, StopWithSavepoint

CLAIMED = {"by-kind": None, "claim": True, "no-claim": False}
"""By claim mode of a resume: whether the job claims its snapshot; None where nothing is said."""


def named(
    snapshot: str, retained: Iterable[int], scenario: Scenario, answers: Mapping[int, int | None]
) -> tuple[int, ...]:
    """The retained snapshots for which the words of a command stand, oldest first.

    `answers` has the snapshot that each answered command took, if it took one.
    """
    all_of_them = tuple(sorted(retained))
    if snapshot == "each":
        return all_of_them
    if snapshot == "newest":
        return all_of_them[-1:]
    if snapshot == "oldest":
        return all_of_them[:1]
    taken = saved_as(snapshot, scenario, answers)
    return tuple(one for one in all_of_them if one == taken)


def saved_as(name: str, scenario: Scenario, answers: Mapping[int, int | None]) -> int | None:
    """The savepoint of this name, whether it is retained or not; None before it is complete."""
    takes = (Savepoint, StopWithSavepoint)
    asked = (number for number, one in enumerate(scenario.commands) if isinstance(one, takes) and one.name == name)
    return next((taken for number in asked if (taken := answers.get(number)) is not None), None)
