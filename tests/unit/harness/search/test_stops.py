"""Every way to end a job and to go on: what was planned, what came of it, what hit it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cutproof.faults.plan import AnyFault, AtPoint, AtTime, FailWrite, InPhase, KillCoordinator, KillTask, LoseMessage
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import AnyCommand, Cancel, Engine, Resume, Savepoint, Scenario, StopWithSavepoint
from cutproof.harness.search.stops import STOPS, Hit, Stop, StopTally, never_hit, stops_of
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.causes import IncompatibleJob, OtherCause
from cutproof.properties.model.history import AttemptRunning, CommandReturned, FaultFired
from cutproof.reports.model import StopCounts
from unit.harness.scenarios import chain

STOP = StopWithSavepoint(trigger=AtTime(at_us=3_000))
DRAIN = StopWithSavepoint(trigger=AtTime(at_us=3_000), drain=True)
CANCEL = Cancel(trigger=AtTime(at_us=3_000))
AGAIN = Resume(trigger=AtTime(at_us=500))
INCOMPATIBLE = Resume(trigger=AtTime(at_us=500), inserted={"fresh": "count"})
TASKS = tuple(f"{operator}-{number}" for operator in ("source", "map", "count", "sink") for number in range(2))


def scenario(*faults: AnyFault, commands: tuple[AnyCommand, ...] = (), endless: bool = False) -> Scenario:
    calm = msgspec.structs.replace(
        chain(40), faults=faults, commands=commands, deviations=(), engine=Engine(checkpoint_interval_us=800)
    )
    if not endless:
        return calm
    inputs = tuple(msgspec.structs.replace(source, bounded=False) for source in calm.workload.inputs)
    return msgspec.structs.replace(calm, workload=msgspec.structs.replace(calm.workload, inputs=inputs))


def seen(one: Scenario) -> dict[str, Stop]:
    return {stop.kind: stop for stop in stops_of(one, SimulatedSubject().run(one))}


def test_each_way_to_stop_is_planned_and_finished_under_its_own_name() -> None:
    for kind, command in (("stop", STOP), ("drain", DRAIN), ("cancel", CANCEL)):
        found = seen(scenario(commands=(command,), endless=True))
        assert found == {kind: Stop(kind=kind, finished=True)}
    assert seen(scenario()) == {"natural-end": Stop(kind="natural-end", finished=True)}


def test_a_savepoint_stops_nothing() -> None:
    assert set(seen(scenario(commands=(Savepoint(trigger=AtTime(at_us=2_000)),)))) == {"natural-end"}


def test_a_job_that_was_stopped_did_not_end_by_itself() -> None:
    assert not seen(scenario(commands=(STOP,)))["natural-end"].finished


def test_a_resume_states_what_it_went_on_from() -> None:
    assert seen(scenario(commands=(STOP, AGAIN)))["resume"].begins_with == "savepoint"
    late = Cancel(trigger=AtTime(at_us=4_000))
    assert seen(scenario(commands=(late, AGAIN)))["resume"].begins_with == "checkpoint"
    at_once = Cancel(trigger=AtTime(at_us=100))
    resumed = seen(scenario(commands=(at_once, AGAIN)))["resume"]
    assert (resumed.begins_with, resumed.finished) == ("nothing", True)


def test_a_resume_that_never_came_is_not_finished() -> None:
    assert seen(scenario(commands=(AGAIN,)))["resume"] == Stop(kind="resume")


def test_what_fires_before_a_stop_does_not_hit_it_and_what_fires_amid_it_does() -> None:
    before = KillTask(trigger=AtTime(at_us=1_500), task="count-0")
    amid = FailWrite(trigger=AtPoint(point="savepoint-requested"), task="count-1")
    stop = seen(scenario(before, amid, commands=(StopWithSavepoint(trigger=AtTime(at_us=9_000)),), endless=True))[
        "stop"
    ]
    assert [(hit.fault, hit.point) for hit in stop.hits] == [("fail-write", "savepoint-requested")]
    assert not stop.finished, "its savepoint was given up"


def test_a_stop_whose_coordinator_dies_was_hit_and_refused() -> None:
    kill = KillCoordinator(trigger=AtPoint(point="savepoint-requested"))
    stop = seen(scenario(kill, commands=(STOP,), endless=True))["stop"]
    assert [hit.fault for hit in stop.hits] == ["kill-coordinator"]
    assert not stop.finished


def test_a_cancel_is_hit_from_the_asking_on_and_not_by_what_fired_before() -> None:
    asked = AtPoint(point="savepoint-requested")
    dies = KillTask(trigger=asked, task="count-0")
    lost = LoseMessage(trigger=AtPoint(point="savepoint-requested", side="before"), message="cancel", task="sink-0")
    cancel = seen(scenario(dies, lost, commands=(CANCEL,), endless=True))["cancel"]
    assert {(hit.fault, hit.point) for hit in cancel.hits} == {
        (kind, asked.point) for kind in ("kill-task", "lose-message")
    }
    assert cancel.finished
    before = KillTask(trigger=AtTime(at_us=2_990), task="count-0")
    assert seen(scenario(before, commands=(CANCEL,), endless=True))["cancel"] == Stop(kind="cancel", finished=True)


def test_a_cancel_that_the_coordinator_never_received_was_hit_and_is_not_finished() -> None:
    deaf = KillCoordinator(trigger=AtPoint(point="savepoint-requested", side="before"))
    cancel = seen(scenario(deaf, commands=(CANCEL,), endless=True))["cancel"]
    assert [hit.fault for hit in cancel.hits] == ["kill-coordinator"]
    assert not cancel.finished


def test_a_kill_while_a_job_resumes_hits_the_resume() -> None:
    kill = KillTask(trigger=AtPoint(point="state-loaded"), task="count-0")
    found = seen(scenario(kill, commands=(STOP, AGAIN)))
    assert found["resume"].hits == (Hit(fault="kill-task", phase="recovering", point="state-loaded"),)
    assert not found["stop"].hits
    assert found["resume"].finished, "with a later attempt"


def test_what_comes_once_all_tasks_run_hits_the_job_and_not_its_resume() -> None:
    coming_up = [KillTask(trigger=AtPoint(point="task-running", occurrence=2, task=task), task=task) for task in TASKS]
    for kill in coming_up:
        assert [hit.point for hit in seen(scenario(kill, commands=(STOP, AGAIN)))["resume"].hits] == ["task-running"]
    reading = scenario(KillTask(trigger=AtTime(at_us=8_400), task="count-0"), commands=(STOP, AGAIN))
    history = SimulatedSubject().run(reading)
    ran = [entry.order for entry in history.journal if isinstance(entry, AttemptRunning)][1]
    assert [entry.order > ran for entry in history.journal if isinstance(entry, FaultFired)] == [True]
    assert [stop.hits for stop in stops_of(reading, history) if stop.kind == "resume"] == [()]


def test_a_coordinator_that_dies_while_it_refuses_a_job_hits_the_refusal() -> None:
    for later_us in (0, 100, 400):
        dies = KillCoordinator(trigger=InPhase(phase="recovering", after_us=later_us))
        found = seen(scenario(dies, commands=(STOP, INCOMPATIBLE, AGAIN)))
        assert [hit.fault for hit in found["unfit-resume"].hits] == ["kill-coordinator"]
        assert (found["unfit-resume"].finished, found["resume"].finished) == (True, True)
        assert not found["resume"].hits


def test_a_fault_amid_the_last_checkpoint_hits_the_natural_end() -> None:
    kill = KillTask(trigger=InPhase(phase="finishing"), task="sink-0")
    end = seen(scenario(kill))["natural-end"]
    assert [(hit.fault, hit.phase) for hit in end.hits] == [("kill-task", "finishing")]
    assert end.finished


def test_counts_add_up_by_kind_of_fault_phase_and_point() -> None:
    tally = StopTally()
    amid = Hit(fault="kill-task", phase="finishing", point="ack-sent")
    timed = Hit(fault="fail-write", phase="committing")
    tally.add([Stop(kind="stop", finished=True, hits=(amid, timed)), Stop(kind="stop")])
    tally.add([Stop(kind="resume", finished=True, begins_with="savepoint"), Stop(kind="stop", hits=(amid,))])
    counts = tally.counts()
    assert tuple(counts) == STOPS
    assert counts["cancel"] == StopCounts(), "not planned, and in the list all the same"
    stop = counts["stop"]
    assert (stop.planned, stop.finished, stop.hit) == (3, 1, 2)
    assert stop.faults == {"fail-write": {"committing": 1}, "kill-task": {"finishing": 2}}
    assert stop.points == {"ack-sent": 2}
    assert counts["resume"].begins_with == {"savepoint": 1}


def test_what_a_subject_knows_and_nothing_hit_is_reported() -> None:
    tally = StopTally()
    amid = Hit(fault="kill-task", phase="finishing")
    tally.add([Stop(kind="stop", finished=True, hits=(amid,)), Stop(kind="resume"), Stop(kind="resume")])
    sentences = never_hit(tally.counts(), SimulatedSubject().capabilities)
    assert sentences == [
        "natural-end was planned 0 times and never hit",
        "drain was planned 0 times and never hit",
        "cancel was planned 0 times and never hit",
        "resume was planned 2 times and never hit",
        "unfit-resume was planned 0 times and never hit",
    ]
    tally.add([Stop(kind=kind, hits=(amid,)) for kind in STOPS])
    assert never_hit(tally.counts(), SimulatedSubject().capabilities) == []


def test_what_a_subject_does_not_know_is_not_asked_of_it() -> None:
    def asked(*commands: str, refuses_incompatible: bool = False) -> list[str]:
        capabilities = Capabilities(commands=frozenset(commands), refuses_incompatible=refuses_incompatible)
        return [sentences.split()[0] for sentences in never_hit({}, capabilities)]

    assert asked() == ["natural-end"]
    assert asked("savepoint", "resume", refuses_incompatible=True) == ["natural-end"], "nothing to resume"
    assert asked("stop-with-savepoint") == ["natural-end", "stop", "drain"]
    assert asked("cancel", "resume") == ["natural-end", "cancel", "resume"]
    assert asked("cancel", "resume", refuses_incompatible=True) == ["natural-end", "cancel", "resume", "unfit-resume"]


@pytest.mark.parametrize(
    ("told", "refused"),
    [
        ({"error": "no", "cause": IncompatibleJob(operators=("fresh",))}, True),
        ({"error": "no coordinator answers for fresh", "cause": OtherCause()}, False),
        ({"error": "there is no state of fresh"}, True),  # of an engine that names no causes
        ({"error": "no"}, False),
    ],
)
def test_a_resume_may_be_refused_in_the_answer_by_its_cause(told: dict[str, Any], refused: bool) -> None:
    asked = scenario(commands=(STOP, INCOMPATIBLE))
    history = SimulatedSubject().run(asked)
    place, answer = next(
        (place, entry)
        for place, entry in enumerate(history.journal)
        if isinstance(entry, CommandReturned) and entry.command == 1
    )
    history.journal[place:] = [msgspec.structs.replace(answer, checkpoint=None, **told)]
    found = {stop.kind: stop for stop in stops_of(asked, history)}
    assert found["unfit-resume"].finished is refused
