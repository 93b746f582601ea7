"""What is copied of a snapshot for its user, when the copy gets its record, and what that refers to."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cutproof.reference_impl.core.decisions.checkpointing import record_of_copy
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.effects import CopyFiles
from cutproof.reference_impl.core.vocabulary.events import FilesCopied, files_of
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from unit.core.coordinator_rig import complete_snapshot


@pytest.mark.parametrize("logs", [(), ("log",)])
def test_a_copy_begins_with_all_files_and_has_the_elements_of_logs_itself(logs: tuple[str, ...]) -> None:
    snapshot = replace(complete_snapshot(5), logs=logs)
    (files,) = Parts().cleanup.copy(snapshot)
    assert isinstance(files, CopyFiles)
    assert (files.checkpoint, files.handles) == (5, files_of((snapshot,)))
    assert (files.parts, files.resolves) == (tuple(snapshot.handles.values()), bool(logs))


def test_a_copy_refers_to_no_log() -> None:
    assert record_of_copy(replace(complete_snapshot(5), logs=("log",))).snapshot.logs == ()


@pytest.mark.parametrize(("failure", "recorded"), [(None, True), ("op-0: the store reported an error", False)])
def test_a_copy_gets_its_record_only_if_all_its_files_are_there(failure: str | None, recorded: bool) -> None:
    assert Parts().cleanup.may_be_recorded(FilesCopied(CheckpointId(5), failure)) is recorded
