"""restored-state: an attempt begins with exactly what the newest completed snapshot holds.

Each task of an attempt loads, before any input, the newest snapshot that was complete
when the attempt started.  A resumed job begins with the snapshot that the command's
answer names: the newest complete one, unless the user named another.  Later attempts of
this job begin with the job's own newest snapshot.

The loaded state equals what the store has under the handle in the coordinator's record:
positions, keyed entries as a multiset, sealed transactions.  In a rescaled job it is the
task's part (see `redistributed`): keys only at their owners, each split's position at
its reader, each sealed transaction at one sink.  Items of lists are redistributed as one
multiset.  Every subtask is offered a union, and keeps its own items by the operator's
rule.  Each subtask takes one old subtask's whole copy of broadcast state.

A source then reads on from the restored positions, and an enumerator assigns splits from
these positions.  A job that is incompatible with its snapshot does not begin (see
`incompatible`).  A retained snapshot can be restored: all its files are in the store,
and so are the elements to which it refers in logs of persistent channels.  A savepoint is
retained until its user has it deleted, or has a job claim it.  A snapshot that a job was
resumed from and did not claim is retained too, and the job needs none of its files (see
`claims`).  A copy that its user has of a snapshot is complete.  Nobody can have the
snapshot deleted that an attempt would begin with (see `deletions`).

The store has the snapshot, the task reports the loaded state, and its program order has
the reads.  Exercised by each task that loaded a state that was not empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ..model.history import AttemptRunning, Completed, Passing, StoredState, TaskRun
from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ..model.words import LIMIT, journal_until, plural
from ..quick_checker.case import Case
from ..semantics.semantics import scaled
from .parts.assignments import assigned_elsewhere
from .parts.claims import files_of, refers_to_unclaimed
from .parts.deletions import deleted_what_is_restored
from .parts.incompatible import begun_before_finished, begun_unmapped, undescribed
from .parts.persistent_logs import discarded_early
from .parts.redistributed import kept_of_union, redistributed_state, union_of, wrongly_redistributed
from .parts.redistributed_in_flight import comparable, queued, rebalanced_differently


def check(case: Case) -> Verdict:
    if "restored-state" not in case.promised:
        return case.not_promised("restored-state", f"{case.history.guarantee} mode does not rewind")
    running = {entry.attempt for entry in case.history.journal if isinstance(entry, AttemptRunning)}
    by_attempt: dict[int, list[TaskRun]] = {}
    for run in case.history.runs:
        by_attempt.setdefault(run.attempt, []).append(run)
    found = (
        begun_before_finished(case)
        or begun_unmapped(case)
        or _named(case)
        or deleted_what_is_restored(case)
        or _file_missing(case)
    )
    found = found or refers_to_unclaimed(case) or discarded_early(case) or assigned_elsewhere(case)
    if found is not None:
        return found
    if (unknown := undescribed(case)) is not None:
        return unknown
    exercised = 0
    for start in case.lineages.starts.values():
        allowed = case.to_restore(start.order, start.job)
        for run in by_attempt.get(start.attempt, ()):
            found = _choice(case, run, allowed, start.attempt in running) or _content(case, run)
            if found is not None:
                return found
            exercised += _loaded_something(case, run)
    if exercised:
        return Holds(exercised=exercised)
    return Unknown(reason=Reason.NOT_EXERCISED, detail="no attempt restored a snapshot that held anything")


def _named(case: Case) -> Violated | None:
    """A job that was resumed from another snapshot than its user requested: the newest one if the user named none."""
    for one in case.commands.asked:
        if one.issued.kind != "resume" or one.answer is None or one.answer.error:
            continue
        newest = case.newest_before(one.issued.order)
        wanted = one.issued.checkpoint
        if wanted is None and newest is not None:
            wanted = newest.checkpoint
        if one.answer.checkpoint != wanted:
            message = (
                f"the job was resumed from checkpoint {one.answer.checkpoint}, although its user asked for {wanted}"
            )
            return _violated(case, one.answer.order, "another snapshot named", message)
    return None


def _file_missing(case: Case) -> Violated | None:
    """A retained snapshot that cannot be restored: one of its files is not in the store."""
    if case.history.snapshots != "files":
        return None
    residue = case.history.residue
    there = set(residue.files)
    for entry in case.history.completed:
        if not case.is_kept(entry):
            continue
        for task, name in files_of(case, entry):
            if name not in there:
                return Violated(
                    difference="file missing",
                    message=f"checkpoint {entry.checkpoint} is retained, and its file {name} is missing",
                    checkpoint=entry.checkpoint,
                    tasks=(task,),
                    events=journal_until(case.history, None),
                )
    return _copy_incomplete(case)


def _copy_incomplete(case: Case) -> Violated | None:
    """A copy of a snapshot in its user's directory that cannot be restored: one of its files is not there."""
    residue = case.history.residue
    copies, there = (set(one) if isinstance(one, list) else set() for one in (residue.copies, residue.copied))
    for entry in case.history.completed:
        for task, name in files_of(case, entry) if entry.checkpoint in copies else ():
            if name not in there:
                return Violated(
                    difference="copy incomplete",
                    message=f"the copy of checkpoint {entry.checkpoint} has no file {name}",
                    checkpoint=entry.checkpoint,
                    tasks=(task,),
                    events=journal_until(case.history, None),
                )
    return None


def _loads(run: TaskRun) -> bool:
    return run.loaded is not None and run.loaded.state != ""


def _choice(case: Case, run: TaskRun, allowed: Completed | None, running: bool) -> Violated | None:
    """A task that loaded another snapshot than its attempt had to begin with, or took input before."""
    if run.loaded is None or not _loads(run):
        worked = bool(run.reads or run.applies or run.marks)
        had_finished = allowed is not None and _had_finished(case, run, allowed)
        if had_finished and worked:
            message = f"{_who(run)} had finished before {_named_as(allowed)}, and processed records again"
            return _violated(case, run.started, "finished task worked", message, run)
        took = worked or (running and not had_finished)
        if allowed is not None and took and run.operator not in case.jobs.absent.get(allowed.job, ()):
            message = f"{_who(run)} restored nothing, although {_named_as(allowed)} was complete"
            return _violated(case, run.started, "nothing restored", message, run)
        return None
    if allowed is None or run.loaded.checkpoint != allowed.checkpoint:
        message = f"{_who(run)} restored checkpoint {run.loaded.checkpoint} instead of {_named_as(allowed)}"
        return _violated(case, run.loaded.order, "another snapshot restored", message, run)
    if run.loaded.applies_before:
        message = f"{_who(run)} took {plural(run.loaded.applies_before, 'record')} before it had loaded its state"
        return _violated(case, run.loaded.order, "input before state", message, run)
    return None


def _who(run: TaskRun) -> str:
    return f"{run.task} of attempt {run.attempt}"


def _named_as(snapshot: Completed | None) -> str:
    return f"checkpoint {snapshot.checkpoint}" if snapshot is not None else "nothing"


def _had_finished(case: Case, run: TaskRun, allowed: Completed) -> bool:
    """Whether a task has nothing to do: it had finished or, in a rescaled job, all of its operator had."""
    if not case.rescaled(run.attempt, allowed.checkpoint):
        return run.task in allowed.finished and run.task not in allowed.handles
    return run.operator not in {task.rpartition("-")[0] for task in allowed.handles}


def _content(case: Case, run: TaskRun) -> Violated | None:
    """A task that does not hold the state that the store has, or does not read on from its positions."""
    if run.loaded is None or not _loads(run):
        return None
    checkpoint = run.loaded.checkpoint
    rescaled = case.rescaled(run.attempt, checkpoint)
    kept = (
        redistributed_state(case, run, checkpoint) if rescaled else case.states(checkpoint).get(run.task, StoredState())
    )
    if case.retyped:
        before = case.jobs.scale(run.operator, case.lineages.completed[checkpoint].job)
        kept = msgspec.structs.replace(
            kept, entries=scaled(kept.entries, case.jobs.scale(run.operator, run.job), before)
        )
    held = case.lineages.snapshots.loaded(run)
    if held is None:
        message = f"{run.task} loaded text that is no snapshot"
        return _violated(case, run.loaded.order, "loaded state differs", message, run)
    differing: tuple[str, ...] = ()
    if rescaled:
        kept = msgspec.structs.replace(kept, queued=queued(case, run, checkpoint))
        differing = rebalanced_differently(case, run, checkpoint) if held.queued or kept.queued else ()
        held = msgspec.structs.replace(held, queued=comparable(case, run, held.queued))
    differing += _differences(kept, held) + _items(case, run, kept, held)
    if differing:
        message = f"{run.task} of attempt {run.attempt} loaded checkpoint {checkpoint}, and holds another state"
        return _violated(case, run.loaded.order, "loaded state differs", message, run, differing)
    return _positions(case, run, held)


def _differences(kept: StoredState, held: StoredState) -> tuple[str, ...]:
    """What only the store has, and what only the task holds, as phrases."""
    if kept is held:  # decoded from the same text
        return ()
    phrases: list[str] = []
    for split in sorted(kept.positions.keys() | held.positions.keys()):
        stored, loaded = kept.positions.get(split), held.positions.get(split)
        if stored != loaded:
            phrases.append(f"split {split}: stored position {stored}, loaded {loaded}")
    for what in ("watermark", "times", "idle", "maxima"):
        stored_time, loaded_time = getattr(kept, what), getattr(held, what)
        if stored_time != loaded_time:
            phrases.append(f"{what} of event time: stored {stored_time}, loaded {loaded_time}")
    for what in ("queued", "unsent"):
        phrases += _passing(what, getattr(kept, what), getattr(held, what))
    kinds: tuple[tuple[str, Sequence[object], Sequence[object]], ...] = (
        ("entry", kept.entries, held.entries),
        ("transaction", kept.transactions, held.transactions),
        ("timer", kept.timers, held.timers),
        ("timer in processing time", kept.alarms, held.alarms),
        ("state", kept.held, held.held),
    )
    for what, stored_items, loaded_items in kinds:
        phrases += _differing(what, stored_items, loaded_items)
    return tuple(phrases)


def _passing(what: str, stored: dict[int, list[Passing]], loaded: dict[int, list[Passing]]) -> list[str]:
    """The channels whose in-flight data differs, or is in another order, as phrases."""
    differing = [number for number in sorted(stored.keys() | loaded.keys()) if stored.get(number) != loaded.get(number)]
    return [
        f"{what} in channel {number}: {len(stored.get(number, ()))} stored, {len(loaded.get(number, ()))} loaded,"
        " or in another order"
        for number in differing
    ]


def _items(case: Case, run: TaskRun, kept: StoredState, held: StoredState) -> tuple[str, ...]:
    """The items of lists and unions that were wrongly loaded, or wrongly not loaded, as phrases."""
    checkpoint = run.loaded.checkpoint if run.loaded is not None else 0
    union, rescaled = union_of(case, run.operator, checkpoint), case.rescaled(run.attempt, checkpoint)
    if kept is held and not union and not held.shared and not rescaled:
        return ()
    mine = kept_of_union(case, run, checkpoint)
    phrases = [f"{name} {text} loaded, and in no union" for name, text in held.shared if (name, text) not in union]
    phrases += _differing("item", held.shared if mine is None else mine, held.shared)
    phrases += _differing("broadcast item", kept.broadcast, held.broadcast)
    if rescaled:
        return (*phrases, *wrongly_redistributed(case, run.operator, run.attempt, checkpoint))
    return (*phrases, *_differing("item", kept.listed, held.listed))


def _differing(what: str, stored: Sequence[object], loaded: Sequence[object]) -> list[str]:
    if stored == loaded:
        return []
    mine, other = Counter(stored), Counter(loaded)
    phrases = [f"{what} {item} stored, not loaded" for item in (mine - other).elements()]
    return phrases + [f"{what} {item} loaded, not stored" for item in (other - mine).elements()]


def _positions(case: Case, run: TaskRun, held: StoredState) -> Violated | None:
    if not held.positions:
        return None
    first: dict[int, int] = {}
    for split, offset in run.reads:
        first.setdefault(split, offset)
    for split, position in held.positions.items():
        if first.get(split, position) != position:
            message = f"{run.task} restored position {position} of split {split} and read on from {first[split]}"
            return _violated(case, run.loaded.order if run.loaded else None, "read on from elsewhere", message, run)
    return None


def _loaded_something(case: Case, run: TaskRun) -> bool:
    held = case.lineages.snapshots.loaded(run)
    return held is not None and held.holds_something


def _violated(
    case: Case,
    order: int | None,
    difference: str,
    message: str,
    run: TaskRun | None = None,
    records: tuple[str, ...] = (),
) -> Violated:
    return Violated(
        difference=difference,
        message=message,
        records=records[:LIMIT],
        checkpoint=run.loaded.checkpoint if run is not None and run.loaded is not None else None,
        tasks=(run.task,) if run is not None else (),
        events=journal_until(case.history, order),
    )
