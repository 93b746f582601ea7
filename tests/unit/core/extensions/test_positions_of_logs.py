"""From where on a source still needs its log (ABS-15)."""

from __future__ import annotations

from cutproof.reference_impl.core.extensions.sources.log_trimming import LogTrimming
from cutproof.reference_impl.core.vocabulary.effects import Effect, Trim
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId


def trimming(positions: dict[int, dict[int, int]]) -> LogTrimming:
    """Of a source that took part in these checkpoints."""
    trims = LogTrimming()
    for checkpoint, cut in positions.items():
        trims.cut(CheckpointId(checkpoint), cut)
    return trims


def complete(trims: LogTrimming, oldest: int | None) -> list[Effect]:
    return trims.complete(CheckpointId(oldest) if oldest is not None else None)


def test_each_split_is_trimmed_up_to_its_position_in_the_oldest_checkpoint_that_may_be_restored() -> None:
    trims = trimming({1: {0: 2, 3: 5}, 2: {0: 4, 3: 9}})
    assert complete(trims, 1) == [Trim(0, 2), Trim(3, 5)]
    assert complete(trims, 2) == [Trim(0, 4), Trim(3, 9)]


def test_nothing_is_trimmed_while_none_may_be_restored() -> None:
    assert complete(trimming({1: {0: 2}}), None) == []


def test_nothing_is_trimmed_for_a_checkpoint_whose_positions_are_not_known_here() -> None:
    trims = trimming({2: {0: 4}})
    assert complete(trims, 1) == []
    assert complete(trims, 3) == [], "nor for one that it is yet to take part in"
    assert complete(trims, 2) == [Trim(0, 4)], "what it knows it keeps"


def test_what_lies_before_the_oldest_is_forgotten() -> None:
    """A late message that names an older checkpoint trims nothing."""
    trims = trimming({1: {0: 2}, 2: {0: 4}})
    complete(trims, 2)
    assert complete(trims, 1) == []


def test_the_positions_are_those_of_the_cut_though_the_source_reads_on() -> None:
    positions = {0: 2}
    trims = trimming({1: positions})
    positions[0] = 9
    assert complete(trims, 1) == [Trim(0, 2)]
