"""Small rules that larger tests pass by."""

from __future__ import annotations

from cutproof.properties.model.history import CommandIssued, History
from cutproof.properties.model.struck import StruckChannel, StruckCommit, TornWrite, channel_of, expired, torn
from cutproof.properties.model.words import entry_in_words
from cutproof.properties.model.workload import Topology, Workload, problems


def test_a_history_states_of_no_defect_that_it_ran_unless_it_did() -> None:
    assert History(subject="mine", guarantee="exactly-once", sink="plain").defect_reached is False


def test_a_workload_without_inputs_cannot_be_run() -> None:
    assert problems(Workload(name="nothing", inputs=()), Topology(parallelism={}, edges=())) == [
        "the workload has no input"
    ]


def test_words_leave_out_what_means_nothing() -> None:
    drained = entry_in_words(CommandIssued(order=1, at_us=2, command=0, kind="stop", drain=True))
    assert "drain" not in entry_in_words(CommandIssued(order=1, at_us=2, command=0, kind="stop", drain=False))
    assert "drain" in drained


# -- what a fault struck: named, or read from a sentence of an older run ------------------------------------------


def test_what_is_named_decides_whatever_the_sentence_says() -> None:
    write, commit = TornWrite(handle="7/a-0"), StruckCommit(transactions=("a-0/7",), how="expired")
    channel = StruckChannel(channel="a-0>b-0")
    assert torn(write, "", "7/a-0")
    assert expired(commit, "", "a-0/7")
    assert channel_of(channel, "") == "a-0>b-0"
    for other in (TornWrite(), write, commit, channel):
        assert not torn(other, "half of 8/a-0 is written", "8/a-0")
        assert not expired(other, "the commit of a-0/8: expired", "a-0/8")
    assert channel_of(write, "b-0>c-0 holds what is in it") == ""


def test_only_a_commit_that_was_too_late_has_expired() -> None:
    assert not expired(StruckCommit(transactions=("a-0/7",), how="refused"), "", "a-0/7")


def test_sentences_of_older_runs_are_read() -> None:
    assert torn(None, "half of 7/a-0 is written", "7/a-0")
    assert not torn(None, "half of 7/a-00 is written", "7/a-0")
    assert expired(None, "the commit of a-0/7: expired", "a-0/7")
    assert channel_of(None, "a-0>b-0: nothing passes") == "a-0>b-0"
    assert channel_of(None, "a-0 is killed") == ""
