"""A job whose barriers may overtake says on which edges they do not, and why; one that aligns says nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cutproof.harness.cli import main
from cutproof.harness.counterexamples.replay import replay, report_of
from cutproof.harness.counterexamples.words import never_unaligned_in_words
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.translation import job_graph
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.harness.scenario import topologies
from cutproof.harness.scenario.files import write_scenario
from cutproof.harness.scenario.layout import never_unaligned
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.model.workload import Count, Edge, Input, Node, Rules, Workload
from cutproof.reports.render import render_html
from unit.harness.scenarios import chain, join
from unit.harness.subjects import Lossy

DRAWN = 150


def engine_of(scenario: Scenario, **changes: object) -> Scenario:
    settings = {"alignment": "unaligned", **changes}
    return msgspec.structs.replace(scenario, engine=msgspec.structs.replace(scenario.engine, **settings))


def rebalanced(scenario: Scenario) -> Scenario:
    """The scenario with no edge that is never unaligned."""
    edges = tuple(
        msgspec.structs.replace(edge, partitioning="rebalance") if edge.partitioning == "forward" else edge
        for edge in scenario.topology.edges
    )
    return msgspec.structs.replace(scenario, topology=msgspec.structs.replace(scenario.topology, edges=edges))


def ruled() -> Scenario:
    """events and rules -> apply -> count -> sink."""
    records = tuple((number, number, number + 1) for number in range(4))
    inputs = tuple(
        Input(name=name, splits=(tuple((key, value, tag + at) for key, value, tag in records),))
        for name, at in (("events", 0), ("rules", 10))
    )
    nodes = (
        Node(name="apply", operator=Rules(), inputs=("events", "rules")),
        Node(name="count", operator=Count(), inputs=("apply",)),
    )
    workload = Workload(name="ruled", inputs=inputs, nodes=nodes)
    layout = topologies.lay_out(workload, {"events": 1, "rules": 1, "apply": 2, "count": 2, "sink": 1})
    return Scenario(workload=workload, topology=layout)


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (engine_of(chain()), "source>map (forward)"),
        (engine_of(rebalanced(chain())), "no edge"),
        (engine_of(chain(), alignment="timeout"), "source>map (forward)"),
        (engine_of(rebalanced(chain()), committing="committer", alignment="in-turn"), "sink>committer (to its commit)"),
        (
            engine_of(chain(), committing="global"),
            "source>map (forward), sink>committer (to its commit), committer>global-committer (to its commit)",
        ),
        (engine_of(ruled()), "events>apply (same receiver as rules>apply), rules>apply (broadcast)"),
    ],
)
def test_which_and_why(scenario: Scenario, expected: str) -> None:
    assert never_unaligned_in_words(scenario) == f"Never unaligned: {expected}."


@pytest.mark.parametrize("scenario", [chain(), join(), ruled(), rebalanced(chain())])
def test_a_job_that_aligns_reports_nothing_of_it(scenario: Scenario) -> None:
    assert never_unaligned_in_words(scenario) == ""


def test_it_is_what_the_engine_does() -> None:
    draw = scenario_of(Drawing(max_records=20))
    some = 0
    for index in range(DRAWN):
        scenario = draw(5, index)
        graph = job_graph(scenario.workload, scenario.topology, scenario.engine)
        aligning = [spec for spec in graph.operators if spec.inputs and not graph.overtaken(spec)]
        edges = {(edge.sender, spec.name) for spec in aligning for edge in spec.inputs}
        assert set(never_unaligned(scenario)) == edges, index
        some += 0 < len(edges) < sum(len(spec.inputs) for spec in graph.operators)
    assert some > DRAWN // 3


def test_the_report_of_a_counterexample_states_it() -> None:
    failed = replay(Lossy(), engine_of(chain()))
    report = report_of(failed, "lossy", "cutproof replay it.json")
    assert "Never unaligned: source&gt;map (forward)." in render_html(report)
    aligned = report_of(replay(Lossy(), chain()), "lossy", "cutproof replay it.json")
    assert aligned.counterexamples
    assert "Never unaligned" not in render_html(aligned)


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (engine_of(chain()), "Never unaligned: source>map (forward)."),
        (engine_of(rebalanced(chain())), "Never unaligned: no edge."),
        (chain(), ""),
    ],
)
def test_a_story_states_it_in_a_line(
    scenario: Scenario, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_scenario(tmp_path / "it.json", scenario)
    assert main(["replay", str(tmp_path / "it.json"), "--quick", "--story"]) == ExitCode.HELD
    assert [line for line in capsys.readouterr().out.splitlines() if "Never unaligned" in line] == (
        [expected] if expected else []
    )


def test_an_edge_next_to_two_that_are_never_unaligned_names_one_of_them() -> None:
    edges = tuple(
        Edge(sender=name, receiver="join", partitioning=how) for name, how in (("left", "hash"), ("right", "forward"))
    )
    scenario = engine_of(join())
    layout = msgspec.structs.replace(scenario.topology, edges=(*edges, scenario.topology.edges[-1]))
    expected = never_unaligned(msgspec.structs.replace(scenario, topology=layout))
    assert expected == {
        ("left", "join"): "same receiver as right>join",
        ("right", "join"): "forward",
        ("join", "sink"): "forward",
    }
