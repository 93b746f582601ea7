"""Mutations of commands, and of snapshots that are retained for users (see `tampering`)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..invariants.parts.incompatible import finished_before, refused_by_name
from ..model.causes import IncompatibleJob
from ..model.history import CommandIssued, CommandReturned, History, JobEnded, TaskFailed
from ..model.upgrade import Upgrade
from ..model.workload import STATEFUL
from ..quick_checker.case import Case
from ..reconstruct.commands import STOPS, Asked
from .cuts_and_records import Alteration, Mutation, middle, out_of_range


def drop_command(case: Case) -> Mutation | None:
    """A job was stopped, drained or cancelled without a command."""
    ended = middle([end for end in case.commands.ends if end.status in (*STOPS, "cancelled")])
    if ended is None:
        return None
    asked = {one.issued.command for one in case.commands.asked if one.ending == ended.status and one.job == ended.job}

    def alter(history: History) -> None:
        history.journal = [
            entry
            for entry in history.journal
            if not (isinstance(entry, (CommandIssued, CommandReturned)) and entry.command in asked)
        ]

    return ("progress",), alter


def _answered(case: Case, *kinds: str) -> list[int]:
    """The indices in the journal of answers, to commands of these kinds, that name a snapshot."""
    answered = [
        (one.answer.command, one.answer.order)
        for one in case.commands.asked
        if one.answer is not None and one.answer.checkpoint is not None and one.issued.kind in kinds
    ]
    return [
        at
        for at, entry in enumerate(case.history.journal)
        if isinstance(entry, CommandReturned) and (entry.command, entry.order) in answered
    ]


def _answer(at: int, checkpoint: int | None) -> Alteration:
    def alter(history: History) -> None:
        entry = history.journal[at]
        assert isinstance(entry, CommandReturned)
        entry.checkpoint = checkpoint

    return alter


def answer_with_nothing(case: Case) -> Mutation | None:
    """A stop or savepoint is answered with a snapshot that does not exist."""
    at = middle(_answered(case, "savepoint", "stop-with-savepoint"))
    return None if at is None else (("progress",), _answer(at, out_of_range(None)))


def begin_with_another(case: Case) -> Mutation | None:
    """A resume is answered with a snapshot older than the newest.

    If no job was resumed, all tasks of a restarted attempt report that they loaded an older snapshot.
    """
    at = middle(_answered(case, "resume"))
    if at is not None:
        entry = case.history.journal[at]
        assert isinstance(entry, CommandReturned)
        return ("restored-state",), _answer(at, _older(case, entry.checkpoint or 0))
    chosen = middle([run for run in case.history.runs if run.loaded is not None and run.loaded.state])
    if chosen is None or chosen.loaded is None:
        return None
    older = _older(case, chosen.loaded.checkpoint)

    def alter(history: History) -> None:
        for run in history.runs:
            if run.attempt == chosen.attempt and run.loaded is not None:
                run.loaded.checkpoint = older or 0

    return ("restored-state",), alter


def bring_incompatible_operator(case: Case) -> Mutation | None:
    """A resumed job ran with a new operator before one that its snapshot counts as finished."""
    sources = {source.name for source in case.workload.inputs}
    before = {
        one.issued.command: [name for name in finished_before(case, one.job or 0) if name not in sources]
        for one in case.commands.asked
        if one.issued.kind == "resume" and any(start.job == one.job for start in case.lineages.starts.values())
    }
    command = middle([command for command, behind in before.items() if behind])
    if command is None:
        return None

    def alter(history: History) -> None:
        for entry in history.journal:
            if isinstance(entry, CommandIssued) and entry.command == command:
                entry.inserted = {"newcomer": before[command][0]}

    return ("restored-state",), alter


def forget_a_move(case: Case) -> Mutation | None:
    """A job that was upgraded began although its mapping lacks the state of an operator with another uid."""
    begun = {start.job: start.restores for start in case.lineages.starts.values() if start.restores is not None}
    found = middle([one for one in case.commands.asked if one.job in begun and _needed(case, one, begun[one.job])])
    if found is None:
        return None
    moved, number = _needed(case, found, begun[found.job or 0])[0], found.issued.command

    def alter(history: History) -> None:
        for entry in history.journal:
            if isinstance(entry, CommandIssued) and entry.command == number and isinstance(entry.upgrade, Upgrade):
                fewer = {old: new for old, new in entry.upgrade.moves.items() if old != moved}
                entry.upgrade = msgspec.structs.replace(entry.upgrade, moves=fewer)

    return ("restored-state",), alter


def take_back_a_permission(case: Case) -> Mutation | None:
    """A job began and dropped the state of an operator that it no longer has, although its user had not allowed it."""
    return _said_less(
        case, lambda before, now, keeping: [name for name in now if name in keeping and name not in before]
    )


def announce_nothing(case: Case) -> Mutation | None:
    """A job began with a new operator, although its user had not said that the operator begins empty."""
    return _said_less(case, lambda before, now, keeping: [name for name in before if name not in now])


Absent = tuple[str, ...]


def _said_less(case: Case, concerns: Callable[[Absent, Absent, list[str]], list[str]]) -> Mutation | None:
    """A job began from another job's snapshot though its user had neither allowed that states are dropped nor said who
    begins empty.  `concerns`: the operators that need it, from what both jobs lack and who keeps state."""
    keeping = [node.name for node in case.workload.nodes if isinstance(node.operator, STATEFUL)]
    absent, found = case.jobs.absent, []
    for start in case.lineages.starts.values():
        completed = case.lineages.completed.get(start.restores or 0)
        resume = case.commands.resume_of(start.job)
        if completed is None or resume is None or completed.job == start.job:
            continue
        if concerns(absent[completed.job], absent[start.job], keeping):
            found.append(resume.issued.command)
    command = middle(found)
    if command is None:
        return None

    def alter(history: History) -> None:
        for entry in history.journal:
            if isinstance(entry, CommandIssued) and entry.command == command and isinstance(entry.upgrade, Upgrade):
                entry.upgrade = msgspec.structs.replace(entry.upgrade, begin_empty=(), allow_non_restored_state=False)

    return ("restored-state",), alter


def _needed(case: Case, asked: Asked, checkpoint: int) -> list[str]:
    """The uids of a snapshot that only the mapping of a resume moves to their operators."""
    upgrade, completed = asked.issued.upgrade, case.lineages.completed.get(checkpoint)
    if not isinstance(upgrade, Upgrade) or completed is None or completed.job == asked.job or asked.job is None:
        return []
    before, now = case.jobs.uids.get(completed.job, {}), case.jobs.uids[asked.job]
    names = {before.get(name, name): now.get(name, name) for name in {**before, **now}}
    return [old for old, new in upgrade.moves.items() if names.get(old) == new != old]


def refuse_without_a_name(case: Case) -> Mutation | None:
    """A job that is incompatible with its snapshot is refused, and neither cause nor reason names an operator."""
    ended = middle([end for end in case.commands.ends if refused_by_name(case, end)])
    if ended is None or case.history.snapshots == "memory":  # a coordinator's death may lose it, which excuses the job
        return None
    order = ended.order

    def alter(history: History) -> None:
        for entry in history.journal:
            if isinstance(entry, JobEnded) and entry.order == order:
                entry.reason, entry.cause = "the snapshot does not fit", IncompatibleJob()

    return ("progress",), alter


def _older(case: Case, checkpoint: int) -> int | None:
    """The newest completed snapshot before `checkpoint`; None if there is none."""
    return max((one.checkpoint for one in case.history.completed if one.checkpoint < checkpoint), default=None)


def take_no_checkpoint(case: Case) -> Mutation | None:
    """A job with unbounded input completes no checkpoint, and so never comes to rest."""
    start = case.lineages.starts.get(case.lineages.last_attempt)
    healed, history = case.history.healed or 0, case.history
    if start is None or case.ended is not None or not history.quiet or history.starved:
        return None
    if history.guarantee == "at-most-once" or all(source.bounded for source in case.workload.inputs):
        return None
    if any(isinstance(entry, TaskFailed) and entry.order > healed for entry in history.journal):
        return None  # a failure after healing excuses the job
    job = start.job

    def alter(history: History) -> None:
        history.completed = [one for one in history.completed if one.job != job]
        history.quiet = False

    return ("progress",), alter


def lose_file(case: Case) -> Mutation | None:
    """A file of a retained snapshot is missing."""
    residue = case.history.residue
    kept = {handle for entry in case.history.completed if case.is_kept(entry) for handle in entry.handles.values()}
    handle = middle([handle for handle in residue.files if handle in kept])
    if handle is None or case.history.snapshots != "files":
        return None

    def alter(history: History) -> None:
        history.residue.files.remove(handle)

    return ("restored-state",), alter
