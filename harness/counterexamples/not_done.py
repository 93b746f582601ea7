"""What a scenario plans and its run did not do: faults that did not fire, and commands that were not requested.

A fault that did not fire is no test, and neither is a command that nobody requested.  So a story names them.
"""

from __future__ import annotations

from ...faults import plan
from ...properties.model.history import AnyJournalEntry, CommandIssued, FaultFired, History, JobEnded
from ..scenario.model import AnyCommand, CopySnapshot, DeleteSnapshot, MoveSnapshot, Resume, Scenario, kind_of


def not_done(scenario: Scenario, history: History) -> list[str]:
    """One sentence for each such fault and command, in their order; with the reason as far as the history shows it."""
    fired = {entry.fault for entry in history.journal if isinstance(entry, FaultFired)}
    found = [
        f"fault {number} ({plan.kind_of(fault)}) did not fire"
        for number, fault in enumerate(scenario.faults)
        if number not in fired
    ]
    issued = _issued(history)
    resume_waits = False
    for number, command in enumerate(scenario.commands):
        if number not in issued:
            is_resume = isinstance(command, Resume)
            why = "" if is_resume and resume_waits else _why(command, history)
            found.append(f"command {number} ({kind_of(command)}) was not requested{f': {why}' if why else ''}")
            resume_waits = resume_waits or is_resume
    return found


def requested(scenario: Scenario, history: History) -> tuple[AnyCommand, ...]:
    """The commands of a scenario that were requested in its run."""
    issued = _issued(history)
    return tuple(command for number, command in enumerate(scenario.commands) if number in issued)


def _issued(history: History) -> set[int]:
    """The numbers of the commands that were requested; that of a fork is in the history of the forked job."""
    issued = {entry.command for entry in history.journal if isinstance(entry, CommandIssued)}
    forks = history.forks if isinstance(history.forks, list) else []
    return issued | {forked.command for forked in forks}


def _why(command: AnyCommand, history: History) -> str:
    """Why a command was not requested; empty if the history does not show it."""
    match command:
        case Resume(snapshot=snapshot):
            last = next((entry for entry in reversed(history.journal) if _ends_or_resumes(entry)), None)
            if not isinstance(last, JobEnded):
                return "the job had not ended"
            if last.status == "finished":
                return "the job had finished"
            return f"there was no {_named(snapshot)}" if history.quiet else ""
        case CopySnapshot() | MoveSnapshot() | DeleteSnapshot():
            return f"its trigger was not met, or there was no {_named(command.snapshot)} then"
    return ""


def _ends_or_resumes(entry: AnyJournalEntry) -> bool:
    return isinstance(entry, JobEnded) or (isinstance(entry, CommandIssued) and entry.kind == "resume")


def _named(snapshot: str) -> str:
    return "snapshot" if snapshot in ("newest", "oldest") else f"snapshot {snapshot}"
