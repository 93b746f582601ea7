"""What the merge makes of requests whose answer nobody heard, on journals written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.properties.model import history as h
from cutproof.properties.model import workload as w
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary import transactions as t
from cutproof.reference_impl.core.vocabulary.causes import NotStored
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.core.vocabulary.status_changes import CheckpointAborted
from unit.harness.journals import (
    DATABASE,
    OTHER,
    ROW,
    Script,
    aborting,
    asking,
    begun,
    committing,
    orders,
    sealing,
)
from unit.snapshots import snapshot


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def statuses(history: h.History) -> dict[str, str]:
    return {one.name: one.status for one in history.transactions}


AWAY = t.NoAnswer(reason="the server is away")


def test_rows_that_no_answer_confirmed_are_in_a_transaction_that_was_sealed(script: Script) -> None:
    opened, first = begun("x", 1, ROW)
    script.asks(opened, first, answer=AWAY)
    script.asks(t.Write(**asking(), name="x", rows=(OTHER,)), answer=AWAY)
    script.asks(sealing("x"), committing("x"))

    (transaction,) = script.history(("x", ROW), ("x", OTHER)).transactions

    assert [tuple(row) for row in transaction.rows] == [ROW, OTHER]
    assert transaction.status == "committed"


def test_a_transaction_of_which_nothing_was_confirmed_never_began(script: Script) -> None:
    script.asks(*begun("x"), answer=AWAY)

    assert script.history().transactions == []


def test_answers_that_were_received_are_taken_as_they_are(script: Script) -> None:
    script.asks(*begun("x"), sealing("x"), committing("x"))
    script.asks(*begun("y"), aborting("y"))
    script.asks(committing("z"), answer=t.Denied(reason="it knows no transaction z"))

    assert statuses(script.history(("x", ROW))) == {"x": "committed", "y": "aborted"}


def test_what_was_done_counts_from_where_it_was_asked_for(script: Script) -> None:
    """A zombie may hear the answer long after others have built on what it did."""
    script.asks(*begun("x"))
    script.sends(sealing("x"))
    script.asks(committing("x", 2), by="coordinator")
    script.later()
    script.process("sink-0").saw(o.Transacted.of(sealing("x"), t.Done(), 0))

    (one,) = script.history(("x", ROW)).transactions

    prepared, committed = orders(one.prepared, one.committed)
    assert prepared < committed


# -- sealing -------------------------------------------------------------------------------------------------------


def test_a_seal_is_done_when_the_transaction_was_committed_later(script: Script) -> None:
    script.asks(*begun("x"))
    script.sends(sealing("x"))
    script.dies("sink-0")
    script.asks(committing("x", 2), by="sink-0", incarnation=1)

    (one,) = script.history(("x", ROW)).transactions

    assert (one.status, one.checkpoint) == ("committed", 3)
    begun_at, prepared, committed = orders(one.begun, one.prepared, one.committed)
    assert begun_at < prepared < committed


def test_a_seal_is_done_when_a_fence_lists_it(script: Script) -> None:
    script.asks(*begun("x"), *begun("y"))
    script.sends(sealing("x"))
    script.dies("sink-0")
    unfinished = (("x", CheckpointId(3)), ("y", None))
    script.asks(t.Fence(**asking(2)), answer=t.Done(unfinished=unfinished), incarnation=1)

    assert statuses(script.history()) == {"x": "prepared", "y": "open"}


def test_a_seal_is_done_when_it_is_left_at_the_end(script: Script) -> None:
    script.asks(*begun("x"))
    script.sends(sealing("x"))
    script.residue = h.Residue(prepared_transactions=["x"])

    assert statuses(script.history()) == {"x": "prepared"}


def test_a_seal_of_which_nothing_shows_was_not_done(script: Script) -> None:
    script.asks(*begun("x"))
    script.sends(sealing("x"))

    assert statuses(script.history()) == {"x": "open"}


def test_an_answer_to_the_same_request_later_settles_it(script: Script) -> None:
    script.asks(*begun("x"))
    script.asks(sealing("x"), answer=t.NoAnswer(reason="the server is away"))
    script.later()
    began = script.process("sink-0").order()
    script.process("sink-0").saw(o.Looked(began, 0))
    script.asks(sealing("x"))

    history = script.history()

    (prepared,) = orders(history.transactions[0].prepared)
    assert prepared > history.reads[0].ended


# -- committing and aborting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, t.NoAnswer(reason="the server is away")])
def test_a_commit_is_done_when_its_rows_show_and_nobody_else_made_it(script: Script, answer: t.Outcome | None) -> None:
    script.asks(*begun("x"), sealing("x"))
    if answer is None:
        script.sends(committing("x"))
    else:
        script.asks(committing("x"), answer=answer)

    assert statuses(script.history(("x", ROW))) == {"x": "committed"}


def publishing(*names: str) -> t.Publish:
    return t.Publish(**asking(writer="global-committer-0"), checkpoint=CheckpointId(3), names=names)


def finalising(name: str) -> t.Finalise:
    return t.Finalise(**asking(writer="committer-0"), name=name)


def test_a_version_is_published_when_all_that_it_names_shows(script: Script) -> None:
    script.asks(*begun("x"), sealing("x"), *begun("y"), sealing("y"), finalising("x"), finalising("y"))
    script.sends(publishing("x", "y"))

    one, other = script.history(("x", ROW), ("y", ROW)).transactions

    assert (one.status, other.status) == ("committed", "committed")
    at, then = orders(one.committed, other.committed)
    assert then == at + 1, "nothing comes between the two"


def test_a_version_of_which_one_part_does_not_show_was_not_published(script: Script) -> None:
    script.asks(*begun("x"), sealing("x"), *begun("y"), sealing("y"), finalising("x"))
    script.sends(publishing("x", "y"))
    script.residue = h.Residue(prepared_transactions=["x", "y"])

    assert statuses(script.history(("x", ROW))) == {"x": "prepared", "y": "prepared"}


def test_a_version_that_was_published_before_is_the_first_one_s(script: Script) -> None:
    script.asks(*begun("x"), sealing("x"), finalising("x"), publishing("x"))
    script.later()
    looking = script.process("coordinator")
    looking.saw(o.Looked(looking.order(), 1))
    script.sends(publishing("x"))

    history = script.history(("x", ROW))

    (committed,) = orders(history.transactions[0].committed)
    assert committed < history.reads[0].began


def test_a_seal_is_done_when_the_transaction_was_made_final(script: Script) -> None:
    script.asks(*begun("x"))
    script.sends(sealing("x"))
    script.asks(finalising("x"))

    assert statuses(script.history()) == {"x": "prepared"}


def test_what_the_output_does_not_show_is_committed_when_the_reader_lists_it(script: Script) -> None:
    script.asks(*begun("x"), sealing("x"), *begun("y"), sealing("y"))
    script.sends(committing("x"))
    script.sends(committing("y"))

    assert statuses(script.history(passing=["x"])) == {"x": "committed", "y": "prepared"}


def test_what_expired_was_sealed_and_is_lost(script: Script) -> None:
    script.asks(*begun("x"))
    script.sends(sealing("x"))
    script.later()
    script.harness.saw(o.Expired(0, "x"))
    script.asks(committing("x"), answer=t.Denied(reason="it knows no transaction x"))

    (one,) = script.history().transactions

    assert (one.status, one.checkpoint) == ("aborted", 3)
    prepared, aborted = orders(one.prepared, one.aborted)
    assert prepared < aborted


def test_a_commit_of_which_nothing_shows_was_not_done(script: Script) -> None:
    script.asks(*begun("x"), sealing("x"))
    script.sends(committing("x"))
    script.residue = h.Residue(prepared_transactions=["x"])

    assert statuses(script.history()) == {"x": "prepared"}


def test_a_commit_that_another_made_is_that_other_s(script: Script) -> None:
    script.asks(*begun("x"), sealing("x"))
    script.sends(committing("x"))
    script.later()
    looking = script.process("coordinator")
    looking.saw(o.Looked(looking.order(), 0))
    script.asks(committing("x", 2), by="coordinator")

    history = script.history(("x", ROW))

    (committed,) = orders(history.transactions[0].committed)
    assert committed > history.reads[0].ended


def test_an_abort_is_done_when_nothing_is_left_and_nothing_shows(script: Script) -> None:
    script.asks(*begun("x"), sealing("x"), *begun("y"), sealing("y"))
    script.asks(aborting("x"), aborting("y"), answer=t.NoAnswer(reason="the server is away"))
    script.residue = h.Residue(prepared_transactions=["y"])

    assert statuses(script.history()) == {"x": "aborted", "y": "prepared"}


def test_a_begin_is_done_when_what_it_began_is_left(script: Script) -> None:
    script.sends(t.BeginTransaction(**asking(), name="x"))
    script.sends(t.BeginTransaction(**asking(writer="sink-1"), name="y"))
    script.residue = h.Residue(open_transactions=["x"])

    assert statuses(script.history()) == {"x": "open"}


def test_a_write_without_an_answer_is_not_in_the_transaction(script: Script) -> None:
    script.asks(*begun("x"))
    script.sends(t.Write(**asking(), name="x", rows=(OTHER,)))

    assert script.history().transactions[0].rows == [ROW]


# -- rows of no transaction ------------------------------------------------------------------------------------------


def append(row: w.Row) -> t.Append:
    return t.Append(**asking(), row=row)


@pytest.mark.parametrize("waiting", [1, 2, 3])
def test_rows_are_in_once_a_later_request_of_their_writer_was_done(script: Script, waiting: int) -> None:
    """They went in just before it, one after the other, whatever else stands there."""
    rows: list[w.Row] = [(key, 0, 0, 0) for key in range(waiting)]
    script.asks(*map(append, rows), answer=t.NoAnswer(reason="the server is away"))
    script.asks(append(ROW), t.Flush(**asking()))

    assert [one.row for one in script.history().written] == [*rows, ROW]


def test_a_row_without_an_answer_was_written_if_it_shows(script: Script) -> None:
    log = script.run("sink-0")
    log.applies.append((0, 1))
    log.applies.append((0, 2))
    script.asks(append(ROW))
    script.sends(append(ROW))
    script.sends(append(OTHER))

    history = script.history((None, ROW), (None, ROW))

    assert [(one.row, one.applied) for one in history.written] == [(ROW, 0), (ROW, 2)]
    assert history.committed == [ROW, ROW]


def test_an_equal_row_that_is_known_to_be_written_is_not_taken_twice(script: Script) -> None:
    script.asks(append(ROW))
    script.sends(append(ROW))

    assert len(script.history((None, ROW)).written) == 1


# -- what the store takes back ---------------------------------------------------------------------------------------


def test_open_transactions_end_with_their_writer_where_the_store_rolls_back(script: Script) -> None:
    script.run("sink-0")
    script.asks(*begun("x"), sealing("x"), *begun("y"))
    script.dies("sink-0")

    history = script.history(rolls_back=True)

    assert statuses(history) == {"x": "prepared", "y": "aborted"}
    aborted, ended = orders(history.transactions[1].aborted, history.runs[0].ended)
    assert aborted > ended


def test_they_stay_open_where_it_does_not(script: Script) -> None:
    script.run("sink-0")
    script.asks(*begun("x"))
    script.dies("sink-0")

    assert statuses(script.history()) == {"x": "open"}


def test_a_fence_ends_what_older_attempts_have_open(script: Script) -> None:
    script.asks(*begun("x"))
    script.asks(t.BeginTransaction(**asking(writer="sink-1"), name="other"))
    script.asks(t.Fence(**asking(2)), *begun("y", 2))

    assert statuses(script.history(rolls_back=True)) == {"x": "aborted", "other": "open", "y": "open"}


def test_an_outage_ends_what_is_open_and_keeps_what_is_sealed(script: Script) -> None:
    script.asks(*begun("x"), sealing("x"), *begun("y"))
    script.later()
    script.harness.saw(o.Outage(DATABASE, True))
    script.later()
    script.harness.saw(o.Outage(DATABASE, False))
    script.asks(*begun("z"))

    assert statuses(script.history(rolls_back=True)) == {"x": "prepared", "y": "aborted", "z": "open"}


def test_what_is_sealed_while_the_store_is_about_to_die_is_not_taken_back(script: Script) -> None:
    script.asks(*begun("x"))
    script.later()
    script.harness.saw(o.Outage(DATABASE, True))
    script.asks(sealing("x"))

    assert statuses(script.history(rolls_back=True)) == {"x": "prepared"}


# -- completions -----------------------------------------------------------------------------------------------------


def completing(script: Script, checkpoint: int) -> None:
    script.later()
    script.process("coordinator").saw(o.CheckpointCompleting(snapshot(checkpoint, handles={"a-0": "h"})))


def completions(script: Script) -> list[int]:
    return [one.checkpoint for one in script.history().completed]


def test_a_completion_of_which_nobody_was_notified_shows_in_what_is_restored(script: Script) -> None:
    completing(script, 3)
    script.dies("coordinator")
    script.attempt(2, restores=3)

    history = script.history()

    assert [one.checkpoint for one in history.completed] == [3]
    assert history.completed[0].order < history.journal[0].order


def test_or_in_what_is_left(script: Script) -> None:
    completing(script, 3)
    script.residue = h.Residue(retained=[3])

    assert completions(script) == [3]


def test_one_that_shows_nowhere_was_none(script: Script) -> None:
    completing(script, 3)
    script.process("coordinator").saw(
        o.StatusChanged(1, CheckpointAborted(CheckpointId(3), AttemptId(1), NotStored("the store reported an error")))
    )

    assert completions(script) == []


def test_one_that_was_reported_counts_once(script: Script) -> None:
    completing(script, 3)
    script.process("coordinator").saw(o.CheckpointCompleted(snapshot(3)))
    script.attempt(2, restores=3)

    assert completions(script) == [3]
