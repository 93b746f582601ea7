"""The in-flight data of one checkpoint: what is recorded of it, and when the snapshot may be written."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.decisions.in_flight import Capture, Recorded
from cutproof.reference_impl.core.extensions.in_flight_data.in_flight import InFlight, Recording
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from cutproof.reference_impl.core.vocabulary.state import Snapshot, TaskState, without_keyed_state

ONE = CheckpointId(1)
A, B = (1, 10, 0, 0, 1, 0), (2, 20, 0, 0, 2, 0)


def snapshot() -> Snapshot:
    return without_keyed_state(TaskState())


@pytest.mark.parametrize(
    ("is_delivered", "is_reported", "is_taken", "is_whole"),
    [
        (True, True, True, True),
        (True, True, False, False),
        (True, False, True, False),
        (False, True, True, False),
    ],
    ids=["whole", "without the task's own state", "outputs not reported", "a barrier is missing"],
)
def test_it_is_whole_with_every_barrier_the_report_of_the_outputs_and_the_tasks_own_state(
    *, is_delivered: bool, is_reported: bool, is_taken: bool, is_whole: bool
) -> None:
    book = InFlight(Capture())
    book.begin(ONE, (2,), (0,))
    if is_delivered:
        book.delivered(ONE, 2)
    if is_reported:
        book.overtook(ONE, {})
    if is_taken:
        assert book.hold(ONE, snapshot())
    assert [checkpoint for checkpoint, _ in book.whole()] == ([ONE] if is_whole else [])


def test_what_is_recorded_so_far_does_not_change_with_what_follows() -> None:
    recording = Recording(missing=[0, 1], queued={0: [A]})
    before = recording.recorded
    recording.queued[0].append(B)
    recording.missing.remove(1)
    assert before == Recorded((0, 1), {0: (A,)})
    assert recording.recorded == Recorded((0,), {0: (A, B)})


def test_no_two_recordings_share_what_they_hold() -> None:
    one, other = Recording(missing=[0]), Recording(missing=[0])
    one.queued[0], one.replays[0] = [A], [1]
    assert (other.queued, other.replays, other.spilled) == ({}, {}, {})
