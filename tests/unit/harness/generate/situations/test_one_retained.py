"""S6: an aborted checkpoint, a savepoint and two crashes amid incremental checkpoints, and nobody is accused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, kind_of
from cutproof.harness.generate.admission import admitted
from cutproof.harness.generate.situations.templates import SHARES
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Savepoint, Scenario, format_of
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import AttemptStarted, CheckpointAborted, History
from cutproof.properties.model.verdict import Holds

DRAWN = 120
RUNS = 60
CAPABILITIES = SimulatedSubject().capabilities
SEQUENCE = ("checkpoint", "aborted", "savepoint", "checkpoint", "restored", "checkpoint", "restored")


@pytest.fixture(scope="module")
def drawn() -> list[Scenario]:
    draw = scenario_of(Drawing(capabilities=CAPABILITIES, templates=("S6",)))
    return [draw(6, index) for index in range(DRAWN)]


@pytest.fixture(scope="module")
def results(drawn: list[Scenario]) -> list[Result]:
    return [run(SimulatedSubject(), scenario) for scenario in drawn[:RUNS]]


def steps(history: History) -> list[str]:
    """What became of its checkpoints, and each time that a snapshot was restored."""
    found = [(one.order, "savepoint" if one.savepoint else "checkpoint") for one in history.completed]
    for entry in history.journal:
        if isinstance(entry, CheckpointAborted) and entry.failed:
            found.append((entry.order, "aborted"))
        elif isinstance(entry, AttemptStarted) and entry.restores is not None:
            found.append((entry.order, "restored"))
    return [step for _, step in sorted(found)]


def occurs(sequence: Iterable[str], among: Iterable[str]) -> bool:
    """Whether the steps of the sequence are among these steps, in its order."""
    rest = iter(among)
    return all(step in rest for step in sequence)


def restored_with_files_of_others(history: History) -> bool:
    """Whether a snapshot was restored that refers to files which were written for an older one."""
    restored = {one.restores for one in history.journal if isinstance(one, AttemptStarted)}
    handles = {handle for one in history.completed if one.checkpoint in restored for handle in one.handles.values()}
    return any(not own for one in history.stored if one.handle in handles for _, _, own in one.files)


def test_it_is_drawn_among_the_others() -> None:
    assert SHARES["S6"] > 0


def test_what_is_drawn_is_valid_and_incremental(drawn: list[Scenario]) -> None:
    assert [problem for one in drawn for problem in problems_of(one)] == []
    assert {(one.name, one.engine.snapshot_format, one.engine.snapshot_store) for one in drawn} == {
        ("S6", "incremental", "files")
    }
    retained = Counter(one.engine.retained_checkpoints for one in drawn)
    assert retained[1] > DRAWN * 4 // 5, "deletions and copies, which any scenario may have, retain more"
    formats = Counter(
        format_of(command) or "the job's" for one in drawn for command in one.commands if isinstance(command, Savepoint)
    )
    assert min(formats[name] for name in ("the job's", "incremental", "canonical", "native")) > 0
    assert {one.engine.guarantee for one in drawn} == {"exactly-once", "at-least-once"}


def test_most_savepoints_are_asked_for_behind_the_abort(drawn: list[Scenario]) -> None:
    behind = [AtPoint(point="checkpoint-aborted") in [command.trigger for command in one.commands] for one in drawn]
    assert DRAWN * 3 // 5 < sum(behind) < DRAWN
    faults = Counter(kind_of(fault) for one in drawn for fault in one.faults)
    assert min(faults[kind] for kind in ("kill-task", "kill-node", "kill-coordinator", "fail-write")) > DRAWN // 6
    assert faults["lose-message"] > 0


def test_the_whole_sequence_occurs_in_a_third_of_the_runs(results: list[Result]) -> None:
    found = [steps(result.history) for result in results]
    assert sum(occurs(SEQUENCE[:3], one) for one in found) > RUNS // 2
    assert sum(occurs(SEQUENCE, one) for one in found) > RUNS // 3


def test_most_runs_restore_a_snapshot_that_refers_to_files_of_older_ones(results: list[Result]) -> None:
    assert sum(restored_with_files_of_others(result.history) for result in results) > RUNS // 2


def test_nobody_is_accused(results: list[Result]) -> None:
    assert [result.scenario.seed for result in results if result.judgement.violated] == []
    held = Counter(
        name for result in results for name, one in result.judgement.verdicts.items() if isinstance(one, Holds)
    )
    assert min(held[name] for name in ("no-data-loss", "consistent-cut", "restored-state")) > RUNS // 2


@pytest.mark.parametrize("defect", ["G02", "G03"])
def test_a_defect_of_shared_files_is_caught(drawn: list[Scenario], defect: str) -> None:
    subject = subject_called("simulated", defect)
    assert any("restored-state" in run(subject, scenario).judgement.violated for scenario in drawn[:RUNS])


def test_a_subject_without_what_it_needs_does_not_get_it() -> None:
    without = (
        replace(CAPABILITIES, snapshot_formats=CAPABILITIES.snapshot_formats - {"incremental"}),
        replace(CAPABILITIES, commands=CAPABILITIES.commands - {"savepoint"}),
    )
    assert [admitted(("S1", "S6"), can, given=False) for can in without] == [("S1",), ("S1",)]
    assert admitted(("S1", "S6"), CAPABILITIES, given=False) == ("S1", "S6")
