"""A resume with operators that the job had not, on the harness's side: checked, drawn, told, shrunk (FIN-2)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cutproof.harness.cli.entry import main
from cutproof.harness.counterexamples.words import command_in_words
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.reference_engine.subjects.translation import job_graphs
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.files import read_scenario, write_scenario
from cutproof.harness.scenario.model import Resume, Scenario
from cutproof.harness.shrink import reductions
from cutproof.harness.shrink.shrink import shrink
from cutproof.properties.model.stages import COMMITTERS

replace = msgspec.structs.replace
PROCESSES = Path(__file__).parents[3] / "corpus" / "processes"


def scenario(inserted: dict[str, str], **engine: object) -> Scenario:
    """Two sources, counts and sinks over three splits, stopped amid the records and again."""
    kept = read_scenario(PROCESSES / "D14.json")
    commands = tuple(
        replace(command, inserted=inserted) if isinstance(command, Resume) else command for command in kept.commands
    )
    return replace(kept, commands=commands, engine=replace(kept.engine, **engine), defect="", expects="")


def brought(again: Scenario) -> list[dict[str, str]]:
    return [one.inserted for one in again.commands if isinstance(one, Resume)]


@pytest.mark.parametrize(
    ("inserted", "problem"),
    [
        ({"fresh": "other"}, "fresh is to be inserted before 'other', which is neither a node nor the sink"),
        ({"fresh": "source"}, "fresh is to be inserted before 'source', which is neither a node nor the sink"),
        ({"count": "sink"}, "'count' cannot be the name of a new operator"),
        ({"sink": "count"}, "'sink' cannot be the name of a new operator"),
        ({COMMITTERS[0]: "count"}, f"{COMMITTERS[0]!r} cannot be the name of a new operator"),
        ({"../fresh": "count"}, "'../fresh' cannot be the name of a new operator (letters, digits, - and _"),
    ],
)
def test_what_cannot_be_brought_is_reported_in_a_line(
    inserted: dict[str, str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = scenario(inserted)
    assert problem in next(problems_of(wrong))
    write_scenario(tmp_path / "wrong.json", wrong)
    assert main(["replay", str(tmp_path / "wrong.json"), "--quick"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line


def test_a_job_that_begins_with_no_snapshot_has_none_to_be_incompatible_with() -> None:
    assert list(problems_of(scenario({"fresh": "count"}))) == []
    (problem,) = problems_of(scenario({"fresh": "count"}, guarantee="at-most-once", sink="plain"))
    assert "an at-most-once job restores no snapshot" in problem


def test_they_stand_one_behind_the_other_before_what_they_are_brought_to_and_in_that_job_alone() -> None:
    asked = scenario({"fresh": "count", "newer": "count"})
    again = replace(asked.commands[-1], inserted={})
    _, incompatible, last = job_graphs(replace(asked, commands=(*asked.commands, again)))
    assert [spec.name for spec in incompatible.operators] == ["source", "fresh", "newer", "count", "sink"]
    assert [(edge.sender, edge.partitioning) for edge in incompatible.spec("fresh").inputs] == [("source", "forward")]
    assert [(edge.sender, edge.partitioning) for edge in incompatible.spec("count").inputs] == [("newer", "hash")]
    assert incompatible.spec("newer").parallelism == incompatible.spec("source").parallelism
    assert [spec.name for spec in last.operators] == ["source", "count", "sink"]


@pytest.mark.parametrize("partitioning", ["forward", "rebalance"])
def test_what_they_send_is_distributed_as_what_came_there_was(partitioning: str) -> None:
    again = scenario({"fresh": "sink"})
    first, last = again.topology.edges
    layout = replace(again.topology, edges=(first, replace(last, partitioning=partitioning)))
    _, incompatible = job_graphs(replace(again, topology=layout))
    assert [(edge.sender, edge.partitioning) for edge in incompatible.spec("sink").inputs] == [("fresh", partitioning)]


def test_in_words() -> None:
    (_, again) = scenario({"fresh": "count", "newer": "sink"}).commands
    sentence = "the job is started again with new operators: fresh before count, newer before sink"
    assert command_in_words(again) == sentence


def test_whoever_refuses_is_asked_for_it_and_nobody_else() -> None:
    def asked(refuses: bool) -> list[Scenario]:
        capabilities = replace(SimulatedSubject().capabilities, refuses_incompatible=refuses)
        draw = scenario_of(Drawing(capabilities=capabilities, templates=("part-finished",)))
        return [one for one in (draw(3, index) for index in range(40)) if any(brought(one))]

    found = asked(True)
    assert len(found) > 8
    assert len({behind for one in found for again in brought(one) for behind in again.values()}) > 2
    for one in found:
        assert list(problems_of(one)) == []
        assert brought(one)[-1] == {}, "and then it goes on as it was"
    assert asked(False) == []


def test_it_shrinks_away_unless_it_matters_and_goes_with_what_it_stands_before() -> None:
    again = scenario({"fresh": "count"})
    smallest = shrink(again, lambda one: any(isinstance(each, Resume) for each in one.commands), max_runs=300).scenario
    assert brought(smallest) == [{}]
    several = scenario({"newer": "sink", "fresh": "count", "third": "sink"})
    smallest = shrink(several, lambda one: any("fresh" in new for new in brought(one)), max_runs=300).scenario
    assert [list(new) for new in brought(smallest)] == [["fresh"]]
    without = reductions.without_node(again, "count")
    assert without is not None
    assert brought(without) == [{}]
