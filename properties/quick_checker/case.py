"""One case to judge: a workload, its topology, a history, and what follows from them.

Each value is computed when a checker first asks for it, and only once.  All checkers share it, so none may change it:
the types allow no change, and a test compares the values before and after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from ..model.history import (
    AttemptStarted,
    Channel,
    CheckpointTriggered,
    Completed,
    Forked,
    History,
    JobEnded,
    StoredState,
    TaskRun,
    Transaction,
)
from ..model.verdict import Reason, Unknown
from ..model.workload import END_OF_TIME, Input, Node, Row, Topology, Workload, window_of
from ..reconstruct.commands import STOPS, Commands
from ..reconstruct.layouts import same_width
from ..reconstruct.lineage import INFINITE, Lineage, Segment, by_channel
from ..reconstruct.lineages import Lineages
from ..reconstruct.replay import is_determined
from ..semantics.classes import FOLLOWING, promised
from ..semantics.user_functions import has_user_timers
from .expected import Expected
from .from_outside import OutsideView
from .jobs import Jobs


class ClosingCut(msgspec.Struct, frozen=True, kw_only=True):
    """The cut against which a run's output is judged.

    `kind` is "end" (all input ended: the positions are the ends of the workload's splits),
    "drain", "stop" (the savepoint's positions) or "newest" (the newest completed
    checkpoint).  `checkpoint` is the snapshot of the cut, None when there is none.
    `epoch` is the last epoch within the cut: an event counts if its epoch is not greater.
    """

    kind: str
    checkpoint: int | None
    positions: Mapping[int, int]
    epoch: int


class Case:
    """The input of a checker.

    `lineage` is that of the run's end.
    """

    def __init__(self, workload: Workload, topology: Topology, history: History, alone: int | None = None) -> None:
        """`alone`: of a job that was forked from a user's copy, the snapshot; older ones are not there."""
        self.workload = workload
        self.submitted = topology
        """the topology that the run began with, also of nodes that the first job lacks (`Jobs.first`)"""
        self.history = history
        self.alone = alone
        self._positions: dict[int | None, Mapping[int, int]] = {}
        self._determined: dict[tuple[bool, bool], bool] = {}
        self._barriers: dict[tuple[str, int], dict[int, int]] = {}
        self._taken: dict[tuple[str, int], Sequence[Sequence[int]]] = {}

    @cached_property
    def forks(self) -> tuple[tuple[Forked, Case], ...]:
        """Each forked job, with the case of its own history."""
        forked = self.history.forks
        if isinstance(forked, msgspec.UnsetType):
            return ()
        alone = [one.checkpoint if one.from_copy else None for one in forked]
        cases = (Case(self.workload, self.submitted, one.history, it) for one, it in zip(forked, alone, strict=True))
        return tuple(zip(forked, cases, strict=True))

    @cached_property
    def jobs(self) -> Jobs:
        """The nodes, topologies, uids and types of each job."""
        return Jobs(self.workload, self.submitted, self._numbers, self.commands)

    @cached_property
    def retyped(self) -> tuple[str, ...]:
        """The sums whose state is not whole in some job."""
        return tuple(dict.fromkeys(name for types in self.jobs.state_types.values() for name in types))

    @cached_property
    def _numbers(self) -> frozenset[int]:
        jobs = {start.job for start in self.lineages.starts.values()} | {run.job for run in self.history.runs}
        return frozenset(jobs | {end.job for end in self.commands.ends})

    def layout_of(self, run: TaskRun) -> Topology:
        """The topology of a run's job."""
        return self.jobs.layouts[run.job]

    def rescaled(self, attempt: int, checkpoint: int) -> bool:
        """Whether an attempt's job has some operators at another parallelism than the job that took a checkpoint."""
        if not self.jobs.rescale:
            return False
        start, completed = self.lineages.starts.get(attempt), self.lineages.completed.get(checkpoint)
        if start is None or completed is None or start.job == completed.job:
            return False
        return not same_width(self.jobs.layouts[start.job], self.jobs.layouts.get(completed.job, self.jobs.first))

    @cached_property
    def lineages(self) -> Lineages:
        return Lineages(self.history)

    @cached_property
    def lineage(self) -> Lineage:
        return self.lineages.end

    def taken(self, segment: Segment) -> Sequence[Sequence[int]]:
        """By input channel, the origins of the records that a segment of the run's lineage took, in order."""
        run = segment.run
        known = self._taken.get((run.task, run.attempt))
        if known is None:
            known = self._taken[run.task, run.attempt] = by_channel(run, segment.applies)
        return known

    @property
    def runs(self) -> Mapping[tuple[str, int], TaskRun]:
        """The runs by task and attempt."""
        return self.lineages.runs

    @cached_property
    def channels(self) -> Mapping[tuple[str, int], Channel]:
        """The network's logs by channel name and attempt."""
        return {(channel.name, channel.attempt): channel for channel in self.history.channels}

    def content(self, channel: str, run: TaskRun) -> Channel | None:
        """The network's log of one of a run's inputs, from the channel's beginning on."""
        persistent = self.lineages.persistent
        return persistent.content(channel, run.attempt) if persistent else self.channels.get((channel, run.attempt))

    def inbound(self, run: TaskRun, channel: str) -> Channel | None:
        """The network's log of one of a run's inputs, from the first record on that the run took."""
        persistent = self.lineages.persistent
        return persistent.inbound(run, channel) if persistent else self.channels.get((channel, run.attempt))

    def first_taken(self, run: TaskRun, channel: str) -> int:
        """The place of a run's first record in one of its inputs."""
        return self.lineages.persistent.first_taken(run, channel) if self.lineages.persistent else 0

    def first_sent(self, run: TaskRun, channel: str) -> int | None:
        """The place of the first record that a run sent in one of its outputs.

        None if the history does not have the number of in-flight records that the receiver was restored with.
        """
        if self.lineages.persistent:
            return self.lineages.persistent.first_sent(run, channel)
        log = self.channels.get((channel, run.attempt))
        if log is not None:
            return len(log.recovered)
        return None if self._restored_in_flight(run.attempt) else 0

    def barriers(self, channel: str, run: TaskRun) -> Mapping[int, int]:
        """By checkpoint, the place of its barrier in one of a run's inputs; empty if the network has no log of it."""
        log = self.content(channel, run)
        if log is None:
            return {}
        key = (channel, log.attempt)
        known = self._barriers.get(key)
        if known is None:
            restored = len(log.recovered)
            known = self._barriers[key] = {number: restored + before for number, before in reversed(log.barriers)}
        return known

    def _restored_in_flight(self, attempt: int) -> bool:
        """Whether an attempt began with records in flight."""
        start = self.lineages.starts.get(attempt)
        if start is None or start.restores is None:
            return False
        return any(one.origins for one in self.lineages.snapshots.in_flight(start.restores).values())

    def sender(self, channel: str, run: TaskRun, checkpoint: int) -> TaskRun | None:
        """The run of the sender that sent into one of a run's inputs when a checkpoint was taken."""
        task, attempt, persistent = channel.partition(">")[0], run.attempt, self.lineages.persistent
        if persistent is not None:
            stored = self.lineages.snapshots.stored(checkpoint).get(task)
            attempt = stored.attempt if stored is not None else attempt
            if persistent.whole(attempt) != persistent.whole(run.attempt):
                return None
        return self.runs.get((task, attempt))

    @property
    def classes(self) -> Mapping[str, str]:
        """The class of each input and node."""
        return self.jobs.classes

    @cached_property
    def follows_order(self) -> bool:
        """Whether some rows or state follow the records that the run applied."""
        return self.by_applies or any(grade in FOLLOWING for grade in self.classes.values())

    @cached_property
    def drained(self) -> frozenset[int]:
        """The savepoints at which all input had ended at a user's request.

        These are the savepoints of drained jobs, those with which a drain was answered, and those in which a source
        that had been asked to drain had sent the greatest watermark, so that all windows were emitted.
        """
        drains = [one for one in self.commands.asked if one.issued.kind == "stop-with-savepoint" and one.issued.drain]
        found = [ended.checkpoint for ended in self.commands.ends if ended.status == "drained"]
        found += [one.answer.checkpoint for one in drains if one.answer is not None]
        asked = min((one.issued.order for one in drains), default=None)
        if asked is not None:
            later = [one for one in self.history.completed if one.savepoint and one.order > asked]
            found += [one.checkpoint for one in later if self._was_drained(one)]
        return frozenset(checkpoint for checkpoint in found if checkpoint is not None)

    def _was_drained(self, completed: Completed) -> bool:
        """Whether a source had sent the greatest watermark, so that all windows end, with records left to read.

        A source that has read all of its input sends this watermark without a drain.
        """
        return any(
            state.watermark == END_OF_TIME and self._has_more(task, state)
            for task, state in self.states(completed.checkpoint).items()
        )

    def _has_more(self, task: str, state: StoredState) -> bool:
        """Whether a source's snapshot leaves records to read, or its input is unbounded."""
        source = self._sources.get(task.rpartition("-")[0])
        if source is None:
            return False
        return not source.bounded or any(offset < self.ends[split] for split, offset in state.positions.items())

    @cached_property
    def _sources(self) -> dict[str, Input]:
        return {source.name: source for source in self.workload.inputs}

    @cached_property
    def ends(self) -> Mapping[int, int]:
        """By split, how many records it has."""
        return {split: len(records) for split, _, records in self.workload.splits()}

    @cached_property
    def by_applies(self) -> bool:
        """Whether rows and state follow the applied records, whatever their class.

        They do so in the modes other than exactly-once, and where a checkpoint holds in-flight data: there, records
        that were read before the checkpoint were applied after it.  They also do where a state was retyped: the rows of
        a record then depend on the job that made them.
        """
        return (
            self.history.guarantee != "exactly-once"
            or bool(self.retyped)
            or any(self.lineages.snapshots.in_flight(number) for number in self.lineages.completed)
        )

    @cached_property
    def window(self) -> Node | None:
        """The workload's window, if it has one."""
        return window_of(self.workload)

    @cached_property
    def class_(self) -> str:
        """The class of the rows that reach the sink."""
        return self.classes[self.workload.output]

    @cached_property
    def expected(self) -> Expected:
        """Out(c) and State(c)."""
        return Expected(
            self.workload,
            self.jobs.topology,
            self.lineages,
            self.classes,
            by_applies=self.by_applies,
            drained=self.drained,
            layouts=self.jobs.layouts,
            scale=self.jobs.scale if self.retyped else None,
            jobs=self.jobs if self.jobs.any_absent else None,
        )

    @cached_property
    def is_black_box(self) -> bool:
        """Whether the history lacks a witness that computing the rows of the run's lineage needs."""
        return bool(self.history.lacks(("tasks", "snapshots", "store", "reader", "journal")))

    @cached_property
    def from_outside(self) -> OutsideView:
        """The expected rows of a run that was seen from outside alone."""
        return OutsideView(self.workload, self.submitted, self.history)

    @cached_property
    def commands(self) -> Commands:
        """The users' commands and their answers."""
        return Commands(self.history)

    @cached_property
    def _triggered(self) -> dict[tuple[int, int], int]:
        return {
            (entry.job, entry.checkpoint): entry.order
            for entry in self.history.journal
            if isinstance(entry, CheckpointTriggered)
        }

    @cached_property
    def separate(self) -> frozenset[int]:
        """The savepoints to which no recovery of their own job goes back, as the history says (`History.savepoints`):
        all that were not taken to end it."""
        if isinstance(self.history.savepoints, msgspec.UnsetType):
            return frozenset()
        asked = self.commands.asked
        taken = {one.answer.checkpoint for one in asked if one.issued.kind == "savepoint" and one.answer is not None}
        stops = [one for one in asked if one.issued.kind == "stop-with-savepoint"]
        ends = {one.answer.checkpoint for one in stops if one.answer is not None}
        ends |= {one.checkpoint for one in self.commands.ends if one.status in STOPS}
        unanswered = [one.issued.order for one in stops if one.answer is None or one.interrupted]
        until = min(unanswered, default=None)
        return frozenset(
            one.checkpoint
            for one in self.history.completed
            if one.checkpoint in taken
            or (one.savepoint and one.checkpoint not in ends and (until is None or one.order < until))
        )

    @cached_property
    def committing(self) -> list[Completed]:
        """The completed snapshots whose rows may be committed, each with the order from which on they may.

        A savepoint without side effects commits nothing.  But a job that begins with it commits what it holds.
        """
        if self.history.savepoints != "without-side-effects":
            return self.history.completed
        begun: dict[int | None, int] = {}
        for start in self.lineages.starts.values():
            begun.setdefault(start.restores, start.order)
        return [
            one if one.checkpoint not in self.separate else msgspec.structs.replace(one, order=begun[one.checkpoint])
            for one in self.history.completed
            if one.checkpoint not in self.separate or one.checkpoint in begun
        ]

    def newest_before(self, order: int, job: int | None = None, *, recovers: bool = False) -> Completed | None:
        """The snapshot with the newest cut among those that were complete by then (of one job, or of all); `recovers`:
        among those to which a recovery may go back.

        It is the snapshot that was triggered last.  Snapshots may complete out of order: a savepoint may complete after
        a checkpoint that was triggered later.  A restore of the savepoint would then undo committed rows.  What a user
        had had deleted by then is left out.
        """
        left_out = self.separate if recovers else ()
        before = [
            entry
            for entry in self.history.completed
            if entry.order < order and job in (None, entry.job) and entry.checkpoint not in left_out
        ]
        if self.commands.deletions:
            deleted = self.commands.deleted_at
            before = [one for one in before if (at := deleted(one.checkpoint)) is None or at >= order]
        begun = self._triggered
        return max(
            before,
            key=lambda entry: (begun.get((entry.job, entry.checkpoint), entry.order), entry.order),
            default=None,
        )

    def to_restore(self, order: int, job: int) -> Completed | None:
        """The snapshot with which an attempt of a job has to begin at this moment; None if it has to begin empty."""
        own = self.newest_before(order, job, recovers=True)
        if own is not None:
            return own
        resume = self.commands.resume_of(job)
        if resume is None or resume.answer is None or resume.answer.error:
            return self.newest_before(order, recovers=resume is None)
        named = resume.answer.checkpoint
        return self.lineages.completed.get(named) if named is not None else None

    def is_retained(self, entry: Completed) -> bool:
        """Whether a complete snapshot was retained at rest."""
        return entry.checkpoint in self.history.residue.retained

    def is_owned(self, entry: Completed, order: int | None = None) -> bool:
        """Whether the engine may delete a complete snapshot by itself: any checkpoint and no savepoint, unless a resume
        (up to `order`) said otherwise."""
        claims = self.commands.claims(order) if self.commands.claiming else {}
        return claims.get(entry.checkpoint, not entry.savepoint)

    def is_kept(self, entry: Completed) -> bool:
        """Whether a complete snapshot has to be there at rest: it is retained, or it is not the engine's and no user
        had it deleted."""
        if self.is_retained(entry):
            return True
        if self.alone is not None and entry.checkpoint < self.alone:
            return False
        return not self.is_owned(entry) and not self.commands.may_be_deleted(entry.checkpoint)

    @cached_property
    def rewound(self) -> bool:
        """Whether the answer to a resume names another snapshot than the newest completed one.

        The job then commits the rows again that were committed after that snapshot, as its user wished.  Its output
        can only be judged for missing rows.
        """
        for one in self.commands.asked:
            if one.issued.kind == "resume" and one.answer is not None and not one.answer.error:
                newest = self.newest_before(one.issued.order)
                if newest is not None and one.answer.checkpoint != newest.checkpoint:
                    return True
        return False

    @cached_property
    def went_on_drained(self) -> bool:
        """Whether a job began with a drained savepoint: from then on nothing is promised of windows."""
        return self.last_with_windows is not None

    @cached_property
    def last_with_windows(self) -> int | None:
        """The first job from whose drained savepoint another job began; None if there is no such job.

        All windows had been emitted at that savepoint.
        """
        begun = [start.restores for start in self.lineages.starts.values() if self._is_first(start)]
        return min((self.lineages.completed[one].job for one in begun if one in self.drained), default=None)

    def _is_first(self, start: AttemptStarted) -> bool:
        """Whether an attempt restores a completed snapshot that another job took."""
        return start.restores in self.lineages.completed and self.lineages.completed[start.restores].job != start.job

    @cached_property
    def promised(self) -> frozenset[str]:
        """The names of the invariants that a correct engine keeps in this case."""
        found = promised(self.history.guarantee, self.history.sink)
        if self.window and self.went_on_drained:
            found &= {"progress", "no-leaks", "at-most-once"}
        if self.late_for_timers:
            found &= {"progress", "no-leaks"}
        if self.rewound and self.lineages.persistent is not None:
            # which tasks that recovered in place are in front of an older snapshot is not followed
            found -= {"consistent-cut", "order"}
        return found - {"exactly-once", "visibility"} if self.rewound else found

    @cached_property
    def late_for_timers(self) -> bool:
        """Whether records may come late for a user function's timers, which no counterpart defines.

        Repeated records are late, and records that were in flight at a checkpoint may be.
        """
        return self.by_applies and has_user_timers(self.workload)

    def not_promised(self, invariant: str, detail: str) -> Unknown:
        """The verdict on an invariant that is not `promised`; `detail` says why the guarantee does not promise it."""
        if self.late_for_timers and invariant in promised(self.history.guarantee, self.history.sink):
            detail = "records may come late for a user's timers, and no counterpart defines what happens to them"
        return Unknown(reason=Reason.NOT_PROMISED, detail=detail)

    @cached_property
    def ended(self) -> JobEnded | None:
        """How the last job ended; None if it is still running.

        A job that was cancelled before it started has no attempt.
        """
        start = self.lineages.starts.get(self.lineages.last_attempt)
        ends = [entry for entry in self.history.journal if isinstance(entry, JobEnded)]
        runs = self.history.runs
        job = start.job if start else max([*(run.job for run in runs), *(end.job for end in ends)], default=0)
        return next((end for end in reversed(ends) if end.job == job), None)

    @cached_property
    def rows_are_known(self) -> bool:
        """Whether the expected rows can be computed.

        They cannot if they follow the applied records, and the history does not show which of several rows of one
        origin was applied at which subtask: after a rebalance, or a user's function that buffers rows without a key.
        """
        if not self.expected.follows_applies:
            return True
        strict = self.by_applies or self.history.sink != "transactional"
        return self.is_determined(every_attempt=strict)

    def is_determined(self, *, every_attempt: bool = False, at_sink: bool = True) -> bool:
        """Whether a replay of this case knows which rows were applied: see `replay.is_determined`."""
        asked = (every_attempt, at_sink)
        if asked not in self._determined:
            self._determined[asked] = is_determined(
                self.workload, self.jobs.topology, every_attempt=every_attempt, at_sink=at_sink
            )
        return self._determined[asked]

    def states(self, checkpoint: int) -> Mapping[str, StoredState]:
        """The decoded snapshots of a completed checkpoint, by task."""
        return self.lineages.snapshots.states(checkpoint)

    def states_of(self, operator: str, checkpoint: int) -> Mapping[str, StoredState]:
        """The decoded snapshots of an operator's tasks in a completed checkpoint, by task."""
        return self.lineages.snapshots.states_of(operator, checkpoint)

    def positions(self, checkpoint: int | None) -> Mapping[int, int]:
        """The next offset of every split at a completed checkpoint; 0 where the checkpoint has none."""
        known = self._positions.get(checkpoint)
        if known is None:
            stored = {} if checkpoint is None else self.lineages.snapshots.positions(checkpoint)
            known = self._positions[checkpoint] = {split: stored.get(split, 0) for split in self.ends}
        return known

    @cached_property
    def closing(self) -> ClosingCut:
        """The cut at which the whole run is judged."""
        committing = {one.checkpoint for one in self.committing}
        newest = next((one for one in reversed(self.lineage.checkpoints) if one in committing), None)
        ended = self.ended
        status = ended.status if ended else ""
        if status == "finished":
            return ClosingCut(kind="end", checkpoint=newest, positions=self.ends, epoch=INFINITE)
        kind = {"drained": "drain", "stopped": "stop"}.get(status, "newest")
        cut = newest
        if kind != "newest" and ended is not None and ended.checkpoint in self.lineage.checkpoints:
            cut = ended.checkpoint
        elif self._never_began is not None and self._never_began.checkpoint in self.lineage.checkpoints:
            cut = self._never_began.checkpoint
        return ClosingCut(kind=kind, checkpoint=cut, positions=self.positions(cut), epoch=-1 if cut is None else cut)

    @cached_property
    def _never_began(self) -> JobEnded | None:
        """The end of the last job, if it ended before its first attempt: it rests on the older snapshot that its user
        named."""
        last = self.commands.ends[-1] if self.commands.ends and self.rewound else None
        began = {start.job for start in self.lineages.starts.values()}
        return last if last is not None and last.job not in began else None

    @cached_property
    def committed(self) -> Counter[Row]:
        """K: the rows that an independent reader sees at the end."""
        return Counter(self.history.committed)

    @cached_property
    def _transactions(self) -> dict[tuple[str, int], list[Transaction]]:
        found: dict[tuple[str, int], list[Transaction]] = {}
        for transaction in self.history.transactions:
            found.setdefault((transaction.task, transaction.attempt), []).append(transaction)
        return found

    def transactions_of(self, task: str, attempt: int) -> Sequence[Transaction]:
        """The transactions that one attempt of a sink subtask began, in order."""
        return self._transactions.get((task, attempt), [])

    @cached_property
    def pending_transactions(self) -> tuple[Transaction, ...]:
        """The sealed transactions that are named in a snapshot of a completed checkpoint up to the closing cut.

        They are neither committed nor aborted.  The engine has to commit them.
        """
        promised_names = {
            name
            for checkpoint in self.lineage.checkpoints
            if checkpoint <= self.closing.epoch
            for state in self.states(checkpoint).values()
            for name, _ in state.transactions
        }
        return tuple(
            transaction
            for transaction in self.history.transactions
            if transaction.status == "prepared" and transaction.name in promised_names
        )

    @cached_property
    def pending(self) -> Counter[Row]:
        """P: the rows of the pending transactions."""
        return Counter(row for transaction in self.pending_transactions for row in transaction.rows)

    @cached_property
    def settled(self) -> Counter[Row]:
        """K plus P."""
        return self.committed + self.pending
