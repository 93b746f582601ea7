"""What of the data in flight belongs to a checkpoint: `core.in_flight`, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cutproof.reference_impl.core.decisions.in_flight import Capture
from cutproof.reference_impl.core.extensions.in_flight_data.in_flight import InFlight, pack, unpack
from cutproof.reference_impl.core.vocabulary.effects import Open, Refill, Restored, Send
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Barrier, CancelBarrier, Element, EndOfData, Idle, Watermark
from cutproof.reference_impl.core.vocabulary.state import Passing, Ref, Snapshot, TaskState, without_keyed_state
from unit.core.machines import deliver, deploy, operator, row

ONE, TWO = CheckpointId(1), CheckpointId(2)
A, B, C = row(1, 10, origin=1), row(2, 20, origin=2), row(3, 30, origin=3)
D = row(4, 40, origin=4)


def a_snapshot(*, ended: bool = False) -> Snapshot:
    return without_keyed_state(TaskState(ended=ended))


def written(book: InFlight) -> dict[CheckpointId, tuple[dict[int, list[Passing]], dict[int, list[Passing]]]]:
    """What may be written now, by checkpoint: what was queued, and what was unsent."""
    states = {checkpoint: snapshot.materialise() for checkpoint, snapshot in book.whole()}
    return {checkpoint: (state.queued, state.unsent) for checkpoint, state in states.items()}


def recording(*missing: int, outputs: bool = False, capture: Capture | None = None) -> InFlight:
    """A task that has begun checkpoint 1 and has its snapshot, waiting for these channels."""
    book = InFlight(capture or Capture())
    book.begin(ONE, missing, (0,) if outputs else ())
    book.hold(ONE, a_snapshot())
    return book


def test_what_is_no_data_is_not_held() -> None:
    elements = (A, Barrier(ONE, None), Watermark(7), CancelBarrier(ONE), Idle(), EndOfData())
    assert unpack(pack(elements)) == (A, Watermark(7), Idle())


def test_what_is_taken_before_the_barrier_and_what_it_overtook_are_held_in_their_order() -> None:
    book = recording(0)
    book.took(0, A)
    book.delivered(ONE, 0, (B, Watermark(5), C))
    assert written(book) == {ONE: ({0: pack((A, B, Watermark(5), C))}, {})}


def test_nothing_is_held_of_a_channel_that_has_delivered_the_barrier() -> None:
    book = recording(1)
    book.took(0, A)
    book.took(1, B)
    book.delivered(ONE, 1)
    book.took(1, C)
    assert written(book) == {ONE: ({1: pack((B,))}, {})}


def test_a_snapshot_is_written_once_every_channel_has_delivered_or_ended() -> None:
    book = recording(0, 1, 2)
    book.delivered(ONE, 2)
    book.ended(0)
    assert written(book) == {}
    book.delivered(ONE, 1)
    assert written(book) == {ONE: ({}, {})}
    assert written(book) == {}
    assert not book.listening


def test_a_snapshot_waits_for_what_was_overtaken_in_the_outputs() -> None:
    book = recording(outputs=True)
    assert written(book) == {}
    book.overtook(ONE, {0: (A, EndOfData()), 1: ()})
    assert written(book) == {ONE: ({}, {0: pack((A,))})}


def test_a_snapshot_waits_for_nothing_when_nothing_can_be_in_flight() -> None:
    book = InFlight(Capture())
    book.begin(ONE, ())
    assert not book.hold(ONE, a_snapshot())


def test_the_snapshot_of_a_task_whose_input_has_ended_waits_too() -> None:
    book = InFlight(Capture())
    book.begin(ONE, (), (0,))
    assert book.hold(ONE, a_snapshot(ended=True))


def test_checkpoints_that_overlap_are_recorded_side_by_side() -> None:
    book = recording(0, 1)
    book.took(0, A)
    book.delivered(ONE, 0)
    book.begin(TWO, (0, 1))
    book.hold(TWO, a_snapshot())
    book.took(0, B)
    book.took(1, C)
    book.delivered(ONE, 1)
    assert written(book) == {ONE: ({0: pack((A,)), 1: pack((C,))}, {})}
    book.delivered(TWO, 0)
    book.delivered(TWO, 1)
    assert written(book) == {TWO: ({0: pack((B,)), 1: pack((C,))}, {})}


def test_of_a_checkpoint_that_is_aborted_nothing_is_left() -> None:
    book = recording(0)
    book.took(0, A)
    book.aborted(ONE)
    assert not book.listening
    book.delivered(ONE, 0, (C,))
    assert written(book) == {}
    book.begin(TWO, (0,))
    book.hold(TWO, a_snapshot())
    book.delivered(TWO, 0, (B,))
    assert written(book) == {TWO: ({0: pack((B,))}, {})}


def test_what_comes_for_a_checkpoint_that_is_not_recorded_changes_nothing() -> None:
    book = recording(0)
    book.delivered(TWO, 0, (A,))
    book.overtook(TWO, {0: (A,)})
    book.aborted(TWO)
    book.delivered(ONE, 0)
    assert written(book) == {ONE: ({}, {})}


class Noting(Capture):
    """Notes what it is told of data that was put back."""

    def __init__(self) -> None:
        self.elements: list[object] = []

    def before_barrier(self, restored: Sequence[Element], live: Sequence[Element]) -> Sequence[Element]:
        self.elements.append((tuple(restored), tuple(live)))
        return ()


def test_what_is_put_back_is_distinguished_until_it_has_been_taken() -> None:
    capture = Noting()
    book = InFlight(capture)
    assert book.put_back({0: pack((A, B)), 1: pack((C,))}) == [
        Refill(0, (A, B)),
        Refill(1, (C,)),
    ]
    assert book.listening
    book.took(0, A)
    book.begin(ONE, (0, 1))
    book.took(0, B)
    book.took(0, C)
    book.delivered(ONE, 1, (C, A))
    assert capture.elements == [((B,), ()), ((), (C,)), ((C,), (A,))]


def test_what_is_put_back_is_held_by_a_checkpoint_that_is_taken_amid_it() -> None:
    book = InFlight(Capture())
    book.put_back({0: pack((A, B))})
    book.begin(ONE, (0,))
    book.hold(ONE, a_snapshot())
    book.took(0, A)
    book.delivered(ONE, 0, (B, C))
    assert written(book) == {ONE: ({0: pack((A, B, C))}, {})}


def test_a_checkpoint_amid_the_replay_counts_how_often_each_was_put_back() -> None:
    """A was put back twice by now, B and C once; A is taken behind the first barrier, then B, and C is overtaken."""
    book = InFlight(Capture())
    assert book.put_back({1: pack((A, B, C))}, {1: [1]})[0].replays == (1,)  # type: ignore[attr-defined]
    book.begin(ONE, (0, 1))
    book.hold(ONE, a_snapshot())
    book.took(1, A)
    book.took(0, D)
    book.took(1, B)
    book.delivered(ONE, 1, (C, D))
    book.delivered(ONE, 0, (A,))
    ((_, snapshot),) = book.whole()
    state = snapshot.materialise()
    assert (state.queued, state.replays) == ({1: pack((A, B, C, D)), 0: pack((D, A))}, {1: [2, 1, 1]})


def test_what_is_put_back_comes_before_what_has_arrived() -> None:
    assert Capture().handed_over([A, B], (C,)) == (A, B, C)


def test_a_task_whose_barriers_do_not_overtake_puts_back_what_a_former_job_had_in_flight() -> None:
    """It comes first: the inputs open behind it."""
    state = TaskState(queued={0: pack([A, Watermark(7)])}, unsent={0: pack([B])})
    restored, *effects = deliver(operator(), deploy(state=state, checkpoint=4))
    assert isinstance(restored, Restored)
    assert (restored.state.queued, restored.state.unsent) == (state.queued, state.unsent)
    assert effects[:3] == [Refill(0, (A, Watermark(7)), ()), Send(0, B), Open()]


@pytest.mark.parametrize(
    ("queued", "unsent", "spilled", "expected"),
    [
        ({}, {}, {}, False),
        ({0: pack([A])}, {}, {}, True),
        ({}, {0: pack([A])}, {}, True),
        ({}, {}, {0: [Ref("l", 1, 2)]}, True),
    ],
)
def test_a_snapshot_says_whether_it_holds_elements_in_flight(
    queued: dict[int, list[Passing]],
    unsent: dict[int, list[Passing]],
    spilled: dict[int, list[Ref]],
    expected: bool,
) -> None:
    assert a_snapshot().with_in_flight(queued, unsent, spilled).in_flight is expected
