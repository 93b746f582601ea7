"""What a history must have to be judged, beyond its schema: nothing is left out, and everything that it names exists.

docs/format.md states what it means if a field is left out.  If the same witness shows elsewhere that there was
something, the field is missing, and no verdict can be given.  The same holds if an entry names a task, a split, a job
or a record that the scenario or the history does not have.  Contradictions between two witnesses are the judge's
affair.  Everything that is wrong with a file is reported in one line.
"""

from __future__ import annotations

import codecs
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ...properties.model.history import (
    OF_A_SNAPSHOT,
    AttemptRunning,
    AttemptStarted,
    Channel,
    CheckpointTriggered,
    CommandIssued,
    CommandReturned,
    Completed,
    FaultFired,
    History,
    JobEnded,
    Mark,
    Stored,
    StoredState,
    TaskFailed,
    TaskRun,
    Transaction,
)
from ...properties.model.stages import COMMITTERS
from ...properties.model.upgrade import Upgrade
from ...properties.model.workload import BEGINNING, SINK
from ...properties.reconstruct.commands import Commands
from ...properties.reconstruct.in_flight import records
from ...properties.reconstruct.layouts import absent_nodes, layouts
from .history_witnesses import OF_SINK, commit_problems, computed_problems, witness_problems
from .model import Scenario
from .upgrades import changeable

HOW = ("alive", "finished", "cancelled", "failed", "killed")
STATUS = ("open", "prepared", "committed", "aborted")
ENDS = ("finished", "drained", "stopped", "cancelled", "failed")
GUARANTEES = ("exactly-once", "at-least-once", "at-most-once")
_WINDOW = 1 << 60


def history_problems(
    scenario: Scenario, history: History, spelt: frozenset[tuple[str, int, str]] = frozenset()
) -> Iterator[str]:
    """What is wrong, each in a line that names field and place.

    `spelt`: the empty lists that the file has (`spelt_empty`); they are not missing.
    """
    known = _Known(scenario, history, spelt)
    yield from _words(history)
    yield from witness_problems(history)
    yield from commit_problems(history, known.lengths)
    yield from computed_problems(history, known.lengths, has_query=bool(scenario.workload.query))
    yield from _attempts(history, known)
    for place, run in enumerate(history.runs):
        yield from (f"runs[{place}].{problem}" for problem in _run(run, known))
        if problem := _unassigned(run, known, place):
            yield f"runs[{place}].{problem}"
    yield from _in_place(history)
    for place, channel in enumerate(history.channels):
        is_empty = ("channels", place, "sent") in known.spelt
        yield from (f"channels[{place}].{problem}" for problem in _channel(channel, known, is_empty=is_empty))
        if ("channels", place, "repeated") not in known.spelt:
            yield from (f"channels[{place}].{problem}" for problem in _repeated(channel, known))
    yield from _snapshots(history, known)
    for name, transactions in (("transactions", history.transactions), ("passing", history.passing)):
        for place, one in enumerate(transactions):
            yield from (f"{name}[{place}].{problem}" for problem in _transaction(one, known))
    yield from _sink(history, known)
    yield from _journal(scenario, history, known)
    yield from _forks(scenario, history)


def _forks(scenario: Scenario, history: History) -> Iterator[str]:
    """What is wrong with the histories of forked jobs, each a history in itself."""
    for place, forked in enumerate(history.forks if isinstance(history.forks, list) else ()):
        where = f"forks[{place}]"
        # its channels up to the snapshot are those of the history, whose own entries say which are empty
        said = frozenset(
            ("channels", number, "sent")
            for number, channel in enumerate(forked.history.channels)
            if any(isinstance(one, AttemptStarted) and one.in_place for one in history.journal) and not channel.sent
        )
        if isinstance(forked.history.forks, list):
            yield f"{where}.history has forks of its own, and no job is forked from a forked one"
            continue
        yield from _numbered(f"{where}.command", forked.command, scenario.commands, "commands")
        if not any(one.checkpoint == forked.checkpoint for one in forked.history.completed):
            yield f"{where}.checkpoint is {forked.checkpoint}, which did not complete in the fork's own history"
        if not any(isinstance(one, CommandIssued) and one.command == forked.command for one in forked.history.journal):
            yield f"{where}.history has no command-issued of the command {forked.command}, with which the fork begins"
        yield from (f"{where}.history.{problem}" for problem in history_problems(scenario, forked.history, said))


class _Known:
    """The names that may occur: tasks, attempts, jobs, records; and which task took what from which channel."""

    def __init__(self, scenario: Scenario, history: History, spelt: frozenset[tuple[str, int, str]]) -> None:
        self.spelt = spelt
        workload = scenario.workload
        commands = [entry for entry in history.journal if isinstance(entry, CommandIssued)]
        inserted = {name for entry in commands for name in entry.inserted}
        names = [source.name for source in workload.inputs] + [node.name for node in workload.nodes]
        self.operators = {*names, SINK, *COMMITTERS, *inserted}
        widths: dict[str, int] = dict(scenario.topology.parallelism)
        for parallelism in (entry.parallelism for entry in commands):
            widths.update({name: max(widths.get(name, 0), width) for name, width in parallelism.items()})
        self.widths = widths
        self.resumed = any(entry.kind == "resume" and not entry.parallelism for entry in commands)
        self.lengths = {split: len(records) for split, _, records in workload.splits()}
        self.sources = {source.name for source in workload.inputs}
        self.enumerated = {source.name for source in workload.inputs if source.is_enumerated}
        self.attempts = {entry.attempt for entry in history.journal if isinstance(entry, AttemptStarted)}
        self.jobs = {entry.job for entry in history.journal if isinstance(entry, AttemptStarted)}
        self.runs = {(run.task, run.attempt): run for run in history.runs}
        self.places = {(run.task, run.attempt): place for place, run in enumerate(history.runs)}
        self.named = [(channel.name, channel.attempt) for channel in history.channels]
        self.in_place = {one.attempt for one in history.journal if isinstance(one, AttemptStarted) and one.in_place}
        self.channels = {(channel.name, channel.attempt): channel for channel in history.channels}
        self._owners: dict[tuple[int, int], set[str]] = {}
        for run in history.runs:
            for _, split, _ in run.assigned:
                self._owners.setdefault((run.attempt, split), set()).add(run.task)

    def is_given_to_another(self, split: int, run: TaskRun) -> bool:
        """Whether another reader of the attempt was assigned a split: then nothing is missing, and this reader must
        not have read it."""
        return bool(self._owners.get((run.attempt, split), set()) - {run.task})

    def task(self, task: str) -> str:
        """What is wrong with a task's name; empty if nothing is."""
        operator, dash, subtask = task.rpartition("-")
        if not dash or not subtask.isdecimal() or operator not in self.operators:
            return f"there is no task {task!r}: it is operator-subtask, of {', '.join(sorted(self.operators))}"
        if operator in self.widths and int(subtask) >= self.widths[operator]:
            width = f"{operator} has {self.widths[operator]} subtasks"
            return f"there is no task {task!r}: {width}{' and no command says parallelism' * self.resumed}"
        return ""

    def origin(self, origin: int) -> str:
        """What is wrong with the origin of a record."""
        if origin < 0:
            return f"{origin} is the origin of no record"
        split, offset = (origin & ~_WINDOW) >> 40, (origin >> 8) & 0xFFFF_FFFF
        if split not in self.lengths or offset >= self.lengths[split]:
            return f"{origin} is the origin of record {offset} of split {split}, which the scenario does not have"
        return ""


def _words(history: History) -> Iterator[str]:
    for name, value, known in (
        ("guarantee", history.guarantee, GUARANTEES),
        ("sink", history.sink, tuple(OF_SINK)),
        ("identity", history.identity, ("key", "row")),
        ("snapshots", history.snapshots, ("files", "memory")),
    ):
        if value not in known:
            yield f"{name}: {value!r} is none of {', '.join(known)}"


def _attempts(history: History, known: _Known) -> Iterator[str]:
    if history.runs and not known.attempts:
        yield "journal: no attempt-started, and there are runs; each attempt's start has to be recorded"
    seen: set[tuple[str, int]] = set()
    for place, run in enumerate(history.runs):
        if known.attempts and run.attempt not in known.attempts:
            yield f"runs[{place}].attempt: no attempt-started of the journal has attempt {run.attempt}"
        if known.jobs and run.job not in known.jobs:
            yield f"runs[{place}].job: no attempt-started of the journal has job {run.job}"
        if (run.task, run.attempt) in seen:
            yield f"runs[{place}].task: {run.task} of attempt {run.attempt} is there twice"
        seen.add((run.task, run.attempt))


def _run(run: TaskRun, known: _Known) -> Iterator[str]:
    if problem := known.task(run.task):
        yield f"task: {problem}"
    elif run.task != f"{run.operator}-{run.subtask}":
        yield f"operator: {run.task} is not subtask {run.subtask} of {run.operator}"
    if run.how not in HOW:
        yield f"how: {run.how!r} is none of {', '.join(HOW)}"
    elif run.how == "alive" and run.ended is not None:
        yield f"how is missing or alive, and the run ended at order {run.ended}"
    elif run.how != "alive" and run.ended is None:
        yield f"ended is missing, and the run was {run.how}"
    for name, channels in (("inputs", run.inputs), ("outputs", run.outputs)):
        for place, channel in enumerate(channels):
            sender, between, receiver = channel.partition(">")
            if problem := "" if between else "a channel's name is sender>receiver":
                yield f"{name}[{place}]: {problem}, not {channel!r}"
            elif problem := known.task(sender) or known.task(receiver):
                yield f"{name}[{place}]: {problem}"
    for place, (split, offset) in enumerate(run.reads):
        if split not in known.lengths or not 0 <= offset < known.lengths[split]:
            yield f"reads[{place}]: the scenario has no record {offset} of split {split}"
            break
    for place, (channel_number, origin) in enumerate(run.applies):
        if not 0 <= channel_number < len(run.inputs):
            yield f"applies[{place}]: {run.task} has no input {channel_number}; inputs has {len(run.inputs)}"
            break
        if problem := known.origin(origin):
            yield f"applies[{place}]: {problem}"
            break
    if run.loaded is not None and (problem := _state(run.loaded.state)):
        yield f"loaded.state {problem}"
    for place, mark in enumerate(run.marks):
        yield from (f"{problem} (marks[{place}])" for problem in _mark(run, mark))


def _unassigned(run: TaskRun, known: _Known, place: int) -> str:
    """The error if a reader has read a split, and the history does not show that it was assigned to it; empty if it
    does."""
    if not run.reads or run.assigned or run.operator not in known.enumerated:
        return ""
    split, offset = run.reads[0]
    if ("runs", place, "assigned") in known.spelt or known.is_given_to_another(split, run):
        return ""
    return f"assigned is missing: it read record {offset} of split {split}, which was given to it"


def _mark(run: TaskRun, mark: Mark) -> Iterator[str]:
    for name, counted, positions in (
        ("reads", mark.reads, run.reads),
        ("applies", mark.applies, run.applies),
        ("watermarks", mark.watermarks, run.watermarks),
        ("ticks", mark.ticks, run.ticks),
    ):
        if not 0 <= counted <= len(positions):
            yield f"{name} is missing or too short: it has {len(positions)}, and a snapshot was taken after {counted}"
    for name, counts, channels in (("received", mark.received, run.inputs), ("sent", mark.sent, run.outputs)):
        if len(counts) != len(channels):
            of = "inputs" if name == "received" else "outputs"
            yield f"{of} has {len(channels)} channels, and {name} counts those of {len(counts)}"
    before = mark.reads + mark.applies
    for name, events, number in (("watermarks", run.watermarks, mark.watermarks), ("ticks", run.ticks, mark.ticks)):
        sure = sum(position < before for position, _ in events)
        if number < sure:
            yield f"marks: {name} is missing or too small: {number}, and {sure} came before that snapshot"


def _in_place(history: History) -> Iterator[str]:
    """After local recovery the elements that a task took follow from those in its channels."""
    local = next((one for one in history.journal if isinstance(one, AttemptStarted) and one.in_place), None)
    if local is not None and not local.tasks:
        yield f"journal[{history.journal.index(local)}].tasks is missing: its tasks recovered locally"
    if history.residue.logs and not history.logs:
        yield f"logs is missing: of residue.logs {history.residue.logs[0]!r} remains"
    if local is not None and not history.channels:
        yield f"channels is missing: tasks of attempt {local.attempt} recovered locally, in channels that went on"


def _channel(channel: Channel, known: _Known, *, is_empty: bool) -> Iterator[str]:
    """What is wrong with a channel; `is_empty`: its file says that nothing was sent."""
    sender, between, receiver = channel.name.partition(">")
    if problem := (known.task(sender) or known.task(receiver)) if between else "a channel's name is sender>receiver":
        yield f"name: {problem}"
    if known.attempts and channel.attempt not in known.attempts:
        yield f"attempt: no attempt-started of the journal has attempt {channel.attempt}"
    for place, origin in enumerate([*channel.recovered, *channel.sent]):
        if problem := known.origin(origin):
            yield f"sent: {problem} (record {place})"
            break
    behind = max((number for _, number in (*channel.barriers, *channel.watermarks)), default=0)
    if behind > len(channel.sent):
        yield f"sent is missing or too short: it has {len(channel.sent)} records, and a mark comes after {behind}"
    taker, giver = known.runs.get((receiver, channel.attempt)), known.runs.get((sender, channel.attempt))
    if taker is None or channel.name not in taker.inputs:
        return
    number = taker.inputs.index(channel.name)
    taken = sum(one == number for one, _ in taker.applies)
    loaded = _decoded(taker.loaded.state if taker.loaded is not None else "{}")
    put_back = taker.attempt not in known.in_place and not _died_restored(taker)
    queued = loaded.queued.get(number, []) if put_back else []
    restored = len(records(queued))
    if restored and not channel.recovered:
        yield f"recovered is missing: {receiver} of attempt {channel.attempt} loaded {restored} records of it"
    elif taken and not (channel.content or channel.repeated or is_empty):
        yield f"sent is missing: {receiver} of attempt {channel.attempt} took {taken} records of it"
    marks = sum(len(element) < 2 for element in queued)
    if marks and not channel.recovered_watermarks:
        yield f"recovered_watermarks is missing: {receiver} of attempt {channel.attempt} loaded {marks} of it"
    if (
        giver is not None
        and giver.watermarks
        and not channel.watermarks
        and _advanced_with(taker, channel, loaded, number)
    ):
        yield f"watermarks is missing: {sender} and {receiver} say that their watermarks advanced"


def _died_restored(run: TaskRun) -> bool:
    """Whether a task may have died between the moment at which it had loaded its snapshot and the one at which its
    in-flight data was in its channels again: nothing shows that it went on."""
    went_on = run.reads or run.applies or run.marks or run.watermarks or run.ticks
    return run.how in ("killed", "failed") and not went_on


def _decoded(state: str) -> StoredState:
    """A snapshot; an empty one if it cannot be read."""
    try:
        return msgspec.json.decode(state, type=StoredState)
    except (msgspec.DecodeError, RecursionError):
        return StoredState()


def _repeated(channel: Channel, known: _Known) -> Iterator[str]:
    sender = channel.name.partition(">")[0]
    giver = known.runs.get((sender, channel.attempt))
    if giver is not None and (again := _unsaid(giver, channel, known)):
        yield f"repeated is missing: {sender} recovered locally, and {len(again)} records were sent after its snapshot"


def _advanced_with(taker: TaskRun, channel: Channel, loaded: StoredState, number: int) -> bool:
    """Whether a run's watermark advanced beyond everything that it was restored with for one of its inputs.

    A watermark is the least of those of all inputs that are not idle.
    """
    known: list[int | None] = [time for time, _ in channel.recovered_watermarks]
    if number in loaded.idle or None in known:
        return False
    known += loaded.times[number : number + 1]
    return any(time > max(filter(None, known), default=BEGINNING) for _, time in taker.watermarks)


def _unsaid(giver: TaskRun, channel: Channel, known: _Known) -> list[int]:
    """The records that a locally recovered run must have sent again, where its channel does not have them.

    They follow from what it sent after them, from how it ended, or from what it counted.
    """
    if channel.repeated or giver.attempt not in known.in_place or channel.name not in giver.outputs:
        return []
    again = _sent_before(giver, channel, known)
    if channel.sent:
        went_on = channel.sent[: len(again)] != again[: len(channel.sent)]
    else:
        number = giver.outputs.index(channel.name)
        went_on = giver.how == "finished" or any(mark.sent[number] for mark in giver.marks if number < len(mark.sent))
    return again if went_on else []


def _sent_before(giver: TaskRun, channel: Channel, known: _Known) -> list[int]:
    """What earlier attempts had sent into a channel, after the snapshot that this run loaded if it loaded one."""
    attempts = sorted(attempt for task, attempt in known.runs if task == giver.task and attempt < giver.attempt)
    sent: list[int] = []
    for attempt in reversed(attempts):
        run, log = known.runs[giver.task, attempt], known.channels.get((channel.name, attempt))
        if log is None or channel.name not in run.outputs:
            return []
        number = run.outputs.index(channel.name)
        for mark in run.marks:
            if giver.loaded is not None and mark.checkpoint == giver.loaded.checkpoint:
                return (log.repeated + log.sent)[mark.sent[number] :] + sent if number < len(mark.sent) else []
        sent = log.sent + sent
        if attempt not in known.in_place:
            return [] if giver.loaded is not None or run.loaded is not None else sent
    return []


def _snapshots(history: History, known: _Known) -> Iterator[str]:
    for place, stored in enumerate(history.stored):
        where = f"stored[{place}]"
        if problem := known.task(stored.task):
            yield f"{where}.task: {problem}"
        elif known.attempts and stored.attempt not in known.attempts:
            yield f"{where}.attempt: no attempt-started of the journal has attempt {stored.attempt}"
        if problem := _state(stored.state):
            yield f"{where}.state {problem}"
        run = known.runs.get((stored.task, stored.attempt))
        if run is not None and not run.marks:
            number = history.runs.index(run)
            yield f"runs[{number}].marks is missing: {where} is its snapshot of checkpoint {stored.checkpoint}"
        elif run is not None and run.watermarks:
            yield from (
                f"runs[{history.runs.index(run)}].{problem}" for problem in _advanced_before(run, stored, where)
            )
    for place, completed in enumerate(history.completed):
        where = f"completed[{place}]"
        if known.jobs and completed.job not in known.jobs:
            yield f"{where}.job: no attempt-started of the journal has job {completed.job}"
        if known.attempts and completed.attempt not in known.attempts:
            yield f"{where}.attempt: no attempt-started of the journal has attempt {completed.attempt}"
        for task in (*completed.handles, *completed.finished):
            if problem := known.task(task):
                yield f"{where}.handles: {problem}"
        yield from (f"{where}.{problem}" for problem in _finished(completed, known))
        for name in completed.enumerators:
            if name not in known.sources:
                yield f"{where}.enumerators: there is no input {name!r}"


def _advanced_before(run: TaskRun, stored: Stored, where: str) -> Iterator[str]:
    """A mark that counts no advance of the watermark, though the snapshot has the time of the first one."""
    marks = [(place, mark) for place, mark in enumerate(run.marks) if mark.checkpoint == stored.checkpoint]
    if marks and not marks[0][1].watermarks:
        time = run.watermarks[0][1]
        if _decoded(stored.state).watermark >= time:
            yield f"marks[{marks[0][0]}].watermarks is missing: {where}.state has the watermark {time}"


def _finished(completed: Completed, known: _Known) -> Iterator[str]:
    """Every task without a snapshot had finished before, and the checkpoint does not list it as finished."""
    if completed.finished:
        return
    runs = [run for run in known.runs.values() if run.job == completed.job and run.started < completed.order]
    newest = {run.task: run for run in sorted(runs, key=lambda one: one.attempt)}
    without = [run for task, run in newest.items() if task not in completed.handles]
    done = [run.task for run in without if not _went_on(run, completed.checkpoint)]
    if done and all(run.how == "finished" for run in without):
        yield f"finished is missing: {done[0]} finished, took nothing after it and has no handle"


def _went_on(run: TaskRun, checkpoint: int) -> bool:
    """Whether a run has a mark of a checkpoint, and read or took something after it."""
    behind = (mark.reads + mark.applies for mark in run.marks if mark.checkpoint == checkpoint)
    return any(number < len(run.reads) + len(run.applies) for number in behind)


def _state(text: str) -> str:
    if not text:
        return "is missing; a snapshot of nothing is {}"
    try:
        msgspec.json.decode(text, type=StoredState)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"is no snapshot: {error}"
    return ""


def _transaction(one: Transaction, known: _Known) -> Iterator[str]:
    if problem := known.task(one.task):
        yield f"task: {problem}"
    elif known.attempts and one.attempt not in known.attempts:
        yield f"attempt: no attempt-started of the journal has attempt {one.attempt}"
    if len(one.rows) != len(one.applied):
        shorter = "rows" if len(one.rows) < len(one.applied) else "applied"
        yield f"{shorter} is missing or too short: {len(one.rows)} rows, and applied has {len(one.applied)}"
    if one.status not in STATUS:
        yield f"status: {one.status!r} is none of {', '.join(STATUS)}"
    orders: Mapping[str, int | None] = {"committed": one.committed, "aborted": one.aborted}
    for name, order in orders.items():
        if one.status == name and order is None:
            yield f"{name} is missing, the order at which it was {name}, as its status says"
        if order is not None and one.status in ("open", "prepared"):
            yield f"status is missing or {one.status}, and it was {name} at order {order}"
    if one.status == "prepared" and one.prepared is None:
        yield "prepared is missing, the order at which it was sealed, as its status says"
    if one.status == "open" and one.prepared is not None:
        yield f"status is missing or open, and it was sealed at order {one.prepared}"
    if one.checkpoint is not None and one.prepared is None and one.status == "committed":
        yield f"prepared is missing: it was sealed for checkpoint {one.checkpoint}"


def _sink(history: History, known: _Known) -> Iterator[str]:
    for place, written in enumerate(history.written):
        if problem := known.task(written.task):
            yield f"written[{place}].task: {problem}"
        elif known.attempts and written.attempt not in known.attempts:
            yield f"written[{place}].attempt: no attempt-started of the journal has attempt {written.attempt}"
    for place, read in enumerate(history.reads):
        if read.rows < 0:  # fewer rows in the end than at a read means that a row vanished: that is the judge's affair
            yield f"reads[{place}].rows: {read.rows}, and a reader sees 0 or more"


def _journal(scenario: Scenario, history: History, known: _Known) -> Iterator[str]:
    issued = {entry.command: entry for entry in history.journal if isinstance(entry, CommandIssued)}
    loaded = {run.attempt: run.loaded.checkpoint for run in history.runs if run.loaded is not None}
    completed = {one.checkpoint for one in history.completed}
    for place, entry in enumerate(history.journal):
        where = f"journal[{place}]"
        if isinstance(entry, (FaultFired, TaskFailed)) and entry.fault is not None:
            yield from _numbered(f"{where}.fault", entry.fault, scenario.faults, "faults")
        if isinstance(entry, TaskFailed) and (problem := known.task(entry.task)):
            yield f"{where}.task: {problem}"
        if isinstance(entry, (AttemptRunning, TaskFailed, CheckpointTriggered)) and entry.attempt not in known.attempts:
            yield f"{where}.attempt: no attempt-started of the journal has attempt {entry.attempt}"
        if isinstance(entry, CheckpointTriggered) and entry.job not in known.jobs:
            yield f"{where}.job: no attempt-started of the journal has job {entry.job}"
        if isinstance(entry, AttemptStarted):
            yield from (f"{where}.tasks: {problem}" for problem in map(known.task, entry.tasks) if problem)
            if entry.restores is not None and entry.restores not in completed and not history.lacks(["snapshots"]):
                yield f"{where}.restores: no completed has checkpoint {entry.restores}"
            if entry.restores is None and entry.attempt in loaded:
                yield f"{where}.restores is missing: its tasks loaded checkpoint {loaded[entry.attempt]}"
        if isinstance(entry, CommandReturned) and entry.command not in issued:
            yield f"{where}.command: no command-issued of the journal has number {entry.command}"
        if isinstance(entry, CommandReturned) and entry.command in issued and not entry.error:
            kind = issued[entry.command].kind
            if entry.checkpoint is None and kind in ("savepoint", "stop-with-savepoint"):
                yield f"{where}.checkpoint is missing: the {kind} succeeded, and made one"
        if isinstance(entry, JobEnded) and entry.status not in ENDS:
            yield f"{where}.status: {entry.status!r} is none of {', '.join(ENDS)}"
        if isinstance(entry, CommandIssued):
            kinds = ("savepoint", "stop-with-savepoint", "cancel", *OF_A_SNAPSHOT, "resume")
            if entry.kind not in kinds:
                yield f"{where}.kind: {entry.kind!r} is none of {', '.join(kinds)}"
            if entry.claimed is not None and entry.kind != "resume":
                yield f"{where}.claimed: only a resume says whose its snapshot is, and this is a {entry.kind}"
            unknown = [name for name in entry.parallelism if name not in known.operators]
            if unknown:
                yield f"{where}.parallelism: there is no operator {unknown[0]!r}"
    unchangeable = list(_unchangeable(scenario, history))
    yield from unchangeable or _absent(scenario, history, known)
    yield from _widths(scenario, history, known)


def _unchangeable(scenario: Scenario, history: History) -> Iterator[str]:
    """The upgrades that add or remove what cannot be."""
    for place, entry in enumerate(history.journal):
        upgrade = entry.upgrade if isinstance(entry, CommandIssued) else None
        names = (*upgrade.removed, *upgrade.added) if isinstance(upgrade, Upgrade) else ()
        if wrong := [name for name in names if name not in changeable(scenario)]:
            yield f"journal[{place}].upgrade: {wrong[0]!r} is no node that can be added or removed"


def _absent(scenario: Scenario, history: History, known: _Known) -> Iterator[str]:
    """The tasks of nodes that their job does not have."""
    jobs = known.jobs | {run.job for run in history.runs}
    absent = absent_nodes(scenario.workload, jobs, Commands(history))
    for place, run in enumerate(history.runs):
        if run.operator in absent[run.job]:
            yield f"runs[{place}].task: no command adds {run.operator} to job {run.job}, or it was removed"


def _widths(scenario: Scenario, history: History, known: _Known) -> Iterator[str]:
    """For each resumed job that ran as a whole: operators whose number of subtasks differs from its command."""
    commands = Commands(history)
    topologies = layouts(scenario.topology, known.jobs | {one.job for one in commands.ends}, commands)
    whole = {one.attempt: one.job for one in history.journal if isinstance(one, AttemptStarted) and not one.tasks}
    running = [entry.attempt for entry in history.journal if isinstance(entry, AttemptRunning)]
    for attempt, job in ((attempt, whole[attempt]) for attempt in running if attempt in whole):
        resume = commands.resume_of(job)
        if resume is None:
            continue
        ran = Counter(run.operator for run in history.runs if run.attempt == attempt)
        for operator, width in topologies[job].parallelism.items():
            if ran[operator] not in (0, width) and operator not in resume.issued.parallelism:
                place = history.journal.index(resume.issued)
                yield (
                    f"journal[{place}].parallelism is missing: "
                    f"{operator} ran with {ran[operator]} subtasks, not {width}"
                )


def _numbered(where: str, number: int, there: Sequence[Any], what: str) -> Iterator[str]:
    if there and not 0 <= number < len(there):
        yield f"{where}: the scenario has no fault {number}; {what} has {len(there)}"


LINE = 220
"""how many characters a line that names what is missing has at most, without the file's name"""


class _Spelt(msgspec.Struct):
    runs: list[dict[str, msgspec.Raw]] = []
    channels: list[dict[str, msgspec.Raw]] = []


def spelt_empty(data: bytes) -> frozenset[tuple[str, int, str]]:
    """The empty lists of runs and channels that a history's file has: (`channels`, 3, `repeated`).  These were not
    left out."""
    parts = msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8), type=_Spelt)
    return frozenset(
        (part, place, name)
        for part, entries in (("runs", parts.runs), ("channels", parts.channels))
        for place, entry in enumerate(entries)
        for name, value in entry.items()
        if b"".join(bytes(value).split()) == b"[]"
    )


def in_one_line(problems: Iterable[str]) -> str:
    """The first problem in full, and the places of the others, as many as fit into a line; empty without any."""
    first, *others = [*problems] or [""]
    places = list(dict.fromkeys(_place(one) for one in others if _place(one) != _place(first)))
    named = [textwrap.shorten(first, LINE // 2, placeholder=" ...") if places else first]
    for number, place in enumerate(places, 1):
        not_named = len(places) - number
        more = f" and {not_named} more" if not_named else ""
        if len(", ".join([*named, place])) + len(f"; and so are : {more}") > LINE:
            named.append(f"{len(places) - number + 1} more")
            break
        named.append(place)
    return named[0] if len(named) == 1 else f"{named[0]}; wrong too: {', '.join(named[1:])}"


def _place(problem: str) -> str:
    """The field of a problem."""
    return problem.split(" ")[0].rstrip(":")
