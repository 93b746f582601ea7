"""What is read out of a failure's sentence where no cause is named, and that nothing is where one is."""

from __future__ import annotations

import pytest

from cutproof.properties.model.causes import (
    AnyCause,
    CheckpointTimedOut,
    IncompatibleJob,
    NoHeartbeat,
    OtherCause,
    SnapshotUnreadable,
    TransactionRefused,
    Why,
)


def said(sentence: str) -> Why:
    return Why(None, sentence)


@pytest.mark.parametrize(
    ("sentence", "checkpoints"),
    [
        ("the snapshot of checkpoint 3 could not be read: EIO", (3,)),
        ("the record of checkpoint 3, 12 cannot be read", (3, 12)),
        ("Checkpoints 1, 2 and 3 are gone", (1, 2, 3)),
        ("savepoint 1 is torn", (1,)),
        ("Checkpoints 1, 2, and 3 are gone", (1, 2, 3)),
        ("checkpoint #3 was not found", (3,)),
        ("checkpoint-3 was not found", (3,)),
        ("cannot read checkpoint id 3", (3,)),
        ("cannot read Checkpoint ID: 3", (3,)),
        ("no state in snapshot 7.", (7,)),
        ("cannot open /store/chk-1/op-0", (1,)),
        ("neither checkpoint 4 nor chk-5 can be read", (4, 5)),
        ("exit code 1", ()),
        ("the checkpoint could not be read: exit code 1", ()),
        ("a read of a snapshot failed after 3 tries", ()),
        ("checkpoint 1.5 s after its trigger", ()),
        ("checkpoint 1st", ()),
        ("checkpoint 12a", ()),
        ("nochk-1", ()),
        ("task 3: disk 4 is full", ()),
        ("checkpoint " + "9" * 5000, ()),
    ],
)
def test_a_number_in_a_sentence_is_a_checkpoint_only_if_it_is_named_as_one(
    sentence: str, checkpoints: tuple[int, ...]
) -> None:
    assert said(sentence).unreadable == checkpoints


@pytest.mark.parametrize(
    ("sentence", "lost"),
    [
        ("the store refused: transaction sink-0/3 has expired", True),
        ("Transactions were given up", True),
        ("InvalidTxnState: the producer attempted a transactional operation", True),
        ("there is a newer producer with the same transactionalId", True),
        ("its connection broke", False),
    ],
)
def test_a_sentence_about_transactions_says_so_in_any_word(sentence: str, lost: bool) -> None:
    assert said(sentence).is_lost_transaction is lost


def test_the_name_of_a_transaction_and_of_an_operator_is_a_word_of_its_own() -> None:
    assert said("transaction sink-0/3 is gone").names("sink-0/3")
    assert not said("transaction sink-0/31 is gone").names("sink-0/3")
    assert said("no state of count: it is new").blames("count")
    assert not said("no state of count-1: it is new").blames("count")


def test_only_the_exact_sentence_says_that_there_was_no_heartbeat() -> None:
    assert said("no heartbeat").is_silence
    assert not said("no heartbeat for 3 s").is_silence
    assert not said("it timed out").is_timeout, "a timeout is read from a cause alone"


ALL = "no heartbeat: transaction sink-0/3 of checkpoint 1, operator count, timed out"


@pytest.mark.parametrize("sentence", [ALL, "no heartbeat", "ceci n'est pas une cause", ""])
@pytest.mark.parametrize(
    ("cause", "read"),
    [
        (OtherCause(), (False, False, False, False, (), False)),
        (NoHeartbeat(), (True, False, False, False, (), False)),
        (CheckpointTimedOut(), (False, True, False, False, (), False)),
        (TransactionRefused(transaction="sink-0/3"), (False, False, True, True, (), False)),
        (SnapshotUnreadable(checkpoints=(7,)), (False, False, False, False, (7,), False)),
        (IncompatibleJob(operators=("count",)), (False, False, False, False, (), True)),
    ],
)
def test_with_a_cause_the_sentence_says_nothing(cause: AnyCause, read: tuple[object, ...], sentence: str) -> None:
    why = Why(cause, sentence)
    assert read == (
        why.is_silence,
        why.is_timeout,
        why.is_lost_transaction,
        why.names("sink-0/3"),
        why.unreadable,
        why.blames("count"),
    )
