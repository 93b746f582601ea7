"""What the merge puts right of failures and deaths, on journals written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.harness.reference_engine.merging.merging import as_seen
from cutproof.properties.model import history as h
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary import transactions as t
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.core.vocabulary.events import CommandKind
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.status_changes import AttemptRunning
from unit.harness.journals import COORDINATOR as BY_FAULT
from unit.harness.journals import CUT, DATABASE, KILL, PAUSE, PROXY, ROW, Script, entries, failures

BROKE = "its connection from map-0 broke: it was closed"
FENCED = "sink-0: the external store refused: sink-0 has been fenced by a newer attempt"
REFUSED = "sink-0: the external store refused: it knows no transaction x"


@pytest.fixture(params=["former sentences", "today's causes", "causes in other words"])
def script(request: pytest.FixtureRequest, tmp_path: Path) -> Script:
    """Failures with sentences alone, or with causes, of which misleading sentences decide nothing."""
    made = Script(tmp_path)
    made.today = request.param != "former sentences"
    made.reworded = "no heartbeat" if request.param == "causes in other words" else ""
    return made


def how(history: h.History) -> dict[tuple[str, int], str]:
    return {(run.task, run.attempt): run.how for run in history.runs}


# -- one order -----------------------------------------------------------------------------------------------------


def test_entries_of_all_processes_stand_by_their_stamps(script: Script) -> None:
    late = script.run("b-0")
    early = script.run("a-0")
    script.now = 9_000
    script.process("b-0").saw(o.Marked(late.run, CheckpointId(1), (), ()))
    script.now = 5_000
    script.process("a-0").saw(o.Marked(early.run, CheckpointId(1), (), ()))

    marks = {run.task: run.marks[0].order for run in script.history().runs}

    assert marks["a-0"] < marks["b-0"]


def test_times_count_from_the_first_entry(script: Script) -> None:
    script.now = 70_000
    script.process("coordinator").saw(o.StatusChanged(1, AttemptRunning(AttemptId(1))))
    script.now = 75_000
    script.process("coordinator").saw(o.StatusChanged(1, AttemptRunning(AttemptId(2))))

    assert [entry.at_us for entry in script.history().journal] == [0, 5_000]


def test_a_run_s_job_is_the_one_the_coordinator_named(script: Script) -> None:
    script.attempt(4, "a-0", job=2)

    assert [run.job for run in script.history().runs] == [2]


def test_a_read_counts_the_rows_of_what_it_saw(script: Script) -> None:
    journal = script.process("sink-0")
    began = journal.order()
    script.later()
    script.process("coordinator").saw(o.StatusChanged(1, AttemptRunning(AttemptId(1))))
    script.later()
    journal.saw(o.Seen(began, ["y"]))
    journal.saw(o.Seen(journal.order(), ["x", "y"]))

    history = script.history(("x", (1, 1, 1, 1)), ("x", (2, 2, 2, 2)), ("y", ROW), ("z", (3, 3, 3, 3)))

    assert history.committed == [ROW, (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)]
    assert [read.rows for read in history.reads] == [1, 3]
    assert history.reads[0].began < history.journal[0].order < history.reads[0].ended


def test_reads_that_overtook_each_other_still_saw_a_first_part() -> None:
    rows = [("a", ROW), ("b", ROW), ("c", ROW)]

    assert [name for name, _ in as_seen(rows, [["b", "c"], ["b"]])] == ["b", "c", "a"]


@pytest.mark.parametrize("ran", [False, True])
def test_a_planted_defect_that_ran_is_reported(script: Script, ran: bool) -> None:
    if ran:
        script.process("a-0").saw(o.DefectReached())

    assert script.history().defect_reached is ran


# -- deaths --------------------------------------------------------------------------------------------------------


def test_who_dies_takes_its_runs_along(script: Script) -> None:
    script.attempt(1, "a-0", "b-0")
    script.run("c-0", 1, process="a-0")
    script.dies("a-0")

    history = script.history()

    assert how(history) == {("a-0", 1): "killed", ("b-0", 1): "alive", ("c-0", 1): "killed"}
    assert failures(history) == [("a-0", 1, KILL), ("c-0", 1, KILL)]


def test_a_death_stands_behind_all_that_the_dead_wrote(script: Script) -> None:
    script.attempt(1, "a-0")
    script.dies("a-0")
    script.later(50_000)
    script.process("a-0").saw(o.SnapshotStored(CheckpointId(1), TaskId("a-0"), AttemptId(1), Handle("x"), "{}"))

    history = script.history()

    assert history.stored[0].order < (history.runs[0].ended or 0)


def test_what_had_ended_before_is_not_killed(script: Script) -> None:
    script.attempt(1)
    script.ends(script.run("a-0"), "a-0", o.RunEnd.FINISHED)
    script.dies("a-0")

    history = script.history()

    assert how(history) == {("a-0", 1): "finished"}
    assert failures(history) == []


def test_only_the_incarnation_that_died_is_dead(script: Script) -> None:
    script.attempt(1, "a-0")
    script.dies("a-0", 0)
    script.attempt(2, "a-0", incarnation=1)

    assert how(script.history()) == {("a-0", 1): "killed", ("a-0", 2): "alive"}


def test_the_death_of_a_zombie_is_no_failure(script: Script) -> None:
    script.attempt(1, "a-0")
    script.attempt(2, "a-0", incarnation=1)
    script.dies("a-0", 0)

    history = script.history()

    assert how(history)["a-0", 1] == "killed"
    assert failures(history) == []


def test_a_death_after_the_job_s_end_is_no_failure(script: Script) -> None:
    script.attempt(1, "a-0")
    script.process("coordinator").saw(o.job_ended(1, Status.FINISHED, None, None))
    script.dies("a-0")

    assert failures(script.history()) == []


def test_a_process_that_dies_of_itself_is_an_unexplained_failure(script: Script) -> None:
    script.attempt(1, "a-0")
    script.dies("a-0", fault=None)

    assert failures(script.history()) == [("a-0", 1, None)]


def test_what_comes_of_the_harness_s_farewell_is_no_news(script: Script) -> None:
    script.attempt(1, "a-0")
    script.harness.saw(o.Closing())
    script.fails("a-0", BROKE)
    script.dies("a-0", fault=None)
    script.attempt(2)

    history = script.history()

    assert how(history) == {("a-0", 1): "alive"}
    assert failures(history) == []
    assert len(entries(h.AttemptStarted, history)) == 1


@pytest.mark.parametrize(("killed", "fault"), [(True, KILL), (False, None)])
def test_an_attempt_that_was_sent_to_a_dead_process_failed_of_its_killer(
    script: Script, killed: bool, fault: int | None
) -> None:
    script.attempt(1, "a-0", "b-0")
    script.fails("b-0", "KeyError: 3", fault=5)
    script.later()
    script.attempt(2)
    if killed:
        script.dies("a-0")
    script.fails("a-0", "its process is gone", 2, by="coordinator")

    assert failures(script.history()) == [("b-0", 1, 5), ("a-0", 2, fault)]


def test_a_death_that_the_harness_notices_late_explains_what_others_noticed_before(script: Script) -> None:
    """The harness notices nothing while it waits for a server."""
    script.attempt(1, "map-0", "b-0")
    script.harness.saw(o.FaultFired(KILL, "running", "a snapshot was torn", 1))
    script.later()
    script.fails("map-0", "its process is gone", 1, by="coordinator")
    script.fails("b-0", BROKE)
    script.later(30_000_000)
    script.dies("map-0")

    assert failures(script.history()) == [("map-0", 1, KILL)]


def test_a_fault_that_fires_later_explains_no_break(script: Script) -> None:
    script.attempt(1, "map-0", "b-0")
    script.fails("b-0", BROKE)
    script.later(30_000_000)
    script.harness.saw(o.FaultFired(KILL, "running", "a snapshot was torn", 1))
    script.dies("map-0")

    assert ("b-0", 1, None) in failures(script.history())


def test_a_coordinator_that_dies_is_down_once_and_answers_what_was_asked(script: Script) -> None:
    coordinator = script.process("coordinator")
    script.harness.saw(o.CommandIssued(0, CommandKind.SAVEPOINT, False))
    script.later()
    coordinator.saw(o.CommandIssued(0, CommandKind.SAVEPOINT, False))
    script.harness.saw(o.CommandIssued(1, CommandKind.RESUME, False))
    script.dies("coordinator", fault=BY_FAULT)
    script.harness.saw(o.CoordinatorChanged(False, BY_FAULT))
    script.harness.saw(o.CommandReturned(0, None, "the coordinator died"))
    script.later()
    script.process("coordinator", 1).saw(o.CoordinatorChanged(True, None))

    history = script.history()

    assert [entry.fault for entry in entries(h.CoordinatorDown, history)] == [BY_FAULT]
    assert len(entries(h.CoordinatorUp, history)) == 1
    assert [entry.command for entry in entries(h.CommandIssued, history)] == [0, 1]
    assert [(one.command, one.error) for one in entries(h.CommandReturned, history)] == [(0, "the coordinator died")]


# -- failures ------------------------------------------------------------------------------------------------------


def test_a_failure_of_a_superseded_attempt_is_nobody_s_concern(script: Script) -> None:
    script.attempt(1, "a-0")
    script.attempt(2)
    script.fails("a-0", "KeyError: 3")

    assert failures(script.history()) == []


def test_what_fails_because_a_coordinator_that_closes_the_job_has_fenced_it_is_superseded(script: Script) -> None:
    """The task has not heard yet that it is cancelled.  The fence took effect before its answer was recorded."""
    script.attempt(1, "sink-0", "sink-1")
    script.sends(t.Fence(writer=TaskId("sink-0"), attempt=AttemptId(2)), by="coordinator")
    script.fails("sink-0", FENCED)
    script.fails("sink-1", "KeyError: 3")

    assert failures(script.history()) == []


def test_before_that_fence_or_by_the_fence_of_another_task_nobody_is_superseded(script: Script) -> None:
    script.attempt(1, "sink-0", "sink-1")
    script.asks(t.Fence(writer=TaskId("sink-0"), attempt=AttemptId(1)))
    script.asks(t.Fence(writer=TaskId("sink-0"), attempt=AttemptId(2)), by="sink-1")
    script.fails("sink-0", FENCED)
    script.fails("sink-1", "KeyError: 3")
    script.asks(t.Fence(writer=TaskId("sink-0"), attempt=AttemptId(2)), by="coordinator")

    assert failures(script.history()) == [("sink-0", 1, None), ("sink-1", 1, None)]


def test_whoever_goes_on_outside_a_part_that_restarted_fails_as_before(script: Script) -> None:
    script.attempt(1, "a-0", "b-0", "a-1", "b-1")
    script.dies("b-1")
    script.attempt(2, "a-1", "b-1", incarnation=1, local=True)
    script.fails("a-1", "KeyError: 3")  # of its older attempt: nobody's concern
    script.fails("a-0", "KeyError: 4", fault=5)
    script.dies("b-0", fault=None)

    assert failures(script.history()) == [("b-1", 1, KILL), ("a-0", 1, 5), ("b-0", 1, None)]


def test_a_later_attempt_of_all_supersedes_whoever_went_on(script: Script) -> None:
    script.attempt(1, "a-0", "a-1")
    script.dies("a-1")
    script.attempt(2, "a-1", incarnation=1, local=True)
    script.attempt(3, "a-1", incarnation=2)
    script.fails("a-0", "KeyError: 4")

    history = script.history()

    assert failures(history) == [("a-1", 1, KILL)]
    assert [entry.tasks for entry in entries(h.AttemptStarted, history)] == [[], ["a-1"], []]


def test_two_failures_of_one_attempt_count_once(script: Script) -> None:
    script.attempt(1, "a-0")
    script.fails("a-0", "KeyError: 3", fault=5)
    script.fails("a-0", "KeyError: 4", by="coordinator")
    script.dies("a-0")

    assert failures(script.history()) == [("a-0", 1, 5)]


def test_a_failure_that_nothing_explains_stays_unexplained(script: Script) -> None:
    script.attempt(1, "a-0", "map-0")
    script.fails("a-0", BROKE)

    history = script.history()

    assert failures(history) == [("a-0", 1, None)]
    assert not history.starved


@pytest.mark.parametrize("ended", [o.RunEnd.KILLED, o.RunEnd.FAILED, o.RunEnd.CANCELLED])
@pytest.mark.parametrize("reported_later", [False, True])
def test_a_connection_that_breaks_with_its_sender_is_no_failure_of_its_own(
    script: Script, ended: o.RunEnd, reported_later: bool
) -> None:
    script.attempt(1, "a-0")
    sender = script.run("map-0")
    if reported_later:
        script.fails("a-0", BROKE)
    script.later()
    script.ends(sender, "map-0", ended)
    if not reported_later:
        script.fails("a-0", BROKE)

    cancelled_for_it = reported_later and ended is o.RunEnd.CANCELLED
    assert failures(script.history()) == ([("a-0", 1, None)] if cancelled_for_it else [])


def test_a_connection_that_breaks_with_its_sender_s_process_is_none_either(script: Script) -> None:
    script.attempt(1, "a-0", "map-0")
    script.fails("a-0", BROKE)
    script.dies("map-0")

    assert failures(script.history()) == [("map-0", 1, KILL)]


@pytest.mark.parametrize(("ended", "later_us"), [(o.RunEnd.FINISHED, 0), (o.RunEnd.FAILED, 5_000_000)])
def test_a_sender_that_finished_or_failed_much_later_is_no_excuse(
    script: Script, ended: o.RunEnd, later_us: int
) -> None:
    script.attempt(1, "a-0")
    sender = script.run("map-0")
    script.fails("a-0", BROKE)
    script.later(later_us)
    script.ends(sender, "map-0", ended)

    assert failures(script.history()) == [("a-0", 1, None)]


@pytest.mark.parametrize(("channel", "fault"), [("map-0>a-0", CUT), ("*", PROXY)])
def test_a_connection_that_a_fault_broke_is_that_fault_s(script: Script, channel: str, fault: int) -> None:
    script.attempt(1, "a-0", "map-0")
    script.harness.saw(o.Breaks(fault, channel))
    script.fails("a-0", BROKE)

    assert failures(script.history()) == [("a-0", 1, fault)]


@pytest.mark.parametrize(("channel", "fault"), [("map-0>a-0", CUT), ("*", PROXY)])
def test_it_is_also_if_the_sender_fails_later_as_its_attempt_is_given_up(
    script: Script, channel: str, fault: int
) -> None:
    script.attempt(1, "a-0")
    sender = script.run("map-0")
    script.harness.saw(o.Breaks(fault, channel))
    script.fails("a-0", BROKE)
    script.later()
    script.ends(sender, "map-0", o.RunEnd.FAILED)

    assert failures(script.history()) == [("a-0", 1, fault)]


@pytest.mark.parametrize("ended", [o.RunEnd.KILLED, o.RunEnd.FAILED])
def test_a_sender_that_ended_before_is_the_cause_whatever_faults_there_are(script: Script, ended: o.RunEnd) -> None:
    script.attempt(1, "a-0")
    sender = script.run("map-0")
    script.harness.saw(o.Breaks(PROXY, "*"))
    script.ends(sender, "map-0", ended)
    script.later()
    script.fails("a-0", BROKE)

    assert failures(script.history()) == []


def test_a_fault_on_another_channel_or_long_healed_explains_nothing(script: Script) -> None:
    script.attempt(1, "a-0", "map-0")
    script.harness.saw(o.Breaks(PROXY, "*"))
    script.later()
    script.harness.saw(o.FaultHealed(PROXY))
    script.harness.saw(o.Breaks(CUT, "map-1>a-0"))
    script.later(3_000_000)
    script.fails("a-0", BROKE)

    assert failures(script.history()) == [("a-0", 1, None)]


def test_silence_of_a_process_that_was_stopped_is_the_fault_s(script: Script) -> None:
    script.attempt(1, "a-0")
    script.harness.saw(o.Stopped("a-0", 0, PAUSE))
    script.later(2_000_000)
    script.fails("a-0", "no heartbeat", by="coordinator")

    history = script.history()

    assert failures(history) == [("a-0", 1, PAUSE)]
    assert not history.starved


def test_silence_for_no_reason_states_that_the_machine_is_too_slow(script: Script) -> None:
    script.attempt(1, "a-0", "b-0")
    script.harness.saw(o.Stopped("b-0", 0, PAUSE))
    script.later(2_000_000)
    script.fails("a-0", "no heartbeat", by="coordinator")

    history = script.history()

    assert failures(history) == [("a-0", 1, None)]
    assert history.starved


@pytest.mark.parametrize(("by_us", "starved"), [(300_000, False), (1_500_000, True)])
def test_a_loop_that_is_very_late_reports_it_too(script: Script, by_us: int, starved: bool) -> None:
    script.attempt(1, "a-0")
    script.process("a-0").saw(o.Lagged(by_us))

    assert script.history().starved is starved


def test_a_loop_is_late_for_a_reason_when_it_was_stopped(script: Script) -> None:
    script.attempt(1, "a-0")
    script.harness.saw(o.Stopped("a-0", 0, PAUSE))
    script.later(2_000_000)
    script.harness.saw(o.FaultHealed(PAUSE))
    script.later()
    script.process("a-0").saw(o.Lagged(2_000_000))

    assert not script.history().starved


def test_a_refusal_is_the_fault_s_that_took_the_database_away(script: Script) -> None:
    script.attempt(1, "sink-0")
    script.later()
    script.harness.saw(o.Outage(DATABASE, True))
    script.later()
    script.harness.saw(o.Outage(DATABASE, False))
    script.later(20_000_000)  # what was open there is gone, however late that is found out
    script.fails("sink-0", REFUSED)

    assert failures(script.history()) == [("sink-0", 1, DATABASE)]


def test_a_refusal_is_the_fault_s_that_had_the_transaction_given_up(script: Script) -> None:
    """Also in another process than the one that stood before the commit: it was killed meanwhile."""
    script.attempt(1, "sink-0")
    script.later()
    script.harness.saw(o.Expired(CUT, "x-1"))
    script.harness.saw(o.Expired(KILL, "x"))
    for attempt, name in ((2, "x"), (3, "x-1"), (4, "y")):
        script.attempt(attempt, "sink-0", incarnation=attempt)
        script.fails("sink-0", f"sink-0: the external store refused: it knows no transaction {name}", attempt=attempt)

    assert failures(script.history()) == [("sink-0", 2, KILL), ("sink-0", 3, CUT), ("sink-0", 4, None)]


def test_a_refusal_before_the_outage_or_of_a_later_run_is_not(script: Script) -> None:
    script.attempt(1, "sink-0")
    script.fails("sink-0", REFUSED)
    script.later()
    script.harness.saw(o.Outage(DATABASE, True))
    script.later()
    script.harness.saw(o.Outage(DATABASE, False))
    script.later(3_000_000)
    script.attempt(2, "sink-0")
    script.fails("sink-0", REFUSED, attempt=2)

    assert failures(script.history()) == [("sink-0", 1, None), ("sink-0", 2, None)]
