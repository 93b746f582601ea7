"""A job that is stopped or cancelled and goes on at another parallelism: nothing is lost, nothing comes twice."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, AtTime, FailCommit, KillTask, LoseMessage
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import AnyCommand, Cancel, Resume, Scenario, StopWithSavepoint
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import CommandIssued, History
from cutproof.properties.model.workload import Count, Map
from cutproof.properties.quick_checker.case import Case
from cutproof.reference_impl.core.decisions.parts import Parts
from unit.simulated.worlds import all_there, journal
from unit.simulated.worlds import job as plain_job

WIDTHS = {"source": 2, "op0": 2, "op1": 2, "sink": 2}
AFTER = AtTime(at_us=700)
STOP = StopWithSavepoint(trigger=AtTime(at_us=4_000))
CANCEL = Cancel(trigger=AtTime(at_us=6_000))


def resume(**parallelism: int) -> Resume:
    return Resume(trigger=AFTER, parallelism=parallelism)


def every(number: int) -> dict[str, int]:
    return dict.fromkeys(WIDTHS, number)


def job(*commands: AnyCommand, records: int = 40, **more: object) -> Scenario:
    """Two wide, a map and a count of four splits' records by key."""
    plain = plain_job(records, Map(add=1), Count(), width=2, splits=4, commands=commands, **more)  # type: ignore[arg-type]
    *others, last = plain.topology.edges
    edges = (*others, msgspec.structs.replace(last, partitioning="hash"))
    return msgspec.structs.replace(plain, topology=msgspec.structs.replace(plain.topology, edges=edges))


def tasks_of(history: History, number: int) -> set[str]:
    return {run.task for run in history.runs if run.job == number}


@pytest.mark.parametrize("end", [STOP, CANCEL], ids=["stopped", "cancelled"])
@pytest.mark.parametrize("wide", [1, 3, 4])
def test_a_job_goes_on_at_any_width(end: AnyCommand, wide: int) -> None:
    history = all_there(job(end, resume(**every(wide))))
    assert tasks_of(history, 2) == {f"{name}-{subtask}" for name in WIDTHS for subtask in range(wide)}
    assert [entry.parallelism for entry in journal(CommandIssued, history)] == [{}, every(wide)]


@pytest.mark.parametrize("name", ["source", "op1", "sink"])
@pytest.mark.parametrize("wide", [1, 3])
def test_only_one_operator_is_rescaled(name: str, wide: int) -> None:
    scenario = job(STOP, resume(**{name: wide}))
    if name == "source":  # what forward edges join goes together
        scenario = job(STOP, resume(source=wide, op0=wide))
    history = all_there(scenario)
    assert f"{name}-2" in tasks_of(history, 2) or f"{name}-1" not in tasks_of(history, 2)


def test_there_and_back_again() -> None:
    again = StopWithSavepoint(trigger=AtTime(at_us=9_000))
    history = all_there(job(STOP, resume(**every(3)), again, resume(**every(2)), records=80))
    assert [len(tasks_of(history, number)) for number in (1, 2, 3)] == [8, 12, 8]


def test_others_keep_the_width_that_they_had_last() -> None:
    again = StopWithSavepoint(trigger=AtTime(at_us=9_000))
    history = all_there(job(STOP, resume(op1=3), again, resume(sink=1), records=80))
    assert {"op1-2", "sink-0"} <= tasks_of(history, 3)
    assert "sink-1" not in tasks_of(history, 3)


@pytest.mark.parametrize("task", ["source-0", "op1-2", "sink-1"])
def test_a_failure_before_the_first_checkpoint_distributes_it_once_more(task: str) -> None:
    kill = KillTask(trigger=AtPoint(point="state-loaded", task=task, occurrence=1), task=task)
    history = all_there(job(STOP, resume(**every(3)), faults=(kill,)))
    assert len([run for run in history.runs if run.task == task and run.job == 2]) == 2


@pytest.mark.parametrize("lost", [1, 3, 40])
def test_in_flight_data_behind_a_task_that_is_not_deployed_is_that_of_its_receivers_last_run(lost: int) -> None:
    """Attempts in which a map is not deployed complete no checkpoint: each restores the data behind it anew, and only
    the last is on the lineage.  With forty lost orders the second job uses up its restarts, and its map never runs."""
    completed = AtPoint(point="checkpoint-completed", occurrence=2, side="after")
    loses = tuple(LoseMessage(trigger=completed, message="deploy", task="op0-0") for _ in range(lost))
    unaligned = {"alignment": "unaligned", "apply_cost_us": 500, "channel_capacity": 16, "checkpoint_interval_us": 600}
    commands = (Cancel(trigger=completed), resume(op1=3))
    scenario = job(*commands, records=24, faults=loses, retained_checkpoints=3, **unaligned)
    history = Run(scenario, Parts(), False).history()
    assert judge(scenario.workload, scenario.topology, history).violated == {}
    case = Case(scenario.workload, scenario.topology, history)
    tries = [run for run in history.runs if run.task == "op1-1" and run.job == 2]
    restored = [content.recovered for run in tries if (content := case.content("op0-0>op1-1", run)) is not None]
    assert len(restored) > min(lost, 8)
    assert len(restored[0]) > 0
    assert restored == [restored[0]] * len(restored)
    first, last = case.lineage.segments["op1-1"]
    assert (first.run.job, last.run.attempt) == (1, tries[-1].attempt)
    assert {run.job for run in history.runs if run.task == "op0-0"} == ({1} if lost == 40 else {1, 2})


def test_sealed_transactions_of_sinks_that_are_no_more_are_committed_by_others() -> None:
    """Cancelled while no commit gets through: both sinks' sealed transactions are the one new sink's."""
    refused = tuple(FailCommit(trigger=AtTime(at_us=0), task=f"sink-{n}", how="refused", times=9) for n in range(2))
    history = all_there(job(CANCEL, resume(sink=1), faults=refused))
    taken = next(run for run in history.runs if run.task == "sink-0" and run.job == 2)
    assert taken.loaded is not None
    assert "/sink-1/" in taken.loaded.state, "what sink-1 had sealed is in the charge of sink-0"


def test_an_input_of_which_one_subtask_had_finished() -> None:
    """Its last position is still there, and whoever reads the split now reads nothing of it again (FIN-1)."""
    scenario = job(StopWithSavepoint(trigger=AtTime(at_us=9_000)), resume(**every(1)), records=120)
    (source,) = scenario.workload.inputs
    short = (source.splits[0][:2], source.splits[1], source.splits[2][:2], source.splits[3])
    inputs = (msgspec.structs.replace(source, splits=short),)
    workload = msgspec.structs.replace(scenario.workload, inputs=inputs)
    history = all_there(msgspec.structs.replace(scenario, workload=workload))
    (one,) = [entry for entry in history.completed if entry.savepoint]
    assert {"source-0", "op0-0"} & set(one.finished)


def test_state_in_the_coordinators_memory() -> None:
    history = all_there(job(STOP, resume(**every(3)), snapshot_store="memory"))
    assert {run.subtask for run in history.runs if run.job == 2 and run.loaded is not None} == {0, 1, 2}


def test_two_resumes_that_ask_for_the_same_are_two() -> None:
    """Each has a number of its own, and so an answer of its own."""
    again = StopWithSavepoint(trigger=AtTime(at_us=9_000))
    history = all_there(job(STOP, resume(sink=1), again, resume(sink=1), records=80))
    assert [entry.command for entry in journal(CommandIssued, history)] == [0, 1, 2, 3]
