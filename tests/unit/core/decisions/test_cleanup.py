"""What is copied of a snapshot for its user, and what the copy refers to."""

from __future__ import annotations

from msgspec.structs import replace

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.effects import StoreCopy
from unit.core.coordinator_rig import complete_snapshot


def test_a_copy_refers_to_no_log() -> None:
    _, stored = Parts().cleanup.copy(replace(complete_snapshot(5), logs=("log",)))
    assert isinstance(stored, StoreCopy)
    assert stored.snapshot.logs == ()
