"""Copies of snapshots are drawn within what the subject can do."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from cutproof.harness.generate import strategies
from cutproof.harness.generate.choices import FromBytes
from cutproof.harness.generate.copies import with_copies
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import CopySnapshot, MoveSnapshot
from cutproof.harness.subject.needs import lacks

CAPABILITIES = msgspec.structs.replace(SimulatedSubject().capabilities, file_faults=False)
PLAIN = scenario_of(Drawing(capabilities=CAPABILITIES))(1, 1)


@pytest.mark.parametrize("file_faults", [True, False])
def test_a_write_of_a_copy_fails_only_where_the_subject_knows_file_faults(file_faults: bool) -> None:
    scenario = msgspec.structs.replace(
        PLAIN, faults=(), commands=(), engine=msgspec.structs.replace(PLAIN.engine, snapshot_store="files")
    )
    copied, beyond = 0, 0
    for index in range(2_000):
        choices = FromBytes(hashlib.shake_256(str(index).encode()).digest(256))
        drawn = with_copies(choices, scenario, 4, file_faults=file_faults)
        copied += any(isinstance(command, CopySnapshot | MoveSnapshot) for command in drawn.commands)
        beyond += "file faults" in lacks(drawn, CAPABILITIES)
    assert copied > 20
    assert (beyond > 0) == file_faults


def test_a_subject_without_file_faults_always_gets_a_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if no template has given one that it can run, and the plain one has a copy that is disturbed."""
    monkeypatch.setattr(strategies, "TRIES", 0)
    draw, disturbed = scenario_of(Drawing(capabilities=CAPABILITIES)), 0
    for index in range(5_000):
        scenario = draw(5, index)  # it raises HarnessFailed if even the plain one needs more
        assert (scenario.name, lacks(scenario, CAPABILITIES)) == ("plain", ())
        copied = any(isinstance(command, CopySnapshot | MoveSnapshot) for command in scenario.commands)
        disturbed += copied and bool(scenario.faults)
        if disturbed == 10:
            break
    assert disturbed == 10
