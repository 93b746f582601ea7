"""What PySpark is asked where checkpoints hold data in flight: also of rows that one attempt sent and another took."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, KillTask
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.run import run
from cutproof.harness.workloads.library import GENERAL
from cutproof.properties.spark.questions import questions_of, unasked_by
from cutproof.properties.spark.unasked import BEHIND_THE_END, NOT_RESTORED

ONE_JUDGE = Path(__file__).parents[3] / "regressions" / "one_judge"
"""scenarios of planted defects about which the two judges disagreed"""
CROWDED = Engine(
    alignment="unaligned",
    channel_capacity=4,
    apply_cost_us=300,
    checkpoint_interval_us=3_000,
    checkpoint_timeout_us=200_000,
)
"""What is read comes faster than it is applied, so that checkpoints find it in the channels."""


@pytest.mark.parametrize("crashes", [False, True])
def test_rows_in_flight_are_asked_about_though_one_attempt_sent_them_and_another_took_them(crashes: bool) -> None:
    orders = GENERAL["orders"][1]()
    killed = KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=2), task="count-0")
    asked = Scenario(
        workload=orders,
        topology=lay_out(orders, {"orders": 2}),
        engine=CROWDED,
        faults=(killed,) if crashes else (),
    )

    case = run(SimulatedSubject(), asked).case

    assert case.by_applies, "data was in flight at some checkpoint"
    assert any(channel.recovered for channel in case.history.channels) is crashes
    applies = [
        one
        for question in questions_of(case, "it")
        for applies_of_one in question.job.applies.values()
        for one in applies_of_one
    ]
    assert applies
    assert any(one.made_by is not None for one in applies) is crashes


def test_rows_that_follow_what_was_applied_are_not_asked_about_where_a_task_recovered_locally() -> None:
    """A survivor has rows of several attempts of its sender, and a question names one."""
    orders = GENERAL["orders"][1]()
    laid_out = lay_out(orders, {"orders": 2})
    edges = tuple(msgspec.structs.replace(edge, partitioning="hash") for edge in laid_out.edges)
    single = Scenario(
        workload=orders,
        topology=msgspec.structs.replace(laid_out, edges=edges),
        engine=msgspec.structs.replace(CROWDED, failover="local"),
        faults=(KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=2), task="count-0"),),
    )

    case = run(SimulatedSubject(), single).case

    assert case.by_applies, "data was in flight at some checkpoint"
    assert case.lineages.persistent is not None, "a task recovered locally"
    assert [one.job.applies for one in questions_of(case, "it") if one.job.applies] == []


def test_rows_are_not_asked_about_where_a_broken_engine_lost_what_was_in_flight() -> None:
    """Of several rows of one record, it is not known which one was lost: the two judges could guess differently."""
    orders = GENERAL["orders"][1]()
    asked = Scenario(
        workload=orders,
        topology=lay_out(orders, {"orders": 2}),
        engine=CROWDED,
        faults=(KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=2), task="count-0"),),
    )

    lost, kept = (run(SimulatedSubject(defect), asked).case for defect in ("C08", None))

    assert unasked_by(lost, questions_of(lost, "it")).rows == NOT_RESTORED
    assert unasked_by(kept, questions_of(kept, "it")).rows == ""


@pytest.mark.parametrize(
    ("name", "defect", "why"),
    [
        ("a-row-of-one-record-lost-in-flight", "P03", NOT_RESTORED),
        ("rows-in-flight-stored-for-two-subtasks", "D16", NOT_RESTORED),
        ("read-again-behind-the-end-of-its-input", "J23", BEHIND_THE_END),
    ],
)
def test_a_broken_engine_leaves_the_input_of_pyspark_undetermined(name: str, defect: str, why: str) -> None:
    scenario = read_scenario(ONE_JUDGE / f"{name}.json")

    broken, sound = (run(SimulatedSubject(one), scenario).case for one in (defect, None))

    assert broken.history.defect_reached
    assert unasked_by(broken, questions_of(broken, "it")).rows == why
    assert unasked_by(sound, questions_of(sound, "it")).rows == ""
