"""What can be judged of a run that was seen from outside, and that what nobody saw is no violation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import msgspec
import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.port import SubjectFailed
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import (
    WITNESSES,
    AttemptStarted,
    CommandIssued,
    CommandReturned,
    Commit,
    FaultFired,
    History,
    JobEnded,
    Read,
    Residue,
)
from cutproof.properties.model.verdict import INVARIANTS, Holds, Unknown, Verdict, Violated
from cutproof.properties.model.workload import (
    SINK,
    Count,
    Edge,
    Greater,
    Input,
    Map,
    Node,
    Operator,
    Row,
    Topology,
    Tumbling,
    Workload,
)

OUTSIDE = ("reader", "journal")
DRAWN = 50


def stripped(history: History, witnesses: tuple[str, ...]) -> History:
    """The history without the reports of all other witnesses."""
    gone: dict[str, Any] = {}
    for name, fields in WITNESSES.items():
        if name not in witnesses:
            gone |= {field: [] for field in fields}
    if "residue" in gone:
        gone["residue"] = Residue()
    return msgspec.structs.replace(history, witnesses=list(witnesses), **gone)


def drawn_runs(defect: str | None = None) -> list[tuple[Scenario, History]]:
    draw, subject, found = scenario_of(Drawing()), SimulatedSubject(defect), []
    for index in range(DRAWN):
        scenario = draw(5, index)
        try:
            found.append((scenario, subject.run(scenario)))
        except SubjectFailed:
            continue
    return found


@pytest.fixture(scope="module")
def sound() -> list[tuple[Scenario, History]]:
    return drawn_runs()


def subsets() -> list[tuple[str, ...]]:
    names = tuple(WITNESSES)
    return [chosen for size in (1, 2, 3, len(names) - 1) for chosen in combinations(names, size)]


def begins_behind(history: History) -> bool:
    """Whether a job was resumed from a named snapshot.  It may commit rows of former jobs again, and the journal alone
    says that it does so by command."""
    resumes = [one for one in history.journal if isinstance(one, CommandIssued) and one.kind == "resume"]
    return any(one.checkpoint is not None for one in resumes)


def test_a_sound_run_is_accused_by_no_choice_of_witnesses(sound: list[tuple[Scenario, History]]) -> None:
    chosen = subsets()
    for number, (scenario, history) in enumerate(sound):
        for witnesses in (OUTSIDE, *chosen[number % 5 :: 5]):
            if "journal" not in witnesses and begins_behind(history):
                continue
            verdicts = judge(scenario.workload, scenario.topology, stripped(history, witnesses)).verdicts
            wrong = {name: one for name, one in verdicts.items() if isinstance(one, Violated)}
            assert not wrong, (number, witnesses, wrong)
            broken = {name for name, one in verdicts.items() if getattr(one, "reason", "") == "checker failed"}
            assert not broken, (number, witnesses, verdicts)


def test_the_output_of_sound_runs_is_judged_and_exercised_from_outside(sound: list[tuple[Scenario, History]]) -> None:
    found = dict.fromkeys(INVARIANTS, 0)
    for scenario, history in sound:
        for name, verdict in judge(scenario.workload, scenario.topology, stripped(history, OUTSIDE)).verdicts.items():
            found[name] += isinstance(verdict, Holds)
    assert min(found[name] for name in ("exactly-once", "no-data-loss", "visibility", "progress")) > DRAWN // 6
    assert not any(found[name] for name in ("consistent-cut", "order", "restored-state", "drain", "no-leaks"))


@pytest.mark.parametrize("defect", ["A01", "I01"])
def test_a_broken_engine_is_seen_from_outside(defect: str) -> None:
    """A row that is lost or repeated shows in the output, whoever watched."""
    accused = 0
    for scenario, history in drawn_runs(defect):
        whole = judge(scenario.workload, scenario.topology, history).violated
        outside = judge(scenario.workload, scenario.topology, stripped(history, OUTSIDE)).violated
        assert whole or not outside, "and nothing is accused that all witnesses together acquit"
        accused += bool(outside.keys() & {"exactly-once", "no-data-loss"})
    assert accused


def test_a_history_that_names_all_witnesses_is_judged_like_one_that_names_none(
    sound: list[tuple[Scenario, History]],
) -> None:
    for scenario, history in sound[:10]:
        named = msgspec.structs.replace(history, witnesses=list(WITNESSES))
        assert judge(scenario.workload, scenario.topology, named) == judge(
            scenario.workload, scenario.topology, history
        )


# -- by hand --------------------------------------------------------------------------

RECORDS = [(7, 10, 1), (8, 20, 2), (7, 30, 3)]
ROWS: list[Row] = [(7, 1, 0, 0), (8, 1, 0, 0), (7, 2, 0, 0)]
"""What a count makes of the records."""
COUNT = Count()


def workload(operator: Operator, **of_input: Any) -> tuple[Workload, Topology]:
    work = Workload(
        name="by hand",
        inputs=(Input(name="source", splits=(tuple(RECORDS),), **of_input),),
        nodes=(Node(name="op", operator=operator, inputs=("source",)),),  # type: ignore[arg-type]
    )
    edges = (
        Edge(sender="source", receiver="op", partitioning="hash"),
        Edge(sender="op", receiver=SINK, partitioning="forward"),
    )
    return work, Topology(parallelism={"source": 1, "op": 1, SINK: 1}, edges=edges)


START = AttemptStarted(order=1, at_us=0, attempt=1, job=1)
FAULT = FaultFired(order=5, at_us=0, fault=0, kind="kill", phase="holds work")
AGAIN = AttemptStarted(order=6, at_us=0, attempt=2, job=1, restores=4)
FINISHED = JobEnded(order=20, at_us=0, job=1, status="finished")
JOURNAL = (START, FAULT, AGAIN, FINISHED)


def verdicts(
    committed: list[Row],
    *journal: Any,
    operator: Operator = COUNT,
    witnesses: tuple[str, ...] = OUTSIDE,
    bounded: bool = True,
    times: Any = None,
    **fields: Any,
) -> dict[str, Verdict]:
    given: dict[str, Any] = {"guarantee": "exactly-once", "sink": "transactional"} | fields
    history = History(
        subject="black box", witnesses=list(witnesses), committed=committed, journal=list(journal or JOURNAL), **given
    )
    of_input = {"times": times} if times is not None else {}
    work, topology = workload(operator, bounded=bounded, **of_input)
    return dict(judge(work, topology, history).verdicts)


def saw(began: int, ended: int, rows: list[Row]) -> Read:
    return Read(began=began, ended=ended, rows=len(rows), seen=rows)


def reason(verdict: Verdict) -> str:
    return verdict.reason if isinstance(verdict, Unknown) else type(verdict).__name__.lower()


def difference(verdict: Verdict) -> str:
    assert isinstance(verdict, Violated), verdict
    return verdict.difference


def test_the_right_output_of_a_recovered_job_holds_and_what_nobody_saw_is_not_observable() -> None:
    found = verdicts(ROWS)
    assert {name: reason(verdict) for name, verdict in found.items()} == {
        "exactly-once": "holds",
        "no-data-loss": "holds",
        "consistent-cut": "not observable",
        "at-least-once": "not promised",
        "at-most-once": "not promised",
        "order": "not observable",
        "restored-state": "not observable",
        "restorable": "not observable",
        "visibility": "not observable",
        "drain": "not observable",
        "progress": "holds",
        "no-leaks": "not observable",
    }


def test_a_repeated_row_a_lost_one_and_a_wrong_one_are_told_apart() -> None:
    assert difference(verdicts([*ROWS, ROWS[0]])["exactly-once"]) == "repeated row"
    assert difference(verdicts(ROWS[1:])["exactly-once"]) == "lost row"
    assert difference(verdicts(ROWS[1:])["no-data-loss"]) == "lost row"
    assert difference(verdicts([*ROWS[1:], (7, 9, 0, 0)])["exactly-once"]) == "wrong row"
    assert reason(verdicts([*ROWS, ROWS[0]])["no-data-loss"]) == "holds"


def test_what_is_no_row_violates_what_is_promised_and_is_named() -> None:
    torn = ['a.jsonl has a line that is not JSON: {"key": 2{"key": 2}', "b.parquet is no whole Parquet file"]
    found = verdicts(ROWS, unreadable=torn)
    assert difference(found["exactly-once"]) == "no row"
    assert f"what is no row: {torn[0]}, and 1 more" in str(found["exactly-once"])
    assert reason(found["no-data-loss"]) == "holds"
    lost = verdicts(ROWS[1:], unreadable=torn)["no-data-loss"]
    assert difference(lost) == "lost row"
    assert torn[0] in str(lost)


@pytest.mark.parametrize(
    "journal",
    [
        (START, FINISHED),
        (START, FAULT, FINISHED),
        (START, FAULT, msgspec.structs.replace(AGAIN, restores=None), FINISHED),
        (START, msgspec.structs.replace(AGAIN, order=3), msgspec.structs.replace(FAULT, order=9), FINISHED),
    ],
    ids=["no fault", "no restart", "from nothing", "before the fault"],
)
def test_only_an_attempt_that_goes_on_from_the_engines_own_after_a_fault_is_exercise(journal: tuple[Any, ...]) -> None:
    found = verdicts(ROWS, *journal)
    assert {reason(found[name]) for name in ("exactly-once", "no-data-loss", "progress")} == {"not exercised"}
    assert difference(verdicts([*ROWS, ROWS[0]], *journal)["exactly-once"]) == "repeated row"


def test_without_an_end_rows_may_be_missing_and_not_be_too_many() -> None:
    going_on = (START, FAULT, AGAIN)
    assert reason(verdicts(ROWS[1:], *going_on)["exactly-once"]) == "not observable"
    assert reason(verdicts(ROWS[1:], *going_on)["no-data-loss"]) == "not observable"
    assert difference(verdicts([*ROWS, ROWS[0]], *going_on)["exactly-once"]) == "repeated row"
    work, topology = workload(COUNT)
    alone = History(subject="", guarantee="exactly-once", sink="transactional", witnesses=["reader"])
    alone.committed = [*ROWS, ROWS[0]]
    assert difference(judge(work, topology, alone).verdicts["exactly-once"]) == "repeated row"


def test_the_last_commit_says_what_a_stopped_job_has_to_have_put_out() -> None:
    command = CommandIssued(order=8, at_us=0, command=0, kind="stop-with-savepoint")
    returned = CommandReturned(order=10, at_us=0, command=0, checkpoint=2)
    stopped = (START, FAULT, AGAIN, command, returned, JobEnded(order=20, at_us=0, job=1, status="stopped"))
    commits = [Commit(commit=1, order=3, positions={0: 1}), Commit(commit=2, order=9, positions={0: 2})]
    assert reason(verdicts(ROWS[:2], *stopped, commits=commits)["exactly-once"]) == "holds"
    assert difference(verdicts(ROWS[:1], *stopped, commits=commits)["exactly-once"]) == "lost row"
    assert difference(verdicts(ROWS, *stopped, commits=commits)["exactly-once"]) == "unexpected row"


@pytest.mark.parametrize("told", ["commits", "covers", "both"])
def test_a_drain_emits_open_windows_and_a_stop_does_not(told: str) -> None:
    window, times = Tumbling(size=10), ((1, 2, 13),)
    closed, opened = [(7, 1, 1, 0), (8, 1, 2, 0)], [(7, 1, 3, 10)]

    def ended(status: str, rows: list[Row]) -> Verdict:
        command = CommandIssued(order=8, at_us=0, command=0, kind="stop-with-savepoint", drain=status == "drained")
        returned = CommandReturned(order=12, at_us=0, command=0, checkpoint=2)
        covers = {0: 3} if told != "commits" else None
        end = JobEnded(order=20, at_us=0, job=1, status=status, covers=covers)
        journal = (START, FAULT, AGAIN, command, returned, end)
        marks = {"commits": [Commit(commit=1, order=9, positions={0: 3})]} if told != "covers" else {}
        found = verdicts(rows, *journal, operator=window, times=times, bounded=False, **marks)
        return found["exactly-once"]

    assert reason(ended("stopped", closed)) == "holds"
    assert reason(ended("drained", closed + opened)) == "holds"
    assert difference(ended("stopped", closed + opened)) == "unexpected row"
    assert difference(ended("drained", closed)) == "lost row"


def test_a_stopped_job_covers_what_its_end_says_and_reads_need_no_markers() -> None:
    command = CommandIssued(order=8, at_us=0, command=0, kind="stop-with-savepoint")
    returned = CommandReturned(order=10, at_us=0, command=0)
    end = JobEnded(order=20, at_us=0, job=1, status="stopped", covers={0: 2})
    stopped = (START, FAULT, AGAIN, command, returned, end)
    reads = [saw(3, 4, ROWS[:1])]
    found = verdicts(ROWS[:2], *stopped, reads=reads)
    assert {reason(found[name]) for name in ("exactly-once", "no-data-loss", "visibility", "progress")} == {"holds"}
    assert difference(verdicts(ROWS[:1], *stopped)["exactly-once"]) == "lost row"
    assert difference(verdicts(ROWS, *stopped)["exactly-once"]) == "unexpected row"
    unsaid = msgspec.structs.replace(end, covers=None)
    assert reason(verdicts(ROWS[:2], *stopped[:-1], unsaid)["exactly-once"]) == "not observable"


def test_a_stopped_job_that_was_resumed_covers_what_the_last_one_does() -> None:
    stop = CommandIssued(order=8, at_us=0, command=0, kind="stop-with-savepoint")
    end = JobEnded(order=10, at_us=0, job=1, status="stopped", covers={0: 1})
    resume = CommandIssued(order=11, at_us=0, command=1, kind="resume", parallelism={"op": 3})
    again = AttemptStarted(order=12, at_us=0, attempt=3, job=2, restores=2)
    returned = [CommandReturned(order=order, at_us=0, command=number) for number, order in ((0, 9), (1, 13))]
    finished = JobEnded(order=20, at_us=0, job=2, status="finished")
    journal = (START, FAULT, AGAIN, stop, returned[0], end, resume, again, returned[1], finished)
    assert reason(verdicts(ROWS, *journal)["exactly-once"]) == "holds"
    assert difference(verdicts(ROWS[:1], *journal)["exactly-once"]) == "lost row"


@pytest.mark.parametrize(("error", "found"), [("", "not observable"), ("it was refused", "holds")])
def test_windows_that_a_drain_may_have_emitted_are_not_judged_unless_it_was_refused(error: str, found: str) -> None:
    """The job finished all the same: nothing says which records the emitted windows had."""
    drain = CommandIssued(order=8, at_us=0, command=0, kind="stop-with-savepoint", drain=True)
    returned = CommandReturned(order=10, at_us=0, command=0, error=error)
    rows: list[Row] = [(7, 1, 1, 0), (8, 1, 2, 0), (7, 1, 3, 10)]
    journal = (START, FAULT, AGAIN, drain, returned, FINISHED)
    assert reason(verdicts(rows, *journal, operator=Tumbling(size=10), times=((1, 2, 13),))["exactly-once"]) == found


def test_rows_that_follow_an_order_that_nobody_saw_are_not_observable() -> None:
    work, topology = workload(Greater())
    split = msgspec.structs.replace(work.inputs[0], splits=((RECORDS[0],), (RECORDS[2],)))
    work = msgspec.structs.replace(work, inputs=(split,))
    history = History(
        subject="black box",
        guarantee="exactly-once",
        sink="transactional",
        witnesses=list(OUTSIDE),
        journal=list(JOURNAL),
    )
    assert reason(judge(work, topology, history).verdicts["exactly-once"]) == "not observable"


def test_in_weaker_modes_what_repeated_records_leave_in_state_is_not_observable() -> None:
    stateless: list[Row] = [(key, value, tag, 0) for key, value, tag in RECORDS]
    weak = {"guarantee": "at-least-once", "sink": "plain"}
    assert reason(verdicts(ROWS, **weak)["at-least-once"]) == "not observable"
    passing = Map(add=0)
    assert reason(verdicts([*stateless, stateless[0]], operator=passing, **weak)["at-least-once"]) == "holds"
    assert difference(verdicts(stateless[1:], operator=passing, **weak)["at-least-once"]) == "lost row"
    invented = [*stateless, (9, 9, 9, 0)]
    assert difference(verdicts(invented, operator=passing, **weak)["at-least-once"]) == "unexpected row"
    once = {"guarantee": "at-most-once", "sink": "plain"}
    assert reason(verdicts(stateless[1:], operator=passing, **once)["at-most-once"]) == "holds"
    repeated = [*stateless, stateless[0]]
    assert difference(verdicts(repeated, operator=passing, **once)["at-most-once"]) == "repeated row"


def test_a_table_holds_the_last_row_of_each_key() -> None:
    table = {"sink": "idempotent"}
    assert reason(verdicts([ROWS[1], ROWS[2]], **table)["exactly-once"]) == "holds"
    assert isinstance(verdicts([ROWS[1], ROWS[0]], **table)["exactly-once"], Violated)
    assert isinstance(verdicts([ROWS[2]], **table)["exactly-once"], Violated)
    assert isinstance(verdicts([ROWS[2]], **table)["no-data-loss"], Violated)
    assert isinstance(verdicts([*ROWS[1:], (9, 1, 0, 0)], **table)["exactly-once"], Violated)
    assert isinstance(verdicts([*ROWS[1:], ROWS[2]], **table)["exactly-once"], Violated)


# -- reads on the way, the end, what is left ------------------------------------------


def test_rows_that_a_reader_saw_must_not_vanish() -> None:
    kept = [saw(3, 4, ROWS[:1])]
    assert verdicts(ROWS, reads=kept)["visibility"] == Holds(exercised=1)
    assert difference(verdicts(ROWS[1:], reads=kept)["visibility"]) == "rows vanished"
    between = [*kept, saw(7, 8, []), saw(9, 9, ROWS)]
    assert difference(verdicts(ROWS, reads=between)["visibility"]) == "rows vanished"
    counted = [Read(began=3, ended=4, rows=4)]
    assert difference(verdicts(ROWS, reads=counted)["visibility"]) == "rows vanished"


def test_rows_must_not_be_seen_before_their_commit() -> None:
    commits = [Commit(commit=1, order=3, positions={0: 1}), Commit(commit=2, order=9, positions={0: 3})]
    in_time = [saw(4, 4, ROWS[:1]), saw(10, 10, ROWS)]
    assert reason(verdicts(ROWS, reads=in_time, commits=commits)["visibility"]) == "holds"
    for early in (saw(2, 2, ROWS[:1]), saw(4, 4, ROWS[:2])):
        assert difference(verdicts(ROWS, reads=[early], commits=commits)["visibility"]) == "rows seen too early"
    assert reason(verdicts(ROWS, reads=[saw(4, 4, ROWS[:2])])["visibility"]) == "holds"


def test_reads_that_saw_nothing_before_a_recovery_exercise_nothing() -> None:
    assert reason(verdicts(ROWS, reads=[saw(3, 4, [])])["visibility"]) == "not exercised"
    assert reason(verdicts(ROWS, reads=[saw(7, 8, ROWS)])["visibility"]) == "not exercised"


def test_a_job_that_does_not_end_makes_no_progress_unless_it_was_cut_off() -> None:
    going_on = (START, FAULT, AGAIN)
    assert difference(verdicts(ROWS, *going_on)["progress"]) == "no rest"
    assert reason(verdicts(ROWS, *going_on, cut_short=True)["progress"]) == "not observable"
    assert reason(verdicts(ROWS, *going_on, bounded=False)["progress"]) == "not observable"


def test_a_job_may_fail_for_a_reason_after_a_fault_only() -> None:
    failed = JobEnded(order=20, at_us=0, job=1, status="failed", reason="no restarts remained")
    assert reason(verdicts(ROWS, START, FAULT, AGAIN, failed)["progress"]) == "assumption broken"
    assert difference(verdicts(ROWS, START, failed)["progress"]) == "job failed"
    silent = msgspec.structs.replace(failed, reason="")
    assert difference(verdicts(ROWS, START, FAULT, silent)["progress"]) == "job failed silently"
    undisturbed = msgspec.structs.replace(failed, undisturbed=True)
    assert difference(verdicts(ROWS, START, FAULT, AGAIN, undisturbed)["progress"]) == "job failed"


def test_no_transaction_is_left_of_a_job_that_ended_well() -> None:
    seeing = (*OUTSIDE, "listing")
    assert reason(verdicts(ROWS, witnesses=seeing)["no-leaks"]) == "holds"
    left = Residue(open_transactions=["tx-3"])
    assert difference(verdicts(ROWS, witnesses=seeing, residue=left)["no-leaks"]) == "transaction left"
    sealed = Residue(prepared_transactions=["tx-3"])
    assert difference(verdicts(ROWS, witnesses=seeing, residue=sealed)["no-leaks"]) == "transaction left"
    named = verdicts(ROWS, witnesses=seeing, residue=Residue(left=["state/a.tmp", "state/b.tmp"]))["no-leaks"]
    assert difference(named) == "left behind"
    assert "which must not: state/a.tmp, state/b.tmp" in str(named)
    assert reason(verdicts(ROWS, START, FINISHED, witnesses=seeing, residue=Residue(left=[]))["no-leaks"]) == (
        "not exercised"
    )
    going_on = (START, FAULT, AGAIN)
    assert reason(verdicts(ROWS, *going_on, witnesses=seeing, residue=left)["no-leaks"]) == "not observable"
