"""How large a scenario may be: every bound is met, told, and stands in the schema and on the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults.plan import AtRest, AtTime, KillTask
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects import simulated
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import LINE, ExitCode
from cutproof.harness.scenario import bounds, files
from cutproof.harness.scenario.bounds import BOUNDS, SYSTEM_BOUNDS, Bound
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.files import as_written, encode_scenario
from cutproof.harness.scenario.model import Cancel, Fork, Perturbation, Scenario
from cutproof.harness.scenario.reading import FileError
from cutproof.harness.scenario.system_files import read_system, system_schema
from cutproof.harness.subject.port import ScenarioRefused
from cutproof.harness.subject.run import run as run_and_judge
from cutproof.properties.model.verdict import Violated
from cutproof.properties.model.workload import (
    SINK,
    AnyOperator,
    Edge,
    FlatMap,
    Input,
    Join,
    Map,
    Node,
    Sliding,
    Sum,
    Topology,
    Union,
    Workload,
)
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from cutproof.reference_impl.simulated.world import World
from unit.harness.scenarios import chain

PAGE = Path(__file__).parents[4] / "docs" / "format.md"
replace = msgspec.structs.replace


def _with_records(splits: list[list[tuple[int, int, int]]]) -> Scenario:
    scenario = chain()
    source = replace(scenario.workload.inputs[0], splits=tuple(tuple(split) for split in splits), times=())
    return replace(scenario, workload=replace(scenario.workload, inputs=(source,)))


def _records(number: int) -> list[tuple[int, int, int]]:
    return [(at % 7, at, at) for at in range(number)]


def _with_engine(**changes: int | str) -> Scenario:
    return replace(chain(), engine=replace(chain().engine, **changes))


def _with_widths(width: int) -> Scenario:
    topology = chain().topology
    return replace(chain(), topology=replace(topology, parallelism=dict.fromkeys(topology.parallelism, width)))


def _many_operators(number: int) -> Scenario:
    scenario = chain()
    nodes = [
        Node(name=f"m{at}", operator=Map(), inputs=(f"m{at - 1}" if at else scenario.workload.inputs[0].name,))
        for at in range(number)
    ]
    return replace(scenario, workload=replace(scenario.workload, nodes=tuple(nodes)))


def _row_of_operators(number: int, width: int, *operators: AnyOperator) -> Scenario:
    """A source and so many operators one after the other, all of one width."""
    scenario = chain()
    first = scenario.workload.inputs[0].name
    names = [first, *(f"m{at}" for at in range(number))]
    nodes = tuple(
        Node(name=name, operator=operators[at] if operators else Map(), inputs=(names[at],))
        for at, name in enumerate(names[1:])
    )
    edges = tuple(Edge(sender=one, receiver=two, partitioning="hash") for one, two in pairwise([*names, SINK]))
    topology = replace(scenario.topology, parallelism=dict.fromkeys([*names, SINK], width), edges=edges)
    return replace(scenario, workload=replace(scenario.workload, nodes=nodes), topology=topology)


KILL = KillTask(task="source-0", trigger=AtTime(at_us=5))
LATE = Perturbation(what="step source-0", occurrence=1, by_us=1)
BEYOND: dict[str, tuple[Bound, Callable[[], Scenario]]] = {
    "splits": (bounds.SPLITS, lambda: _with_records([[record] for record in _records(20_000)])),
    "records": (bounds.RECORDS, lambda: _with_records([_records(100_000)])),
    "operators": (bounds.OPERATORS, lambda: _many_operators(101)),
    "subtasks": (bounds.SUBTASKS, lambda: _row_of_operators(40, 30)),
    "channels": (bounds.CHANNELS, lambda: _row_of_operators(5, 64)),
    "rows": (bounds.ROWS, lambda: _row_of_operators(3, 1, FlatMap(fan=129), FlatMap(fan=128), Map(add=1))),
    "faults": (bounds.FAULTS, lambda: replace(chain(), faults=(KILL,) * 1_001)),
    "commands": (bounds.COMMANDS, lambda: replace(chain(), commands=(Cancel(trigger=AtTime(at_us=1)),) * 101)),
    "deviations": (bounds.PERTURBATIONS, lambda: replace(chain(), deviations=(LATE,) * 10_001)),
    "an hour between records": (bounds.TIME_US, lambda: _with_engine(read_interval_us=bounds.HOUR_US)),
    "checkpoints without end": (bounds.CHECKPOINTS, lambda: _with_engine(read_interval_us=bounds.HOUR_US // 100)),
}


@pytest.mark.parametrize("which", BEYOND)
def test_beyond_a_bound_the_line_has_value_and_bound_and_what_to_do(which: str) -> None:
    bound, make = BEYOND[which]
    with pytest.raises(FileError) as raised:
        files.decode_scenario(encode_scenario(make()), where="big.json")
    stated = str(raised.value)
    assert raised.value.exit_code == ExitCode.USAGE
    assert f" {bound.what}; there can be {bound.most:,} at most: {bound.advice}" in stated
    assert len(stated) <= LINE


def _laid_out(wide: int, partitioning: str) -> Topology:
    return replace(
        chain().topology,
        parallelism=dict.fromkeys(chain().topology.parallelism, wide),
        edges=tuple(replace(edge, partitioning=partitioning) for edge in chain().topology.edges),
    )


def test_channels_are_counted_without_spelling_them_out() -> None:
    edges = len(chain().topology.edges)
    assert bounds.channels_of(_laid_out(64, "hash")) == 64 * 64 * edges
    assert bounds.channels_of(_laid_out(64, "forward")) == 64 * edges


def _workload(*nodes: Node, inputs: int = 1) -> Workload:
    sources = tuple(
        Input(name=f"in{at}", splits=(tuple((key % 2, key, at * 100 + key) for key in range(10)),))
        for at in range(inputs)
    )
    return Workload(name="w", inputs=sources, nodes=nodes)


@pytest.mark.parametrize(
    ("workload", "rows"),
    [
        (_workload(), 10),
        (_workload(Node(name="a", operator=Sum(), inputs=("in0",))), 20),
        (_workload(Node(name="a", operator=FlatMap(fan=255), inputs=("in0",))), 10 + 2_550),
        (_workload(Node(name="a", operator=Sliding(size=10, slide=3), inputs=("in0",))), 10 + 40),
        (_workload(Node(name="a", operator=Union(), inputs=("in0", "in1")), inputs=2), 40),
        (_workload(Node(name="a", operator=Join(), inputs=("in0", "in1")), inputs=2), 20 + 50),
    ],
)
def test_rows_are_forecast_by_key(workload: Workload, rows: int) -> None:
    assert bounds.rows_of(workload) == rows


def test_a_tower_of_flat_maps_is_refused_before_a_row_is_made() -> None:
    scenario = chain()
    first = scenario.workload.inputs[0].name
    nodes = (Node(name="a", operator=FlatMap(fan=255), inputs=(first,)),
             Node(name="b", operator=FlatMap(fan=255), inputs=("a",)),
             Node(name="c", operator=FlatMap(fan=255), inputs=("b",)))  # fmt: skip
    rows = bounds.rows_of(replace(scenario.workload, nodes=nodes))
    assert rows > bounds.ROWS.most


def test_what_is_drawn_is_far_below_every_bound() -> None:
    draw = scenario_of(Drawing(capabilities=SimulatedSubject().capabilities, max_records=240, max_faults=6))
    for index in range(60):
        scenario = draw(5, index)
        assert list(problems_of(scenario)) == []
        assert bounds.rows_of(scenario.workload) * 20 < bounds.ROWS.most
        time_us = bounds.time_of(scenario)
        assert time_us * 20 < bounds.TIME_US.most
        assert bounds.checkpoints_in(scenario, time_us) * 5 < bounds.CHECKPOINTS.most
        run = simulated.Run(scenario, simulated.parts_for(None), timeline=False)
        run.history()
        assert run.world.loop.steps * 20 < bounds.LIMIT_STEPS
        assert run.recorder.snapshot_bytes * 20 < bounds.LIMIT_SNAPSHOT_BYTES
        assert run.world.loop.steps <= bounds.events_of(scenario) < bounds.LIMIT_STEPS / bounds.ROOM
        stated = bounds.snapshot_bytes_of(scenario)
        assert run.recorder.snapshot_bytes <= stated < bounds.LIMIT_SNAPSHOT_BYTES / bounds.ROOM


def test_a_run_of_too_many_events_ends_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cutproof.harness.reference_engine.subjects.translation.LIMIT_STEPS", 50)
    monkeypatch.setattr(simulated, "LIMIT_STEPS", 50)
    with pytest.raises(ScenarioRefused, match=r"its run has had 50 events after [0-9,]+ µs") as raised:
        SimulatedSubject().run(chain())
    assert len(str(raised.value)) <= LINE
    with (
        pytest.raises(FileError, match=r"^a\.json: its run has had 50 events") as late,
        as_written(Path("a.json")),
    ):
        SimulatedSubject().run(chain())
    assert late.value.exit_code == ExitCode.USAGE


def test_a_run_of_too_large_snapshots_ends_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "LIMIT_SNAPSHOT_BYTES", 60)
    with pytest.raises(ScenarioRefused, match="its snapshots have more than 60 bytes") as raised:
        SimulatedSubject().run(chain())
    assert len(str(raised.value)) <= LINE


class Circling(World):
    """An engine that has the same thing to do again for ever."""

    def submit(self, initial: Sequence[CompletedCheckpoint] = (), named: CheckpointId | None = None) -> None:
        super().submit(initial, named)
        self._again()

    def _again(self, *_: object) -> None:
        self.loop.after(0, self._again)


class Hoarding(Circling):
    """An engine that stores without end."""

    def _again(self, *_: object) -> None:
        self.observer.keeps("x" * 100_000)  # type: ignore[attr-defined]
        self.loop.after(0, self._again)


@pytest.mark.parametrize("engine", [Circling, Hoarding])
def test_an_engine_that_runs_in_circles_violates_progress(engine: type[World], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "World", engine)
    result = run_and_judge(SimulatedSubject(), chain())
    assert not result.history.quiet
    verdict = result.judgement.verdicts["progress"]
    assert isinstance(verdict, Violated)
    assert verdict.difference == "no rest"


def test_an_engine_that_runs_in_circles_over_a_large_scenario_is_not_distinguished_from_a_large_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulated, "World", Circling)
    monkeypatch.setattr(simulated, "events_of", lambda scenario: bounds.LIMIT_STEPS // bounds.ROOM)
    with pytest.raises(ScenarioRefused, match=r"its run has had 2,000,000 events"):
        SimulatedSubject().run(chain())


def test_a_scenario_that_asks_for_so_many_events_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    large = _with_records([_records(3_000)])
    assert list(problems_of(large)) == []
    monkeypatch.setattr("cutproof.harness.reference_engine.subjects.translation.LIMIT_STEPS", 5_000)
    monkeypatch.setattr(simulated, "LIMIT_STEPS", 5_000)
    with pytest.raises(ScenarioRefused, match=r"its run has had 5,000 events"):
        SimulatedSubject().run(large)


def test_no_hundreds_of_processes_are_started() -> None:
    with pytest.raises(ScenarioRefused, match=r"256 subtasks, each a process .* there can be 128 at most"):
        ProcessesSubject().run(_with_widths(64))


def test_the_page_and_the_schemas_have_the_bounds() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for bound in BOUNDS:
        assert f"| {bound.most:,} | {bound.what} |" in page
    assert ", ".join(f"{bound.most:,} {bound.what}" for bound in SYSTEM_BOUNDS) in page
    counted = {bounds.PARALLELISM_LIMIT, bounds.LIMIT_STEPS, bounds.LIMIT_SNAPSHOT_BYTES}
    assert all(f"| {number:,} |" in page for number in counted)
    assert f"at most {files.SCENARIO_LIMIT_BYTES >> 20} MiB" in page
    assert f"history {files.HISTORY_LIMIT_BYTES >> 20} MiB" in page
    for schema, stated in ((files.scenario_schema(), BOUNDS), (system_schema(), SYSTEM_BOUNDS)):
        assert all(f"{bound.most:,} {bound.what}" in schema["description"] for bound in stated)
    defs = files.scenario_schema()["$defs"]
    assert defs["Input"]["properties"]["splits"]["maxItems"] == bounds.SPLITS.most
    assert defs["Engine"]["properties"]["read_interval_us"]["maximum"] == bounds.HOUR_US


def _system(**changes: Any) -> dict[str, Any]:
    system = {"processes": ["p"], "channels": [{"name": "c", "sender": "p", "receiver": "p"}], **changes}
    return {"format": "cutproof-graph/1", "name": "g", "system": system}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"processes": [f"p{at}" for at in range(101)]}, "101 processes; there can be 100 at most"),
        ({"acts": [{"at_us": at, "process": "p", "label": "a"} for at in range(5_001)]}, "5,001 acts"),
        ({"beginnings": [{"at_us": 1, "process": "p", "snapshot": f"s{at}"} for at in range(51)]}, "51 beginnings"),
        ({"acts": [{"at_us": 10**30, "process": "p", "label": "a"}]}, "it can be 3600000000 at most"),
        ({"patience_us": 10**12}, "it can be 3600000000 at most"),
    ],
)
def test_a_system_beyond_a_bound_is_refused(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(json.dumps(_system(**changes)))
    with pytest.raises(FileError, match=reason):
        read_system(tmp_path / "g.json")


def test_snapshots_in_memory_are_not_forked_on_processes() -> None:
    scenario = replace(_with_engine(snapshot_store="memory"), commands=(Fork(trigger=AtRest()),))
    with pytest.raises(ScenarioRefused, match="fork: on processes the snapshots in a coordinator's memory"):
        ProcessesSubject().run(scenario)
