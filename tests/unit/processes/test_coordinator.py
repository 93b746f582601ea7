"""The coordinator's process: where it deploys, and whom it takes for alive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cutproof.reference_impl.core.vocabulary.causes import HeartbeatMissed, Killed, ProcessGone
from cutproof.reference_impl.core.vocabulary.effects import SaveJob
from cutproof.reference_impl.core.vocabulary.events import CommandKind
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Deploy, Trigger
from cutproof.reference_impl.core.vocabulary.stages import StageName
from cutproof.reference_impl.driver.coordination import CoordinatorRunner
from cutproof.reference_impl.processes import coordinator as module
from cutproof.reference_impl.processes.loop import monotonic_us
from cutproof.reference_impl.processes.network import frames as f
from unit.processes.coordinated import APART, FakeNode, losses, savepoint, submit, watched, working
from unit.processes.rig import (
    TASKS,
    CoordinatorProcess,
    lives_without_harness,
    now,
    until,
)

__all__ = ["lives_without_harness"]

QUICK: dict[str, Any] = {"heartbeat_us": 20_000, "heartbeat_timeout_us": 60_000}


@pytest.fixture
def process(tmp_path: Path) -> Iterator[CoordinatorProcess]:
    with CoordinatorProcess(tmp_path) as made:
        yield made


# -- deployments -----------------------------------------------------------------------------------------------------


def test_a_deployment_waits_for_a_process_that_is_not_there_yet(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path, processes=APART) as process:
        submit(process)
        early = FakeNode(process, "source-0").runs()
        process.answers()
        assert process.harness.all(f.JobFacts)[-1].stage is StageName.DEPLOYING
        assert [type(message) for message in early.messages] == [Deploy]
        FakeNode(process, "map-0").runs()
        FakeNode(process, "sink-0").runs()
        working(process)


def test_a_deployment_of_an_attempt_that_is_over_is_no_longer_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process comes while the number of the next attempt is being saved."""
    saving: list[tuple[CoordinatorRunner, SaveJob]] = []
    with CoordinatorProcess(tmp_path, processes=APART) as process:
        submit(process)
        source = FakeNode(process, "source-0").runs()
        records = process.world.records
        save_job = records.save_job
        monkeypatch.setattr(records, "save_job", lambda runner, effect: saving.append((runner, effect)))
        source.peer.sock.close()
        until(lambda: saving)
        late = FakeNode(process, "sink-0")
        process.answers()
        assert late.messages == []
        save_job(*saving.pop())
        late.deployed(2)
        assert late.messages == [Deploy(job=1, attempt=AttemptId(2))]


def test_tasks_of_one_process_are_deployed_there_together(process: CoordinatorProcess) -> None:
    node = FakeNode(process)
    submit(process, attempt=7)
    node.runs(7)
    working(process, 7)
    assert [message.attempt for message in node.messages if isinstance(message, Deploy)] == [7] * len(TASKS)


def test_the_numbers_of_a_job_begin_where_its_order_names(process: CoordinatorProcess) -> None:
    node = FakeNode(process)
    submit(process, attempt=5, checkpoint=12)
    node.runs(5)
    process.harness.send(f.Issue(now(), 1, 0, CommandKind.SAVEPOINT, False))
    node.peer.expect(f.ForTask, message=Trigger(job=1, attempt=AttemptId(5), checkpoint=CheckpointId(12)))


# -- who is there ----------------------------------------------------------------------------------------------------


def test_a_node_whose_connection_ends_is_lost_with_all_its_tasks(process: CoordinatorProcess) -> None:
    submit(process)
    FakeNode(process).runs().peer.sock.close()
    process.harness.expect(f.JobFacts, attempt=2)
    assert losses(process) == [(task, 1, str(ProcessGone())) for task in TASKS]
    FakeNode(process, incarnation=1).runs(2)
    working(process, 2)
    assert process.harness.all(f.Lost) == [], "who it was is known already"


def test_a_node_that_speaks_another_version_is_hung_up_on_and_the_coordinator_lives(
    process: CoordinatorProcess,
) -> None:
    submit(process)
    node = FakeNode(process).runs()
    node.peer.babble()
    assert node.peer.ends()
    process.harness.expect(f.JobFacts, attempt=2)
    assert losses(process) == [(task, 1, str(ProcessGone())) for task in TASKS]
    process.answers()


def test_a_replaced_incarnation_is_turned_away_and_nothing_is_deployed_there(process: CoordinatorProcess) -> None:
    newer = FakeNode(process, incarnation=1)
    process.answers()
    older = FakeNode(process, incarnation=0)
    older.peer.expect(f.GivenUp)
    submit(process)
    newer.runs()
    working(process)
    assert older.messages == []


def test_what_an_older_incarnation_sends_counts_for_nothing(process: CoordinatorProcess) -> None:
    older = FakeNode(process)
    submit(process)
    older.runs()
    working(process)
    savepoint(process, older)
    newer = FakeNode(process, incarnation=1)
    newer.runs(2)
    working(process, 2)
    older.acknowledges(1)
    older.peer.send(f.Failed(now(), TASKS[1], AttemptId(1), Killed()))
    process.answers()
    assert process.harness.all(f.Completed) == []
    assert process.harness.all(f.JobFacts)[-1].attempt == 2
    assert losses(process) == [(task, 1, str(ProcessGone())) for task in TASKS], "lost when it was replaced, and once"


def test_the_end_of_an_older_connection_does_not_touch_what_lives_in_the_newer(process: CoordinatorProcess) -> None:
    older = FakeNode(process)
    submit(process)
    older.deployed(1)
    newer = FakeNode(process, incarnation=1)
    newer.runs(2)
    working(process, 2)
    older.peer.sock.close()
    until(lambda: len(process.world.control.connections) == 1)
    process.harness.send(f.Issue(now(), 1, 0, CommandKind.SAVEPOINT, False))
    newer.peer.expect(f.ForTask, message=Trigger(job=1, attempt=AttemptId(2), checkpoint=CheckpointId(1)))
    assert process.harness.all(f.JobFacts)[-1].attempt == 2


def test_a_node_that_connects_again_keeps_what_runs_there(process: CoordinatorProcess) -> None:
    """As after the death of another coordinator: its tasks are those of an attempt."""
    FakeNode(process, attempt=3).peer.sock.close()
    until(lambda: losses(process))
    assert losses(process) == [(task, 3, str(ProcessGone())) for task in TASKS]


# -- signs of life ---------------------------------------------------------------------------------------------------


def test_one_that_gives_no_sign_of_life_is_given_up_exactly_once(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path, **QUICK) as process:
        node = FakeNode(process, incarnation=4)
        submit(process)
        node.runs()
        lost = process.harness.expect(f.Lost)
        assert (lost.process, lost.incarnation) == ("node-0", 4)
        watched(process, 6)
        process.answers()
        assert len(process.harness.all(f.Lost)) == 1
        assert losses(process) == [(task, 1, str(HeartbeatMissed())) for task in TASKS]
        node.peer.sock.close()
        watched(process)
        process.answers()
        assert len(process.harness.all(f.Lost)) == 1
        assert len(losses(process)) == len(TASKS)


def test_one_that_was_given_up_and_sends_again_is_notified_of_it(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path, **QUICK) as process:
        zombie = FakeNode(process)
        submit(process)
        zombie.runs()
        process.harness.expect(f.Lost)
        assert zombie.peer.all(f.GivenUp) == []
        zombie.peer.send(f.Heartbeat(now()))
        zombie.peer.expect(f.GivenUp)


def test_one_that_beats_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is put forward, each time by less than what counts as a machine that stood still, and in all by more
    than the timeout. A busy machine does not keep this test from beating for that long."""
    leapt = [0]
    monkeypatch.setattr(module, "monotonic_us", lambda: monotonic_us() + leapt[0])
    with CoordinatorProcess(tmp_path, heartbeat_us=100_000, heartbeat_timeout_us=2_000_000) as process:
        node = FakeNode(process)
        while leapt[0] < 3_000_000:
            node.peer.send(f.Heartbeat(now()))
            watched(process)
            leapt[0] += 200_000
        assert process.harness.all(f.Lost) == []


def test_a_coordinator_that_stood_still_itself_blames_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that was suspended: every node seems silent then."""
    leapt = [0]
    monkeypatch.setattr(module, "monotonic_us", lambda: monotonic_us() + leapt[0])
    with CoordinatorProcess(tmp_path, heartbeat_us=20_000, heartbeat_timeout_us=30_000_000) as process:
        FakeNode(process)
        process.answers()
        for _ in range(3):
            leapt[0] += 60_000_000
            watched(process, 2)
        process.answers()
        assert process.harness.all(f.Lost) == []
