"""What a world reports, as the history that the checkers read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cutproof.harness.reference_engine.subjects.recorder import Recorder
from cutproof.properties.model import history as h
from cutproof.properties.model.causes import IncompatibleJob, OtherCause
from cutproof.properties.model.struck import StruckChannel, StruckCommit, StruckDelete, TornWrite
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary import status_changes as changes
from cutproof.reference_impl.core.vocabulary import transactions as t
from cutproof.reference_impl.core.vocabulary.causes import Killed, OperatorsAdded
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.core.vocabulary.events import CommandKind
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from unit.snapshots import snapshot

BY: dict[str, Any] = {"writer": TaskId("sink-0"), "attempt": AttemptId(2)}
ROW = (1, 10, 100, 0)


class Watched:
    """A recorder with a clock to set, and its history."""

    def __init__(self, detailed: bool = False) -> None:
        self.now_us = 50
        self.history = h.History(subject="simulated", guarantee="exactly-once", sink="transactional")
        self.recorder = Recorder(self.history, ["kill-task", "fail-write"], lambda: self.now_us, detailed)

    def task(self) -> Any:
        return self.recorder.task_started(
            TaskId("a-0"), "a", 0, AttemptId(2), 1, inputs=["s-0>a-0"], outputs=["a-0>b-0"]
        )

    def transact(self, *requests: t.AnyRequest, applied: int = 0, outcome: t.Outcome | None = None) -> None:
        for request in requests:
            self.recorder.saw(o.Transacted.of(request, outcome or t.Done(), applied))

    @property
    def transaction(self) -> h.Transaction:
        (one,) = self.history.transactions
        return one


@pytest.fixture
def watched() -> Watched:
    return Watched()


def without_order(entry: Any) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__struct_fields__ if name not in ("order", "at_us")}


# -- tasks -------------------------------------------------------------------------------------------------------


def test_a_task_has_its_own_program_order(watched: Watched) -> None:
    log = watched.task()
    log.reads.append((0, 7))
    log.applies.append((0, 512))
    watched.recorder.saw(o.Marked(log.run, CheckpointId(3), (1,), (4,)))
    log.applies.append((0, 513))
    (run,) = watched.history.runs
    assert (run.task, run.operator, run.attempt, run.inputs, run.outputs) == ("a-0", "a", 2, ["s-0>a-0"], ["a-0>b-0"])
    (mark,) = run.marks
    assert (mark.checkpoint, mark.reads, mark.applies, mark.received, mark.sent) == (3, 1, 1, [1], [4])
    assert (mark.at_us, mark.events) == (50, 2)
    assert run.started < mark.order


def test_events_are_counted_over_all_tasks(watched: Watched) -> None:
    first, second = watched.task(), watched.task()
    first.reads.append((0, 0))
    second.applies.append((0, 0))
    watched.recorder.saw(o.Marked(second.run, CheckpointId(1), (), ()))
    assert watched.history.runs[1].marks[0].events == 2


def test_what_an_attempt_loaded_and_how_much_it_had_done_by_then(watched: Watched) -> None:
    log = watched.task()
    log.applies.append((0, 1))
    watched.recorder.saw(o.StateRestored(log.run, CheckpointId(3), '{"turn":1}'))
    loaded = watched.history.runs[0].loaded
    assert loaded is not None
    assert (loaded.checkpoint, loaded.applies_before, loaded.state) == (3, 1, '{"turn":1}')


def test_how_an_attempt_ended(watched: Watched) -> None:
    log = watched.task()
    watched.recorder.saw(o.InputEnded(log.run))
    assert (watched.history.runs[0].end_of_data, watched.history.runs[0].how) == (True, "alive")
    watched.recorder.saw(o.RunEnded(log.run, o.RunEnd.KILLED))
    (run,) = watched.history.runs
    assert run.how == "killed"
    assert run.ended is not None
    assert run.ended > run.started


def test_a_channels_log_is_the_networks_own(watched: Watched) -> None:
    channel = watched.recorder.channel_opened("a-0>b-0", AttemptId(2))
    channel.sent.append(512)
    assert watched.history.channels == [h.Channel(name="a-0>b-0", attempt=2, sent=[512], barriers=[])]


# -- the coordinator ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        (
            changes.AttemptStarted(AttemptId(2), CheckpointId(3), "it was killed"),
            h.AttemptStarted(order=1, at_us=50, attempt=2, job=1, restores=3, cause="it was killed"),
        ),
        (changes.AttemptRunning(AttemptId(2)), h.AttemptRunning(order=1, at_us=50, attempt=2)),
        (
            changes.CheckpointTriggered(CheckpointId(4), AttemptId(2), False),
            h.CheckpointTriggered(order=1, at_us=50, checkpoint=4, job=1, attempt=2),
        ),
        (
            changes.CheckpointTriggered(CheckpointId(4), AttemptId(2), True),
            h.CheckpointTriggered(order=1, at_us=50, checkpoint=4, job=1, attempt=2, savepoint=True),
        ),
        (
            changes.CheckpointAborted(CheckpointId(4), AttemptId(2), "late"),
            h.CheckpointAborted(order=1, at_us=50, checkpoint=4, reason="late"),
        ),
    ],
)
def test_status_changes_become_entries(
    watched: Watched, change: changes.AnyStatusChange, entry: h.AnyJournalEntry
) -> None:
    watched.recorder.saw(o.StatusChanged(1, change))
    assert watched.history.journal == [entry]


def test_what_is_no_entry_is_left_to_the_timeline(watched: Watched) -> None:
    watched.recorder.saw(o.StatusChanged(1, changes.CheckpointAcknowledged(CheckpointId(4), AttemptId(2))))
    assert watched.history.journal == []


def test_the_rest_of_the_journal(watched: Watched) -> None:
    recorder = watched.recorder
    recorder.saw(o.task_failed(TaskId("a-0"), AttemptId(2), Killed(), 0))
    recorder.saw(o.CoordinatorChanged(False, 1))
    recorder.saw(o.CoordinatorChanged(True, None))
    recorder.saw(o.CommandIssued(5, CommandKind.STOP, True))
    recorder.saw(o.command_returned(5, CheckpointId(4), None))
    recorder.saw(o.command_returned(5, None, OperatorsAdded(("b",), CheckpointId(4))))
    recorder.saw(o.SnapshotsDeleted(CheckpointId(3), (Handle("h"),)))
    recorder.saw(o.SnapshotsDeleted(None, (Handle("h"),)))
    recorder.saw(o.job_ended(1, Status.DRAINED, CheckpointId(4), None))
    recorder.saw(o.FaultFired(1, "running", "a write failed", 2))
    recorder.saw(o.FaultFired(1, "running", "half of h", 2, o.TornWrite(Handle("h"))))
    recorder.saw(o.FaultFired(1, "running", "it stays", None, o.StruckDelete(Handle("h"))))
    recorder.saw(o.FaultFired(1, "running", "too late", 2, o.StruckCommit(("a-0/7",), "expired")))
    recorder.saw(o.FaultFired(1, "running", "nothing passes", 2, o.StruckChannel("a-0>b-0")))
    fault = {"fault": 1, "kind": "fail-write", "phase": "running", "attempt": 2}
    assert [(type(entry), without_order(entry)) for entry in watched.history.journal] == [
        (h.TaskFailed, {"task": "a-0", "attempt": 2, "reason": "it was killed", "fault": 0, "cause": OtherCause()}),
        (h.CoordinatorDown, {"fault": 1, "reason": ""}),
        (h.CoordinatorUp, {}),
        (
            h.CommandIssued,
            {
                "command": 5,
                "kind": "stop-with-savepoint",
                "drain": True,
                "format": "",
                "checkpoint": None,
                "parallelism": {},
            }
            | {"inserted": {}, "claimed": None, "upgrade": msgspec.UNSET},
        ),
        (h.CommandReturned, {"command": 5, "checkpoint": 4, "error": "", "cause": None}),
        (
            h.CommandReturned,
            {"command": 5, "checkpoint": None, "cause": IncompatibleJob(operators=("b",))}
            | {"error": "checkpoint 4 holds no state of b: its job had no such operator"},
        ),
        (h.SnapshotDeleted, {"checkpoint": 3, "handles": ["h"]}),
        (h.SnapshotDeleted, {"checkpoint": 0, "handles": ["h"]}),
        (
            h.JobEnded,
            {"job": 1, "status": "drained", "checkpoint": 4, "reason": "", "covers": None, "undisturbed": False}
            | {"cause": None},
        ),
        (h.FaultFired, {**fault, "detail": "a write failed", "struck": None}),
        (h.FaultFired, {**fault, "detail": "half of h", "struck": TornWrite(handle="h")}),
        (h.FaultFired, {**fault, "detail": "it stays", "attempt": None, "struck": StruckDelete(handle="h")}),
        (h.FaultFired, {**fault, "detail": "too late", "struck": StruckCommit(transactions=("a-0/7",), how="expired")}),
        (h.FaultFired, {**fault, "detail": "nothing passes", "struck": StruckChannel(channel="a-0>b-0")}),
    ]
    orders = [entry.order for entry in watched.history.journal]
    assert orders == sorted(set(orders))


def test_a_fault_has_healed_no_sooner_than_it_fired(watched: Watched) -> None:
    watched.recorder.saw(o.FaultFired(0, "running", "", None))
    fired = watched.history.healed
    watched.recorder.saw(o.FaultHealed(0))
    assert fired is not None
    assert watched.history.healed is not None
    assert watched.history.healed > fired


PLAN = ["pause-task", "stall-channel", "kill-task", "kill-database"]
PAUSE, STALL, KILL, DATABASE = range(4)


@pytest.fixture
def planned() -> tuple[Recorder, h.History]:
    history = h.History(subject="simulated", guarantee="exactly-once", sink="transactional")
    return Recorder(history, PLAN, lambda: 0, False), history


def test_nothing_has_healed_while_one_of_two_faults_lasts(planned: tuple[Recorder, h.History]) -> None:
    recorder, history = planned
    for fault in (STALL, PAUSE):
        recorder.saw(o.FaultFired(fault, "running", "", None))
    assert (history.healed, history.lasting) == (None, [PAUSE, STALL])
    recorder.saw(o.FaultHealed(STALL))
    assert (history.healed, history.lasting) == (None, [PAUSE])
    recorder.saw(o.FaultFired(KILL, "running", "", None))
    assert history.healed is None, "a kill undoes itself, and nothing else"
    recorder.saw(o.FaultHealed(PAUSE))
    assert (history.healed, history.lasting) == (recorder.order() - 1, [])


@pytest.mark.parametrize("fault", [PAUSE, STALL, DATABASE])
def test_a_fault_that_is_felt_only_when_it_has_healed_does_not_last(
    planned: tuple[Recorder, h.History], fault: int
) -> None:
    recorder, history = planned
    recorder.saw(o.FaultHealed(fault))
    recorder.saw(o.FaultFired(fault, "running", "", None))
    assert (history.healed, history.lasting) == (history.journal[-1].order - 1, [])


def test_a_fault_that_nobody_has_felt_may_last_all_the_same(planned: tuple[Recorder, h.History]) -> None:
    recorder, history = planned
    recorder.saw(o.FaultFired(KILL, "running", "", None))
    recorder.fault_lasts(STALL)
    assert (history.healed, history.lasting) == (None, [STALL])


# -- the stores --------------------------------------------------------------------------------------------------


def test_stored_and_completed(watched: Watched) -> None:
    watched.recorder.saw(o.SnapshotStored(CheckpointId(3), TaskId("a-0"), AttemptId(2), Handle("h"), "{}"))
    watched.recorder.saw(o.CheckpointCompleted(snapshot(3, attempt=2, savepoint=True, handles={"a-0": "h"})))
    assert watched.history.stored == [
        h.Stored(checkpoint=3, task="a-0", attempt=2, order=1, at_us=50, handle="h", state="{}")
    ]
    assert watched.history.completed == [
        h.Completed(checkpoint=3, job=1, attempt=2, order=2, at_us=50, handles={"a-0": "h"}, savepoint=True)
    ]


def test_a_log_whose_writer_died_before_it_reported_it_is_cleared_all_the_same(watched: Watched) -> None:
    watched.recorder.saw(o.LogOpened("log/a-0/0", TaskId("a-0"), AttemptId(2)))
    watched.recorder.saw(o.LogsCleared(["log/a-0/1", "log/a-0/0"]))
    (log,) = watched.history.logs
    assert log.name == "log/a-0/0"
    assert log.cleared is not None
    assert log.cleared > log.opened


def test_a_transactions_account(watched: Watched) -> None:
    watched.transact(t.BeginTransaction(**BY, name="t"))
    watched.transact(t.Write(**BY, name="t", rows=(ROW, ROW)), applied=5)
    watched.transact(t.PreCommit(**BY, name="t", checkpoint=CheckpointId(3)))
    watched.recorder.saw(o.CommitRequested("t"))
    watched.recorder.saw(o.CommitRequested("t"))
    watched.transact(t.Commit(**BY, name="t"))
    watched.transact(t.AbortTransaction(**BY, name="t"))
    assert watched.transaction == h.Transaction(
        name="t",
        task="sink-0",
        attempt=2,
        begun=1,
        rows=[ROW, ROW],
        applied=[5, 5],
        checkpoint=3,
        prepared=2,
        commit_requested=3,
        committed=4,
        status="committed",
    )


def test_an_aborted_transaction_stays_aborted(watched: Watched) -> None:
    watched.transact(t.BeginTransaction(**BY, name="t"), t.AbortTransaction(**BY, name="t"), t.Commit(**BY, name="t"))
    assert (watched.transaction.status, watched.transaction.aborted, watched.transaction.committed) == (
        "aborted",
        2,
        None,
    )


def test_what_the_store_did_not_do_is_not_recorded(watched: Watched) -> None:
    watched.transact(t.BeginTransaction(**BY, name="t"), t.Append(**BY, row=ROW), outcome=t.Denied(reason="fenced"))
    watched.transact(t.Write(**BY, name="never begun", rows=(ROW,)))
    watched.recorder.saw(o.CommitRequested("never begun"))
    assert (watched.history.transactions, watched.history.written) == ([], [])


def test_a_name_begun_twice_is_one_transaction(watched: Watched) -> None:
    watched.transact(t.BeginTransaction(**BY, name="t"), t.BeginTransaction(**BY, name="t"))
    assert watched.transaction.begun == 1


@pytest.mark.parametrize("request_", [t.Append(**BY, row=ROW), t.Upsert(**BY, identity=(1,), row=ROW)])
def test_a_row_that_is_visible_at_once(watched: Watched, request_: t.AnyRequest) -> None:
    watched.transact(request_, applied=4)
    assert watched.history.written == [h.Written(task="sink-0", attempt=2, order=1, applied=4, row=ROW)]


def test_a_reader_that_looked(watched: Watched) -> None:
    watched.recorder.saw(o.Looked(began=watched.recorder.order(), rows=6))
    assert watched.history.reads == [h.Read(began=1, ended=2, rows=6)]


# -- the time line -----------------------------------------------------------------------------------------------


def everything(watched: Watched) -> None:
    recorder, log = watched.recorder, watched.task()
    watched.recorder.saw(o.Marked(log.run, CheckpointId(3), (), ()))
    watched.recorder.saw(o.StateRestored(log.run, CheckpointId(3), "{}"))
    watched.recorder.saw(o.RunEnded(log.run, o.RunEnd.KILLED))
    recorder.saw(o.StatusChanged(1, changes.CheckpointAcknowledged(CheckpointId(3), AttemptId(2))))
    recorder.saw(o.CoordinatorChanged(False, None))
    recorder.saw(o.CoordinatorChanged(True, None))
    recorder.saw(o.SnapshotStored(CheckpointId(3), TaskId("a-0"), AttemptId(2), Handle("h"), "{}"))
    recorder.saw(o.CheckpointCompleted(snapshot(3, attempt=2)))
    watched.transact(t.BeginTransaction(**BY, name="t"), t.PreCommit(**BY, name="t", checkpoint=CheckpointId(3)))
    recorder.saw(o.FaultFired(0, "running", "a-0 is killed", 2))
    recorder.saw(o.job_ended(1, Status.FINISHED, None, None))


def test_a_timeline_is_kept_on_request() -> None:
    watched = Watched(detailed=True)
    everything(watched)
    assert [(event.what, event.task) for event in watched.history.timeline] == [
        ("task-deployed", "a-0"),
        ("snapshot-taken", "a-0"),
        ("state-loaded", "a-0"),
        ("ended", "a-0"),
        ("checkpoint-acknowledged", "coordinator"),
        ("killed", "coordinator"),
        ("coordinator-up", "coordinator"),
        ("snapshot-persisted", "a-0"),
        ("checkpoint-completed", "coordinator"),
        ("transaction-prepared", "sink-0"),
        ("fault-fired", ""),
        ("job-ended", "coordinator"),
    ]


def test_otherwise_nothing_is_kept(watched: Watched) -> None:
    everything(watched)
    assert watched.history.timeline == []
