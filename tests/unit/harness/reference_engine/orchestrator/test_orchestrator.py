"""How the orchestrator leads a run from its first process to its end, and what it does when a process dies."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cutproof.faults import plan
from cutproof.faults.plan import AtPoint, AtTime
from cutproof.harness.reference_engine.orchestrator import bound
from cutproof.harness.reference_engine.orchestrator import orchestrator as module
from cutproof.harness.reference_engine.orchestrator.orchestrator import MOST_DEATHS
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.port import SubjectFailed
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, TaskId
from cutproof.reference_impl.processes.network import frames as f
from cutproof.reference_impl.processes.stores.sinks import SinkPlace
from unit.harness.puppets import Run, Script, now, played_by_puppets
from unit.harness.scenarios import chain
from unit.harness.stage import planned

__all__ = ["played_by_puppets"]

EVER = AtTime(at_us=100_000_000)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def make(*faults: plan.AnyFault, scenario: Scenario | None = None) -> Run:
        runs.append(Run(tmp_path, scenario or planned(chain(), *faults)))
        return runs[-1]

    yield make
    for run in runs:
        run.close()


def whole(run: Run) -> Script:
    yield from run.begins()
    yield from run.finishes()


# -- from the beginning to the end -----------------------------------------------------------------------------------


def test_a_run_is_over_when_its_job_has_ended_and_everybody_has_parted(begin: Callable[..., Run]) -> None:
    run = begin()
    run.run(whole)
    evidence = run.orchestrator.evidence()
    assert (evidence.quiet, evidence.committed, evidence.residue.live_sinks) == (True, [], 0)
    (order,) = run.coordinator.received(f.Submit)
    assert (order.job, order.attempt, order.checkpoint, order.initial, order.recall) == (1, 1, 1, (), False)
    assert len(run.entries(o.Closing)) == 1
    assert all(puppet.signals == [signal.SIGSTOP] for puppet in run.launcher.puppets), "all stand still at the end"
    assert run.launcher.puppets[0].name == "coordinator"
    assert len(run.launcher.puppets) == 9


def test_at_the_end_every_process_is_killed_and_reported_by_nobody(begin: Callable[..., Run]) -> None:
    run = begin()
    run.run(whole)
    run.close()
    assert all(puppet.signals[-1] == signal.SIGKILL for puppet in run.launcher.puppets)
    assert run.deaths == []


def test_a_node_is_one_process_with_all_its_tasks(begin: Callable[..., Run]) -> None:
    run = begin(plan.KillNode(trigger=EVER, node=0))
    run.run(whole)
    assert [puppet.name for puppet in run.launcher.puppets] == ["coordinator", "node-0", "node-1"]
    assert [len(puppet.tasks) for puppet in run.launcher.puppets] == [0, 4, 4]
    assert run.orchestrator.evidence().quiet


def test_one_that_does_not_come_up_is_named_with_its_last_words(
    begin: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READY_WITHIN_US", 30_000)
    run = begin()
    run.launcher.stay_silent = ("map-1",)
    run.launcher.log("run.map-1").write_text("one\n\n  ImportError: no such thing \n\n")
    with pytest.raises(SubjectFailed, match=r"^map-1 did not come up: ImportError: no such thing$"):
        run.run(whole)


def test_one_that_ends_at_its_start_ends_the_run(begin: Callable[..., Run]) -> None:
    run = begin()
    run.launcher.stay_silent = ("map-1",)

    def script(run: Run) -> Script:
        run.launcher.ends(run.newest("map-1"), code=70, last_line="KeyError: 'x'")
        yield

    with pytest.raises(SubjectFailed, match=r"^map-1 ended with exit code 70 at its start: KeyError: 'x'$"):
        run.run(script)


def test_one_that_sends_what_cannot_be_read_is_killed_for_it_and_replaced(begin: Callable[..., Run]) -> None:
    run = begin()

    def script(run: Run) -> Script:
        yield from run.begins()
        run.newest("map-1").sock.sendall(b"\x07 and so on")
        yield from run.until(lambda: len(run.named("map-1")) == 2)
        run.newest("map-1").up(attempt=2)
        yield from run.finishes()

    run.run(script)
    ((name, incarnation, reason, fault),) = run.deaths
    assert (name, incarnation, fault) == ("map-1", 0, None)
    assert reason.startswith(
        "its process ended with SIGKILL after it had sent an unreadable message (a frame begins with 7"
    )
    assert run.named("map-1")[0].signals == [signal.SIGKILL]


def test_what_is_not_its_to_send_ends_the_run(begin: Callable[..., Run]) -> None:
    run = begin()

    def script(run: Run) -> Script:
        yield from run.begins()
        run.newest("map-1").say(f.Go(now()))
        run.may_end()
        yield from run.until(lambda: False)

    with pytest.raises(SubjectFailed, match="map-1 sent a frame that it must not send: Go"):
        run.run(script)


def cut_off_within(monkeypatch: pytest.MonkeyPatch, *, standing_us: int, most_us: int = 30_000_000) -> None:
    monkeypatch.setattr(bound, "standstill_us", lambda scenario: 1)
    monkeypatch.setattr(bound, "LEAST_US", standing_us)
    monkeypatch.setattr(bound, "MOST_US", most_us)
    monkeypatch.setattr(bound, "CHECK_US", 20_000)


def test_a_job_that_stands_still_is_cut_off_and_its_rest_is_expected(
    begin: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off_within(monkeypatch, standing_us=100_000)
    run = begin()

    def script(run: Run) -> Script:
        yield from run.begins()

    began = now()
    run.run(script)
    assert 100_000 <= now() - began < 5_000_000
    evidence = run.orchestrator.evidence()
    assert (evidence.quiet, evidence.cut_short, evidence.lasting) == (False, False, [])
    assert len(run.entries(o.Closing)) == 1
    assert {puppet.signals[-1] for puppet in run.launcher.puppets} == {signal.SIGSTOP}


def test_a_job_that_progresses_has_until_the_harness_has_no_more_time_and_then_nothing_is_expected_of_it(
    begin: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off_within(monkeypatch, standing_us=200_000, most_us=600_000)
    run = begin()

    def script(run: Run) -> Script:
        yield from run.begins()
        source = run.newest("source-0")
        run.may_end()
        for done in range(1, 1_000):
            yield from run.until(lambda done=done: len(source.received(f.Ask)) >= done)  # type: ignore[misc]
            source.say(f.Count(now(), TaskId("source-0"), AttemptId(1), -1, done, False, {}, {}))

    began = now()
    run.run(script)
    assert now() - began >= 600_000
    evidence = run.orchestrator.evidence()
    assert (evidence.quiet, evidence.cut_short) == (False, True)


def test_a_fault_that_still_acts_when_the_run_is_cut_off_is_named(
    begin: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off_within(monkeypatch, standing_us=100_000, most_us=300_000)
    kill = plan.KillCoordinator(trigger=AtPoint(point="ack-sent", occurrence=1), down_us=1_000_000_000)
    run = begin(plan.KillTask(trigger=EVER, task="map-0"), kill)

    def script(run: Run) -> Script:
        yield from run.begins()
        run.newest("map-0").say(f.Reached(now(), "ack-sent", "map-0", "after"))

    run.run(script)
    assert run.orchestrator.evidence().lasting == [1]


# -- points ----------------------------------------------------------------------------------------------------------


def test_who_stands_at_a_point_may_go_on_once_what_waited_for_it_is_done(begin: Callable[..., Run]) -> None:
    at = AtPoint(point="ack-sent", occurrence=2, side="before")
    run = begin(plan.KillTask(trigger=at, task="map-1"))

    def script(run: Run) -> Script:
        yield from run.begins()
        first, second = run.newest("map-0"), run.newest("map-1")
        first.say(f.Reached(now(), "ack-sent", "map-0", "before"))
        yield from run.until(lambda: first.received(f.Go))
        assert not second.has_ended
        second.say(f.Reached(now(), "ack-sent", "map-1", "before"))
        yield from run.until(lambda: len(run.named("map-1")) == 2)
        assert second.signals == [signal.SIGKILL]
        yield from run.finishes()

    run.run(script)
    assert run.deaths == [("map-1", 0, "it was killed", 0)]
    assert run.orchestrator.evidence().unapplied == []


def test_a_transaction_that_is_to_expire_is_given_up_once_while_whoever_commits_it_stands(
    begin: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(plan.FailCommit(trigger=AtTime(at_us=0), how="expired"))
    there = ["a", "b"]
    monkeypatch.setattr(SinkPlace, "expire", lambda _, name: name in there and not there.remove(name))

    def script(run: Run) -> Script:
        yield from run.begins()
        first, second = run.newest("sink-0"), run.newest("sink-1")
        yield from run.until(lambda: bool(first.received(f.Arm)))
        for name in ("unknown", "a"):
            first.say(f.Expiring(now(), 0, name, 1))
        yield from run.until(lambda: len(first.received(f.Go)) == 2)
        second.say(f.Expiring(now(), 0, "b", 1))
        yield from run.until(lambda: len(second.received(f.Go)) == 1)
        assert [go.done for go in (*first.received(f.Go), *second.received(f.Go))] == [False, True, False]
        yield from run.until(lambda: len(second.received(f.Disarm)) == 2)
        yield from run.finishes()

    run.run(script)
    assert [(one.fault, one.name) for one in run.entries(o.Expired)] == [(0, "a")]
    assert [(one.fault, one.attempt) for one in run.entries(o.FaultFired)] == [(0, 1)]
    assert there == ["b"]


# -- deaths ----------------------------------------------------------------------------------------------------------


def test_who_dies_by_itself_is_a_death_in_the_journal_and_is_replaced(begin: Callable[..., Run]) -> None:
    run = begin()

    def script(run: Run) -> Script:
        yield from run.begins()
        run.launcher.ends(run.newest("sink-1"), code=70, last_line="RuntimeError: of its own")
        yield from run.until(lambda: len(run.named("sink-1")) == 2)
        assert run.watched, "it is seen whether it was a server that ended"
        yield from run.finishes()

    run.run(script)
    assert run.deaths == [("sink-1", 0, "its process ended with exit code 70: RuntimeError: of its own", None)]
    assert [puppet.incarnation for puppet in run.named("sink-1")] == [0, 1]
    evidence = run.orchestrator.evidence()
    assert (evidence.quiet, evidence.residue.live_sinks) == (True, 0), "what died no longer lives"


def test_too_many_deaths_end_the_run_and_nobody_is_replaced_any_more(begin: Callable[..., Run]) -> None:
    run = begin()

    def script(run: Run) -> Script:
        yield from run.begins()
        for number in range(MOST_DEATHS + 1):
            yield from run.until(lambda number=number: len(run.named("map-1")) == number + 1)  # type: ignore[misc]
            run.launcher.ends(run.newest("map-1"), code=70, last_line="RuntimeError: again")
        run.may_end()
        yield from run.until(lambda: False)

    run.run(script)
    assert len(run.deaths) == len(run.named("map-1")) == MOST_DEATHS + 1
    assert not run.orchestrator.evidence().quiet


def test_who_tears_a_write_dies_of_the_fault_and_not_by_itself(begin: Callable[..., Run]) -> None:
    run = begin(plan.TearWrite(trigger=AtTime(at_us=1), task="map-1"))

    def script(run: Run) -> Script:
        yield from run.begins()
        victim = run.newest("map-1")
        yield from run.until(lambda: victim.received(f.Arm))
        victim.say(f.Fired(now(), 0, "half of it is written", AttemptId(1)))
        yield from run.until(lambda: run.fired)
        run.launcher.ends(victim, by=signal.SIGKILL)
        yield from run.until(lambda: len(run.named("map-1")) == 2)
        assert run.newest("map-1").received(f.Arm) == [], "it has fired"
        for number in range(MOST_DEATHS):
            run.launcher.ends(run.newest("map-1"), code=70, last_line="RuntimeError: again")
            yield from run.until(lambda number=number: len(run.named("map-1")) == number + 3)  # type: ignore[misc]
        yield from run.finishes()

    run.run(script)
    assert run.deaths[0] == ("map-1", 0, "it died while it wrote a snapshot", 0)
    assert len(run.deaths) == 1 + MOST_DEATHS
    assert run.orchestrator.evidence().quiet, "so often it may die by itself, and that was another death"


def test_a_coordinator_that_dies_is_taken_over_from(begin: Callable[..., Run]) -> None:
    run = begin(plan.KillCoordinator(trigger=AtPoint(point="ack-sent", occurrence=1), down_us=50))

    def script(run: Run) -> Script:
        yield from run.begins()
        run.newest("map-0").say(f.Reached(now(), "ack-sent", "map-0", "after"))
        yield from run.until(lambda: len(run.named("coordinator")) == 2)
        yield from run.until(lambda: run.coordinator.received(f.TakeOver))
        yield from run.finishes()

    run.run(script)
    (order,) = run.coordinator.received(f.TakeOver)
    assert (order.job, order.attempt, order.checkpoint) == (1, 1, 1)
    assert run.deaths == [("coordinator", 0, "it was killed", 0)]
    assert run.coordinator.received(f.Submit) == []


@pytest.mark.parametrize("stays", [True, False])
def test_one_that_is_given_up_gets_a_successor_and_goes_on_as_a_zombie(begin: Callable[..., Run], stays: bool) -> None:
    run = begin()

    def script(run: Run) -> Script:
        yield from run.begins()
        zombie = run.newest("sink-1")
        for incarnation in (7, 0, 0):
            run.coordinator.say(f.Lost(now(), "sink-1", incarnation))
        yield from run.until(lambda: len(run.named("sink-1")) == 2)
        assert not zombie.has_ended
        run.newest("sink-1").up(2)
        yield from run.settles()
        zombie.say(f.Up(now(), TaskId("sink-1"), AttemptId(1)))
        zombie.say(f.Down(now(), TaskId("sink-1"), AttemptId(1)))
        run.launcher.ends(zombie, code=0)
        yield from run.until(lambda: run.watched)
        yield from run.finishes(staying=["sink-1"] if stays else [])

    run.run(script)
    evidence = run.orchestrator.evidence()
    assert evidence.residue.live_sinks == stays, "a zombie's word on attempt 1 is not the job's, which is in attempt 2"
    assert len(run.named("sink-1")) == 2, "given up once, however often that is told"
    assert run.deaths == [], "it was told to go"


def test_a_zombie_that_ends_badly_is_a_death_that_nobody_replaces(begin: Callable[..., Run]) -> None:
    run = begin()

    def script(run: Run) -> Script:
        yield from run.begins()
        zombie = run.newest("map-1")
        run.coordinator.say(f.Lost(now(), "map-1", 0))
        yield from run.until(lambda: len(run.named("map-1")) == 2)
        run.launcher.ends(zombie, code=70, last_line="OSError: gone")
        yield from run.until(lambda: run.watched)
        yield from run.finishes()

    run.run(script)
    assert run.deaths == [("map-1", 0, "its process ended with exit code 70: OSError: gone", None)]
    assert len(run.named("map-1")) == 2


def test_a_node_that_dies_takes_all_its_tasks_along_and_one_comes_for_them(begin: Callable[..., Run]) -> None:
    run = begin(plan.KillNode(trigger=AtPoint(point="ack-sent", occurrence=1), node=1))

    def script(run: Run) -> Script:
        yield from run.begins()
        victim = run.newest("node-1")
        victim.say(f.Reached(now(), "ack-sent", "map-1", "after"))
        yield from run.until(lambda: len(run.named("node-1")) == 2)
        assert run.newest("node-1").tasks == victim.tasks
        yield from run.finishes()

    run.run(script)
    assert run.deaths == [("node-1", 0, "its node was lost", 0)]
    assert run.orchestrator.evidence().residue.live_sinks == 0
    (fired,) = run.entries(o.FaultFired)
    assert (fired.attempt, fired.detail) == (1, "node 1 is killed with node-1")


def test_a_foreign_connection_is_counted_and_changes_nothing(begin: Callable[..., Run]) -> None:
    run = begin()

    def script(run: Run) -> Script:
        yield from run.begins()
        run.living[0].say(f.Foreign(now(), 2))
        run.coordinator.say(f.Foreign(now(), 3))
        yield from run.finishes()

    run.run(script)
    evidence = run.orchestrator.evidence()
    assert (evidence.foreign, evidence.quiet, evidence.unapplied) == (5, True, [])
    assert run.entries(o.FaultFired) == []
