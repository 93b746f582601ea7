"""Small rules that larger tests pass by."""

from __future__ import annotations

from cutproof.properties.model.history import CommandIssued, History
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
