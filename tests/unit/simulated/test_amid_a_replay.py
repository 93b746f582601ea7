"""A job that ends while a task does again what others have seen already (UNA-4): what it had not come to again is not
missed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtTime
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import Cancel, Scenario
from cutproof.harness.subject.run import Result
from cutproof.properties.model.history import AttemptRunning, History, TaskRun
from cutproof.properties.model.workload import Workload
from cutproof.properties.quick_checker.case import Case
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.driver.local_runner import LocalRunner
from cutproof.reference_impl.simulated.persistent_channels import Outlet
from unit.simulated.test_local_recovery import COUNTED, JOINED, killed_at, result_of, runs_of, scenario, violated

LATE = 7_400
"""when a task is lost; the last checkpoint was long before"""
SELDOM = {"checkpoint_interval_us": 5_000}


def cancelled(task: str, at_us: int, workload: Workload = COUNTED) -> Scenario:
    planned = scenario(killed_at(task, LATE), workload=workload, **SELDOM)
    return replace(planned, commands=(Cancel(trigger=AtTime(at_us=at_us)),))


def amount(run: TaskRun) -> int:
    return len(run.reads) + len(run.applies)


def behind(result: Result, task: str) -> bool:
    """Whether the task's last attempt ended before it had done again what the one before had done."""
    *_, before, last = runs_of(result, task)
    taken = [
        mark.reads + mark.applies for mark in before.marks if last.loaded and mark.checkpoint == last.loaded.checkpoint
    ]
    return sum(taken) + amount(last) < amount(before)


@pytest.mark.parametrize(
    ("task", "workload"), [("source-0", COUNTED), ("count-0", COUNTED), ("left-0", JOINED), ("join-0", JOINED)]
)
def test_a_job_that_is_cancelled_amid_a_replay(task: str, workload: Workload) -> None:
    seen = 0
    for at_us in range(LATE + 100, LATE + 4_000, 150):
        result = result_of(cancelled(task, at_us, workload))
        assert violated(result) == {}
        seen += len(runs_of(result, task)) > 1 and behind(result, task)
    assert seen > 2, "amid the replay, and not before or behind it"


def test_a_job_whose_restarts_are_used_up_by_a_second_death_amid_a_replay() -> None:
    seen = 0
    for at_us in range(LATE + 500, LATE + 4_000, 200):
        planned = scenario(killed_at("source-0", LATE), killed_at("source-0", at_us), restart_attempts=1, **SELDOM)
        result = result_of(planned)
        assert violated(result) == {}
        seen += result.history.journal[-1].__class__.__name__ == "JobEnded" and behind(result, "source-0")
    assert seen > 2


def test_who_reports_that_it_has_caught_up_answers_for_it() -> None:
    """The same history, but for a word that the replay is done."""
    found = (result_of(cancelled("source-0", at_us)) for at_us in range(LATE + 100, LATE + 4_000, 150))
    result = next(one for one in found if len(runs_of(one, "source-0")) > 1 and behind(one, "source-0"))
    case = result.case
    last = case.lineages.last_attempt
    history: History = case.history
    history.journal.insert(-1, AttemptRunning(order=history.journal[-1].order, at_us=1, attempt=last))
    segments = Case(case.workload, case.submitted, history).lineage.segments["source-0"]
    assert [one.run.attempt for one in segments] != [one.run.attempt for one in case.lineage.segments["source-0"]]
    assert segments[-1].run.attempt == last


def test_it_reports_that_it_runs_when_all_that_it_did_again_has_been_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a barrier could overtake what others have, and a snapshot hold it as still to be sent."""
    free_us = 20_000
    plain = Outlet.is_full.fget
    assert plain is not None

    def is_full(outlet: Outlet) -> bool:
        """Whether an outlet has no room: until a moment the recovered attempt cannot send the last record that it must
        send again.  The task has done everything again by then."""
        returns = isinstance(outlet.sender, LocalRunner) and outlet.sender.returns
        if returns and outlet.next_number == outlet.channel.sent - 1 and planned.world.loop.now < free_us:
            waiting.append(outlet.name)
            return True
        return plain(outlet)

    waiting: list[str] = []
    monkeypatch.setattr(Outlet, "is_full", property(is_full))
    planned = Run(scenario(killed_at("count-0", LATE), **SELDOM), Parts(), timeline=False)
    planned.world.loop.at(free_us, lambda *_: [one.drain() for one in planned.world.live()])
    runs = {entry.attempt: entry.at_us for entry in planned.history().journal if isinstance(entry, AttemptRunning)}
    assert waiting, "the last record waited"
    assert runs[2] >= free_us
