"""Local recovery in the simulated world: a lost task restarts alone and repeats its output, nobody takes it twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import msgspec
import pytest

from cutproof.faults.plan import AnyFault, AtPoint, AtTime, KillCoordinator, KillNode, KillTask, PauseTask
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects import simulated
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.subject.run import Result, run
from cutproof.properties.invariants.judge import judge_case
from cutproof.properties.model.history import AttemptRunning, AttemptStarted, History, TaskFailed, TaskRun
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Count, Dedup, Edge, Input, Join, Node, Topology, Workload
from cutproof.properties.quick_checker.case import Case

RECORDS = 40
AMID = 6_000

SOURCE = Input(
    name="source",
    splits=tuple(
        tuple((offset % 5, offset, 1 + split * RECORDS + offset) for offset in range(RECORDS)) for split in (0, 1)
    ),
)
COUNTED = Workload(
    name="counted",
    inputs=(SOURCE,),
    nodes=(Node(name="count", operator=Count(tagged=False), inputs=("source",)),),
)
JOINED = Workload(
    name="joined",
    inputs=tuple(
        Input(name=name, splits=(tuple((offset % 5, offset, first + offset) for offset in range(RECORDS)),))
        for name, first in (("left", 1), ("right", 1_001))
    ),
    nodes=(Node(name="join", operator=Join(), inputs=("left", "right")),),
)


def scenario(*faults: AnyFault, workload: Workload = COUNTED, **settings: object) -> Scenario:
    """Two subtasks of each operator, hash edges; tasks are distributed to three nodes in turn."""
    readers = {name: node.name for node in workload.nodes for name in node.inputs} | {workload.nodes[-1].name: "sink"}
    names = [source.name for source in workload.inputs] + [node.name for node in workload.nodes]
    topology = Topology(
        parallelism=dict.fromkeys((*names, "sink"), 2)
        | {source.name: len(source.splits) for source in workload.inputs},
        edges=tuple(Edge(sender=name, receiver=readers[name], partitioning="hash") for name in names),
    )
    engine = Engine(**{"checkpoint_interval_us": 2_500, "failover": "local", "nodes": 3, **settings})
    return Scenario(workload=workload, topology=topology, engine=engine, faults=faults)


def result_of(drawn: Scenario, defect: str | None = None) -> Result:
    return run(subject_called("simulated", defect), drawn)


def killed_at(task: str, at_us: int = AMID) -> KillTask:
    return KillTask(trigger=AtTime(at_us=at_us), task=task)


@cache
def counted() -> Result:
    """A counter is lost amid the data."""
    return result_of(scenario(killed_at("count-0")))


def starts(result: Result) -> list[tuple[int, list[str]]]:
    return [(one.attempt, one.tasks) for one in result.history.journal if isinstance(one, AttemptStarted)]


def runs_of(result: Result, task: str) -> list[TaskRun]:
    return [one for one in result.history.runs if one.task == task]


def violated(result: Result) -> dict[str, Violated]:
    return {name: one for name, one in result.judgement.verdicts.items() if isinstance(one, Violated)}


def repeats(result: Result) -> dict[str, int]:
    """How many records came again, and were dropped, by channel."""
    return {one.name: len(one.repeated) for one in result.history.channels if one.repeated}


# -- who restarts ------------------------------------------------------------------------------------------------


def test_only_what_was_lost_comes_up_again_and_the_history_names_it() -> None:
    assert starts(counted()) == [(1, []), (2, ["count-0"])]
    for task in ("source-0", "source-1", "count-1", "sink-0", "sink-1"):
        assert [one.attempt for one in runs_of(counted(), task)] == [1]
    assert all(len(one.reads) == RECORDS for one in counted().history.runs if one.operator == "source")


def test_the_invariants_hold_and_are_exercised() -> None:
    verdicts = counted().judgement.verdicts
    for name in ("exactly-once", "no-data-loss", "consistent-cut", "restored-state", "visibility", "no-leaks", "order"):
        assert isinstance(verdicts[name], Holds), name
    assert not violated(counted())


def test_it_takes_again_what_it_had_taken_since_its_checkpoint_in_the_same_order() -> None:
    before, after = runs_of(counted(), "count-0")
    assert after.loaded is not None
    mark = next(one for one in before.marks if one.checkpoint == after.loaded.checkpoint)
    since = before.applies[mark.applies :]
    assert len({channel for channel, _ in since}) == 2, "from both of its inputs"
    durable = min(len(since), len(after.applies)) - 2  # of the last ones it had not been written down that they came
    assert durable > 4
    assert after.applies[:durable] == since[:durable]


def test_what_it_sends_again_is_dropped_and_the_rows_are_seen_once() -> None:
    again = repeats(counted())
    assert again
    assert {name.partition(">")[0] for name in again} == {"count-0"}
    sent = {channel.name: channel.sent for channel in counted().history.channels if channel.attempt == 1}
    for channel in counted().history.channels:
        if channel.repeated:
            assert channel.repeated == sent[channel.name][-len(channel.repeated) :]
    assert len(counted().history.committed) == 2 * RECORDS


@pytest.mark.parametrize("task", ["source-0", "count-1", "sink-0"])
@pytest.mark.parametrize("alignment", ["aligned", "unaligned", "timeout"])
def test_any_task_can(task: str, alignment: str) -> None:
    result = result_of(scenario(killed_at(task), alignment=alignment, channel_capacity=4, apply_cost_us=90))
    assert starts(result)[1:] == [(2, [task])]
    assert not violated(result)


def test_a_lost_source_reads_again_and_is_up_when_it_has_sent_what_had_been_sent() -> None:
    result = result_of(scenario(killed_at("source-0")))
    first, second = runs_of(result, "source-0")
    assert second.reads[0][1] < len(first.reads)
    up = [entry.order for entry in result.history.journal if isinstance(entry, AttemptRunning)][-1]
    late = [one for one in second.marks if one.order < up]
    assert late == [], "no checkpoint while it is behind"
    assert sum(repeats(result).values()) > 0


def test_all_tasks_of_a_node_come_up_among_those_of_the_others() -> None:
    result = result_of(scenario(KillNode(trigger=AtTime(at_us=AMID), node=0)))
    assert starts(result)[1:] == [(2, ["source-0", "count-1"])], "neighbours"
    assert not violated(result)
    assert repeats(result).keys() >= {"source-0>count-0", "source-0>count-1"}, "they drop repeats among themselves"


def test_when_everything_is_lost_everything_restarts() -> None:
    result = result_of(scenario(*(KillNode(trigger=AtTime(at_us=AMID), node=node) for node in range(3))))
    assert starts(result)[1:] == [(2, [])]
    assert repeats(result) == {}
    assert not violated(result)


# -- once more ---------------------------------------------------------------------------------------------------


def test_it_dies_again_amid_what_it_does_again() -> None:
    again = KillTask(trigger=AtPoint(point="record-applied", task="count-0", occurrence=4), task="count-0")
    result = result_of(scenario(killed_at("count-0"), again))
    shown = [one for one in runs_of(result, "count-0") if one.how == "killed"]
    assert starts(result)[1:] == [(2, ["count-0"]), (3, ["count-0"])] or len(shown) == 2
    assert not violated(result)


def test_another_dies_while_it_comes_up() -> None:
    """It is heard of behind the delay of a restart, when the first has its orders and does not run yet."""
    result = result_of(scenario(killed_at("count-0"), killed_at("sink-1", AMID + 1_250)))
    assert starts(result)[1:] == [(2, ["count-0"]), (3, ["count-0", "sink-1"])]
    assert not violated(result)


def test_one_and_later_another() -> None:
    result = result_of(scenario(killed_at("source-1", 4_000), killed_at("count-0", 8_500)))
    assert starts(result)[1:] == [(2, ["source-1"]), (3, ["count-0"])]
    assert not violated(result)


def test_before_any_checkpoint_it_begins_at_the_beginning() -> None:
    result = result_of(scenario(killed_at("count-0", 2_000)))
    before, after = runs_of(result, "count-0")
    assert after.loaded is None
    assert after.applies[: len(before.applies) - 2] == before.applies[: len(before.applies) - 2] != []
    assert not violated(result)


def test_one_that_is_sent_back_to_where_nothing_is_known_any_more_fails_and_reports_it() -> None:
    result = result_of(scenario(killed_at("count-0")), defect="E12")
    reasons = [one.reason for one in result.history.journal if isinstance(one, TaskFailed) and one.attempt > 1]
    assert set(reasons) == {"the place in its determinant log at which it began is not known"}
    assert result.history.defect_reached
    assert "progress" in violated(result)


def test_a_coordinator_that_dies_on_top_has_everything_restart() -> None:
    coordinator_dies = KillCoordinator(trigger=AtTime(at_us=AMID + 200))
    result = result_of(scenario(killed_at("count-0"), coordinator_dies))
    assert starts(result)[-1][1] == []
    assert not violated(result)


def test_one_that_stood_still_reaches_nobody_any_more() -> None:
    pause = PauseTask(trigger=AtTime(at_us=AMID), task="count-0", for_us=40_000)
    result = result_of(scenario(pause))
    assert starts(result)[1:] == [(2, ["count-0"])]
    assert not violated(result)


# -- determinants ------------------------------------------------------------------------------------------------


@cache
def joined(defect: str | None = None) -> Result:
    return result_of(scenario(killed_at("join-0", 7_000), workload=JOINED), defect)


def test_a_join_that_is_lost_gives_those_behind_it_the_same_rows_in_the_same_order() -> None:
    assert starts(joined())[1:] == [(2, ["join-0"])]
    assert sum(repeats(joined()).values()) > 5
    assert not violated(joined())


def test_without_the_durable_order_it_contradicts_what_they_had() -> None:
    result = joined("P05")
    assert result.history.defect_reached
    assert violated(result).keys() >= {"order", "no-data-loss"}


def test_output_waits_for_the_order_that_it_follows_from() -> None:
    """What its last input brought out was never sent, unless that it came was written down."""
    before, after = runs_of(counted(), "count-0")
    assert after.loaded is not None
    mark = next(one for one in before.marks if one.checkpoint == after.loaded.checkpoint)
    entered = sum(
        len(one.sent) for one in counted().history.channels if one.name.startswith("count-0>") and one.attempt == 1
    )
    assert entered <= len(before.applies)
    assert entered - mark.applies == sum(repeats(counted()).values())


def test_a_snapshot_is_written_when_the_order_that_it_follows_from_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restored without it a task would take in another order what its snapshot says was taken."""
    dedup = Node(name="dedup", operator=Dedup(), inputs=("source",))
    silent = Workload(name="silent", inputs=(SOURCE,), nodes=(dedup,))  # what takes and says nothing is not held up
    usual = simulated.settings
    slow = {"determinant_us": 1_500, "snapshot_write_us": 10}
    monkeypatch.setattr(simulated, "settings", lambda drawn: msgspec.structs.replace(usual(drawn), **slow))
    events = [
        one
        for one in run(SimulatedSubject(), scenario(workload=silent), timeline=True).history.timeline
        if one.task == "dedup-0"
    ]
    taken = {one.checkpoint: one.at_us for one in events if one.what == "snapshot-taken"}
    written = {one.checkpoint: one.at_us for one in events if one.what == "snapshot-persisted"}
    assert written
    assert max(written[checkpoint] - taken[checkpoint] for checkpoint in written) > 1_000


# -- what is refused, and what is drawn --------------------------------------------------------------------------


def test_a_job_that_cannot_is_refused_in_one_line() -> None:
    with pytest.raises(SubjectFailed, match=r"failover local: .*transactional sink") as raised:
        result_of(scenario(sink="idempotent"))
    assert "\n" not in str(raised.value)


def test_no_drawn_run_is_accused_and_tasks_do_recover_locally() -> None:
    draw = scenario_of(Drawing(templates=("local",), max_records=40))
    locally = dropped = 0
    for number in range(20):
        drawn = draw(12, number)
        result = result_of(drawn)
        assert not violated(result), drawn.seed
        locally += any(tasks for _, tasks in starts(result))
        dropped += bool(repeats(result))
    assert locally >= 8
    assert dropped >= 5


# -- the judge ---------------------------------------------------------------------------------------------------


def _another_row_again(history: History) -> None:
    """What it sent again is not what those behind it had taken."""
    channel = next(one for one in history.channels if len(set(one.repeated)) > 1)
    at = next(at for at, (one, other) in enumerate(pairwise(channel.repeated)) if one != other)
    channel.repeated[at], channel.repeated[at + 1] = channel.repeated[at + 1], channel.repeated[at]


def _taken_twice(history: History) -> None:
    """A survivor took once more what came again."""
    channel = next(one for one in history.channels if one.repeated)
    survivor = next(one for one in history.runs if one.task == channel.name.partition(">")[2])
    number = survivor.inputs.index(channel.name)
    survivor.applies.append((number, channel.repeated[0]))


def _one_too_few(history: History) -> None:
    """It left out the first that it was to take again."""
    again = [one for one in history.runs if one.task == "count-0"][-1]
    del again.applies[0]


def _in_channels_of_its_own(history: History) -> None:
    """The attempt is said to have had channels of its own, like a region's: of what it sent there nobody took any."""
    next(one for one in history.journal if isinstance(one, AttemptStarted) and one.tasks).in_place = False


@pytest.mark.parametrize(
    ("mutate", "invariant"),
    [
        (_another_row_again, "order"),
        (_taken_twice, "order"),
        (_one_too_few, "order"),
        (_one_too_few, "no-data-loss"),
        (_in_channels_of_its_own, "no-data-loss"),
    ],
)
def test_what_is_wrong_about_a_task_that_recovered_locally_is_seen(
    mutate: Callable[[History], None], invariant: str
) -> None:
    drawn = counted()
    history = msgspec.json.decode(msgspec.json.encode(drawn.history), type=History)
    mutate(history)
    verdict = judge_case(Case(drawn.case.workload, drawn.case.submitted, history)).verdicts[invariant]
    assert isinstance(verdict, Violated)


@pytest.mark.parametrize("defect", ["P05", "P06", "P07"])
def test_the_planted_wrong_code_is_not_reached_where_nobody_is_lost(defect: str) -> None:
    result = result_of(scenario(), defect)
    assert not result.history.defect_reached
    assert not violated(result)
