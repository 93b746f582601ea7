"""Lists and unions in whole runs (OPS-2, FIN-1): rescaled, on failure, beside subtasks that have finished."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, AtTime, KillTask, LateMessage
from cutproof.harness.reference_engine.subjects.simulated import Run, SimulatedSubject
from cutproof.harness.scenario.model import AnyCommand, Cancel, Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.scenario.topologies import lay_out
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import Completed, History, JobEnded, StoredState
from cutproof.properties.model.workload import Batch, Filter, Input, Map, Node, Tally, Union, Workload
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.reconstruct.buffered_rows import waiting
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.decisions.snapshots.redistribution import Redistribution, Share
from cutproof.reference_impl.core.extensions.rescaling import rescale
from cutproof.reference_impl.core.job.key_groups import Place
from cutproof.reference_impl.core.operators.operators import Operator
from cutproof.reference_impl.core.vocabulary.state import Item
from cutproof.reference_impl.driver.injected_exceptions import Raising
from unit.simulated.worlds import all_there, job, journal, rows_of_counts, run

STOP = StopWithSavepoint(trigger=AtTime(at_us=4_000))
CANCEL = Cancel(trigger=AtTime(at_us=6_000))
KILL = KillTask(trigger=AtPoint(point="checkpoint-completed"), task="op1-0")
WIDTHS = [(2, 3), (3, 2), (7, 2), (2, 7)]


def counting(wide: int, *commands: AnyCommand, **more: object) -> Scenario:
    """Counted, the counts being a union, and let out in fives, those that wait being a list."""
    scenario = job(42 * wide, Map(add=1), Tally(), Batch(size=5), width=wide, splits=wide, commands=commands, **more)  # type: ignore[arg-type]
    return keys_spread(scenario)


def keys_spread(scenario: Scenario) -> Scenario:
    """Twelve keys, for seven subtasks to have something."""
    (source,) = scenario.workload.inputs
    splits = tuple(tuple((one[2] % 12, *one[1:]) for one in split) for split in source.splits)
    workload = msgspec.structs.replace(scenario.workload, inputs=(msgspec.structs.replace(source, splits=splits),))
    return msgspec.structs.replace(scenario, workload=workload)


def resume(wide: int) -> Resume:
    names = ("source", "op0", "op1", "op2", "sink")
    return Resume(trigger=AtTime(at_us=700), parallelism=dict.fromkeys(names, wide))


def held(history: History, operator: str, job_number: int) -> tuple[Counter[Item], Counter[Item]]:
    """The lists and the unions that an operator's subtasks in a job loaded."""
    loads = [run.loaded for run in history.runs if run.operator == operator and run.job == job_number]
    states = [msgspec.json.decode(load.state) for load in loads if load is not None and load.state]
    found = []
    for field in ("listed", "shared"):
        found.append(Counter((name, text) for state in states for name, text in state.get(field, ())))
    return found[0], found[1]


@pytest.mark.parametrize("end", [STOP, CANCEL], ids=["stopped", "cancelled"])
@pytest.mark.parametrize(("before", "after"), WIDTHS)
def test_a_job_goes_on_at_another_width(end: AnyCommand, before: int, after: int) -> None:
    scenario = counting(before, end, resume(after))
    history = all_there(scenario)
    case = Case(scenario.workload, scenario.topology, history)
    (first,) = {run.loaded.checkpoint for run in history.runs if run.job == 2 and run.loaded is not None}
    states = case.states(first).items()
    lists, _ = held(history, "op2", 2)
    _, union = held(history, "op1", 2)
    assert lists == Counter(item for task, state in states if task.startswith("op2") for item in state.listed)
    assert union == Counter(item for task, state in states if task.startswith("op1") for item in state.shared)
    assert union
    assert lists


@pytest.mark.parametrize(("before", "after"), [(2, 3), (7, 2)])
def test_there_and_back_with_a_failure_on_the_way(before: int, after: int) -> None:
    again = StopWithSavepoint(trigger=AtTime(at_us=9_000))
    kill = KillTask(trigger=AtPoint(point="state-loaded", task="op1-1", occurrence=1), task="op1-1")
    scenario = counting(before, STOP, resume(after), again, resume(before), faults=(kill,))
    history = all_there(scenario)
    assert len({run.attempt for run in history.runs}) == 4
    assert {run.job for run in history.runs} == {1, 2, 3}


class Offers(Redistribution):
    """What is offered of the unions, by the subtask that it is offered to."""

    def __init__(self) -> None:
        self.unions: dict[int, Counter[Item]] = {}

    def shared(self, unions: Sequence[Sequence[Item]], share: Share) -> list[Item]:
        offered = super().shared(unions, share)
        self.unions[share.subtask] = Counter(offered)
        return offered


@pytest.mark.parametrize("store", ["files", "memory"])
@pytest.mark.parametrize("task", ["op1-1", "op2-0"])
def test_a_failure_gives_each_its_list_and_everybody_the_union(task: str, store: str) -> None:
    kill = KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=3), task=task)
    scenario, offers = counting(3, faults=(kill,), snapshot_store=store), Offers()
    history = all_there(scenario, Parts(redistribution=offers))
    again = {run.task: run.loaded for run in history.runs if run.attempt == 2 and run.loaded is not None}
    (checkpoint,) = {load.checkpoint for load in again.values()}
    left = Case(scenario.workload, scenario.topology, history).states(checkpoint)
    loaded = {task: msgspec.json.decode(load.state, type=StoredState) for task, load in again.items()}

    lists = {task: loaded[task].listed for task in ("op2-0", "op2-1", "op2-2")}
    assert lists == {task: left[task].listed for task in lists}
    assert all(lists.values())

    union = Counter(item for task in ("op1-0", "op1-1", "op1-2") for item in left[task].shared)
    assert offers.unions == dict.fromkeys(range(3), union)
    kept = [Counter(loaded[f"op1-{subtask}"].shared) for subtask in range(3)]
    assert sum(kept, Counter()) == union
    assert all(kept)


def test_a_stop_lets_nothing_out_and_a_drain_everything() -> None:
    for drain in (False, True):
        stop = StopWithSavepoint(trigger=AtTime(at_us=4_000), drain=drain)
        scenario = counting(2, stop)
        history = run(scenario)
        case = Case(scenario.workload, scenario.topology, history)
        (one,) = [entry for entry in history.completed if entry.savepoint]
        states = case.states(one.checkpoint).items()
        left = [row for task, state in states if task.startswith("op2") for row, _ in waiting(state)]
        assert (left == []) is drain
        positions = case.positions(one.checkpoint)
        read = [record for split, _, records in scenario.workload.splits() for record in records[: positions[split]]]
        assert 0 < len(read) < 84
        assert Counter(history.committed) == rows_of_counts(read) - Counter(left)
        assert not Counter(left) - rows_of_counts(read)
        assert not judge(scenario.workload, scenario.topology, history).violated


def test_a_list_of_which_some_subtasks_have_finished() -> None:
    """A short split's batch is done and gone; what the others hold is redistributed to all (FIN-1)."""
    again = Resume(trigger=AtTime(at_us=700), parallelism=dict.fromkeys(("source", "op0", "op1", "sink"), 2))
    ended = Cancel(trigger=AtTime(at_us=12_000))
    scenario = job(240, Filter(modulus=5), Batch(size=4), width=3, splits=3, commands=(ended, again))
    (source,) = scenario.workload.inputs
    short = msgspec.structs.replace(source, splits=(source.splits[0][:3], *source.splits[1:]))
    edges = tuple(msgspec.structs.replace(edge, partitioning="forward") for edge in scenario.topology.edges)
    scenario = msgspec.structs.replace(
        scenario,
        workload=msgspec.structs.replace(scenario.workload, inputs=(short,)),
        topology=msgspec.structs.replace(scenario.topology, edges=edges),
    )
    history = run(scenario)
    assert not judge(scenario.workload, scenario.topology, history).violated
    restored = next(run.loaded.checkpoint for run in history.runs if run.job == 2 and run.loaded is not None)
    assert "op1-0" in next(entry.finished for entry in history.completed if entry.checkpoint == restored)
    lists, _ = held(history, "op1", 2)
    assert lists
    assert sum(lists.values()) > 1


# -- what must be seen -----------------------------------------------------------------------------------------------


def loses_one(lists: list[list[Item]], share: Share) -> list[Item]:
    """The last item of all lists is nobody's."""
    return [item for one in lists for item in one][:-1][share.subtask :: share.parallelism]


def to_everybody(lists: list[list[Item]], share: Share) -> list[Item]:
    """Each subtask is given all items of lists."""
    return [item for one in lists for item in one]


class HalfAUnion(Redistribution):
    """What the first subtask had in the union is left out."""

    def shared(self, unions: list[list[Item]], share: Share) -> list[Item]:  # type: ignore[override]
        return [item for one in unions[1:] for item in one]


def assert_is_seen_at_once_and_in_the_output(parts: Parts) -> None:
    scenario = counting(2, STOP, resume(3))
    history = Run(scenario, parts, False).history()
    violated = judge(scenario.workload, scenario.topology, history).violated
    assert {"restored-state", "exactly-once", "consistent-cut"} <= set(violated)


@pytest.mark.parametrize("wrong", [loses_one, to_everybody])
def test_a_list_that_is_wrongly_redistributed_is_seen(
    wrong: Callable[..., list[Item]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescale, "listed", wrong)
    assert_is_seen_at_once_and_in_the_output(Parts())


def test_a_union_that_is_wrongly_redistributed_is_seen() -> None:
    assert_is_seen_at_once_and_in_the_output(Parts(redistribution=HalfAUnion()))


def test_half_a_union_is_seen_in_the_old_layout_too() -> None:
    scenario = counting(2, faults=(KILL,))
    history = Run(scenario, Parts(redistribution=HalfAUnion()), False).history()
    assert "restored-state" in judge(scenario.workload, scenario.topology, history).violated


def with_an_endless_input(wide: int) -> Scenario:
    """What ends is counted; one of its two tallies goes long before the other, whose end is told late."""
    records = tuple((n % 12, n, n + 1) for n in range(48))
    short = Input(name="short", splits=(records[:12], records[12:24]))
    long = Input(name="long", splits=(records[24:] * 3,), bounded=False)
    tally = Node(name="tally", operator=Tally(), inputs=("short",))
    both = Node(name="both", operator=Union(), inputs=("tally", "long"))
    workload = Workload(name="mixed", inputs=(short, long), nodes=(tally, both))
    names = dict.fromkeys(("short", "long", "tally", "both", "sink"), 2)
    return Scenario(
        workload=workload,
        topology=lay_out(workload, names),
        engine=Engine(checkpoint_interval_us=1_500, tolerated_failures=20, restart_attempts=3),
        faults=(LateMessage(trigger=AtTime(at_us=0), message="terminate", task="tally-1", by_us=30_000),),
        commands=(
            Cancel(trigger=AtTime(at_us=12_000)),
            Resume(trigger=AtTime(at_us=700), parallelism=dict.fromkeys(names, wide)),
        ),
    )


@pytest.mark.parametrize("wide", [2, 3])
def test_a_union_of_which_a_subtask_has_finished_is_whole_all_the_same(wide: int) -> None:
    """FIN-1: its last state is in the record, and is offered to all, in the old layout and in another."""
    scenario = with_an_endless_input(wide)
    history = run(scenario)
    began = newest(history)
    assert "tally-0" in began.finished
    assert "tally-0" in began.handles
    assert "tally-1" not in began.finished
    assert not judge(scenario.workload, scenario.topology, history).violated
    _, union = held(history, "tally", 2)
    assert union == Counter(("counts", f"[{key},2]") for key in range(12))


@pytest.mark.parametrize("wide", [2, 3])
def test_a_union_without_the_part_of_a_subtask_that_has_finished_is_refused(wide: int) -> None:
    """J06: it is found as the checkpoint completes, and nobody goes on from half a union."""
    scenario = with_an_endless_input(wide)
    history = SimulatedSubject("J06").run(scenario)
    violated = judge(scenario.workload, scenario.topology, history).violated
    assert "consistent-cut" in violated
    last = journal(JobEnded, history)[-1]
    assert (last.status, "holds no state of tally-0" in last.reason) == ("failed", True)


def newest(history: History) -> Completed:
    """The checkpoint that the second job began with."""
    restored = next(run.loaded.checkpoint for run in history.runs if run.job == 2 and run.loaded is not None)
    return next(entry for entry in history.completed if entry.checkpoint == restored)


def test_a_function_that_is_made_to_raise_stands_for_all_that_its_operator_does() -> None:
    """Whatever an operator can be asked is asked of the one behind it."""
    inner = Operator()
    asked: list[str] = []
    for name, method in inspect.getmembers(Operator, inspect.isfunction):
        if not name.startswith("_"):
            setattr(inner, name, lambda *_, name=name, method=method: asked.append(name))
    front = Raising(inner, lambda _: False)
    wanted = [name for name, _ in inspect.getmembers(Operator, inspect.isfunction) if not name.startswith("_")]
    for name in wanted:
        parameters = list(inspect.signature(getattr(Operator, name)).parameters)[1:]
        getattr(front, name)(*parameters)
    assert asked == wanted
    inner.place = Place(2, 3)
    assert front.place == Place(2, 3)
