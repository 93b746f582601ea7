"""The order of checkpoints; None: there was none yet."""

from __future__ import annotations

from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, following, is_newer, newest, oldest, preceding

ONE, TWO = CheckpointId(1), CheckpointId(2)


def test_none_is_older_than_each_checkpoint() -> None:
    assert [is_newer(ONE, None), is_newer(None, ONE), is_newer(None, None)] == [True, False, False]
    assert [is_newer(TWO, ONE), is_newer(ONE, TWO), is_newer(ONE, ONE)] == [True, False, False]


def test_the_oldest_and_the_newest() -> None:
    assert (oldest([TWO, ONE]), newest([ONE, TWO])) == (ONE, TWO)
    assert (oldest([TWO, None, ONE]), newest([None, TWO, ONE])) == (None, TWO)
    assert (oldest([]), newest([]), newest([None])) == (None, None, None)


def test_the_id_before_and_the_id_after() -> None:
    assert (preceding(TWO), preceding(ONE)) == (ONE, None)
    assert (following(None), following(ONE)) == (ONE, TWO)
