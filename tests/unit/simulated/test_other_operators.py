"""Jobs that are resumed with other operators: some are removed, others added (SNAP-5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, AtRest, AtTime, KillCoordinator, KillTask, StallChannel
from cutproof.harness.counterexamples.words import command_in_words
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Cancel, Fork, Resume, Savepoint, Scenario, StopWithSavepoint
from cutproof.harness.scenario.upgrades import absent_of, is_refused
from cutproof.harness.search.stops import stops_of
from cutproof.properties.invariants.judge import judge
from cutproof.properties.invariants.parts.incompatible import begun_before_finished
from cutproof.properties.invariants.parts.routes import misapplied
from cutproof.properties.model.absent import without
from cutproof.properties.model.history import AttemptStarted, CommandIssued, FaultFired, History, JobEnded
from cutproof.properties.model.upgrade import Upgrade
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import AnyOperator, Batch, Count, Filter, FlatMap, InputRecord, Map, Row, Sum
from cutproof.properties.mutations.tampering import UPGRADE_MUTATIONS, tamperings
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.spark.bounds import beyond_64_bits
from cutproof.properties.spark.unasked import TOO_LARGE, nothing_asked
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.defects import parts_for
from unit.simulated.worlds import job, journal

BEHIND = AtPoint(point="checkpoint-completed", occurrence=3, side="after")
STOP = StopWithSavepoint(trigger=BEHIND, name="last")
AGAIN = StopWithSavepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=6))
DROPPED = Upgrade(removed=("op1",), allow_non_restored_state=True)
ADDED = Upgrade(added=("op1",), begin_empty=("op1",))


KINDS = (
    "nodes can be added and removed only in a workload of maps, filters, flat maps, unions, counts, sums,"
    " deduplications, greaters and models that take no rows back"
)


def resume(upgrade: Upgrade | None = None, snapshot: str = "newest", **more: object) -> Resume:
    given = {"upgrade": upgrade} if upgrade is not None else {}
    return Resume(trigger=AtTime(at_us=700), snapshot=snapshot, **given, **more)  # type: ignore[arg-type]


def scenario_of(
    operators: Sequence[AnyOperator],
    *commands: object,
    later: str = "",
    faults: tuple[object, ...] = (),
    **more: object,
) -> Scenario:
    """A source, these operators, and a sink; the first job lacks the operator `later`."""
    scenario = job(90, *operators, commands=commands, faults=faults, **more)  # type: ignore[arg-type]
    nodes = tuple(
        msgspec.structs.replace(node, later=True) if node.name == later else node for node in scenario.workload.nodes
    )
    return msgspec.structs.replace(scenario, workload=msgspec.structs.replace(scenario.workload, nodes=nodes))


def ran(scenario: Scenario, defect: str | None = None) -> History:
    assert list(problems_of(scenario)) == []
    return Run(scenario, parts_for(defect) if defect else Parts(), False).history()


def violated(scenario: Scenario, history: History) -> list[tuple[str, str]]:
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    return [(name, one.difference) for name, one in verdicts.items() if isinstance(one, Violated)]


def statuses(history: History) -> list[str]:
    return [end.status for end in journal(JobEnded, history)]


def goes_on(scenario: Scenario) -> tuple[History, tuple[int, ...]]:
    """The history of jobs of which the last ends well, and of how many records each savepoint is; nothing is violated,
    and the rows and the state are judged."""
    history = ran(scenario)
    case = Case(scenario.workload, scenario.topology, history)
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    assert [(name, one) for name, one in verdicts.items() if isinstance(one, Violated)] == []
    for name in ("exactly-once", "consistent-cut", "restored-state", "progress"):
        assert isinstance(verdicts[name], Holds), (name, verdicts[name])
    assert statuses(history)[-1] == "finished"
    assert misapplied(case) is None
    return history, tuple(sum(case.positions(one.checkpoint).values()) for one in history.completed if one.savepoint)


def counts(records: Sequence[InputRecord]) -> list[Row]:
    """1, 2, 3 … of each key."""
    seen: Counter[int | None] = Counter()
    rows: list[Row] = []
    for key, _, _ in records:
        seen[key] += 1
        rows.append((key, seen[key], 0, 0))
    return rows


def plain(records: Sequence[InputRecord], multiply: int = 1) -> list[Row]:
    return [(key, None if value is None else value * multiply, tag, 0) for key, value, tag in records]


def records_of(scenario: Scenario) -> Sequence[InputRecord]:
    return scenario.workload.inputs[0].splits[0]


@pytest.mark.parametrize("failover", ["full", "region", "local"])
@pytest.mark.parametrize("settings", [{}, {"state_backend": "lsm", "memtable_entries": 1, "snapshot_format": "native"}])
def test_the_state_of_a_removed_operator_is_dropped_if_its_user_allows_it(
    failover: str, settings: dict[str, object]
) -> None:
    dies = KillTask(trigger=AtPoint(point="task-running", occurrence=2, task="op0-0"), task="op0-0")
    scenario = scenario_of(
        (Map(multiply=2), Count()), STOP, resume(DROPPED), faults=(dies,), failover=failover, **settings
    )
    history, (until,) = goes_on(scenario)
    records = records_of(scenario)
    assert 0 < until < len(records)
    assert Counter(history.committed) == Counter(counts(records[:until]) + plain(records[until:], 2))
    assert {run.operator for run in history.runs if run.job == 2} == {"source", "op0", "sink"}


def test_it_is_refused_by_its_uid_if_its_user_does_not() -> None:
    renamed = Upgrade(renamed={"op1": "total"}, moves={"op1": "total"})
    refused, dropped = Upgrade(removed=("op1",)), DROPPED
    scenario = scenario_of((Map(), Count()), STOP, resume(renamed), AGAIN, resume(refused), resume(dropped))
    history, _ = goes_on(scenario)
    assert statuses(history) == ["stopped", "stopped", "failed", "finished"]
    ended = journal(JobEnded, history)[2]
    assert ended.reason.endswith(
        "holds state of op1 (uid total), which the job no longer has: it is dropped only with allow_non_restored_state"
    )
    assert ended.cause is not None
    assert ended.why.blames("op1")


def test_an_operator_without_state_is_removed_without_a_permission() -> None:
    scenario = scenario_of((Count(), Map(multiply=3)), STOP, resume(Upgrade(removed=("op1",))))
    history, (until,) = goes_on(scenario)
    rows = counts(records_of(scenario))
    assert Counter(history.committed) == Counter(
        [(key, (number or 0) * 3, 0, 0) for key, number, _, _ in rows[:until]] + rows[until:]
    )


@pytest.mark.parametrize("width", [1, 2])
def test_an_operator_that_is_added_begins_empty(width: int) -> None:
    operators = (Map(), Count())
    scenario = scenario_of(operators, STOP, resume(ADDED), later="op1", width=width)
    history, (until,) = goes_on(scenario)
    records = records_of(scenario)
    assert Counter(history.committed) == Counter(plain(records[:until]) + counts(records[until:]))


def test_one_without_state_is_added_in_front_of_one_that_keeps_its_state() -> None:
    scenario = scenario_of(
        (Filter(modulus=2, drop=0), Count()), STOP, resume(Upgrade(added=("op0",), begin_empty=("op0",))), later="op0"
    )
    history, (until,) = goes_on(scenario)
    records = records_of(scenario)
    kept = [*records[:until], *(one for one in records[until:] if (one[1] or 0) % 2)]
    assert Counter(history.committed) == Counter(counts(kept))


def test_who_does_not_say_that_a_new_one_begins_empty_is_refused() -> None:
    scenario = scenario_of((Map(), Count()), STOP, resume(Upgrade(added=("op1",))), resume(ADDED), later="op1")
    history, _ = goes_on(scenario)
    assert statuses(history) == ["stopped", "failed", "finished"]
    reason = journal(JobEnded, history)[1].reason
    assert reason == "checkpoint 4 holds no state of op1: its job had no such operator"


def test_an_operator_that_comes_back_begins_empty() -> None:
    back = msgspec.structs.replace(ADDED, allow_non_restored_state=True)
    scenario = scenario_of((Map(), Count()), STOP, resume(DROPPED), AGAIN, resume(back))
    history, (gone, again) = goes_on(scenario)
    records = records_of(scenario)
    expected = counts(records[:gone]) + plain(records[gone:again]) + counts(records[again:])
    assert Counter(history.committed) == Counter(expected)


def test_one_is_removed_and_another_added_at_once_at_another_parallelism() -> None:
    swap = Upgrade(removed=("op0",), added=("op1",), begin_empty=("op1",), allow_non_restored_state=True)
    wider = resume(swap, parallelism={"op1": 3, "sink": 3})
    soon = StopWithSavepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=2))
    scenario = scenario_of((Count(), Count()), soon, wider, later="op1", width=2, splits=2)
    history, _ = goes_on(scenario)
    saved = next(one.checkpoint for one in history.completed if one.savepoint)
    cut = Case(scenario.workload, scenario.topology, history).positions(saved)
    splits = scenario.workload.inputs[0].splits
    before = [record for split, records in enumerate(splits) for record in records[: cut[split]]]
    behind = [record for split, records in enumerate(splits) for record in records[cut[split] :]]
    assert before
    assert behind
    assert Counter(history.committed) == Counter(counts(before) + counts(behind))
    assert {run.task for run in history.runs if run.job == 2 and run.operator == "op1"} == {"op1-0", "op1-1", "op1-2"}


@pytest.mark.parametrize("again", [False, True])
def test_a_coordinator_that_takes_over_knows_what_may_be_dropped(again: bool) -> None:
    """Before the first checkpoint of the job and behind it."""
    occurrence = 6 if again else 5
    dies = KillCoordinator(trigger=AtPoint(point="task-running", occurrence=occurrence), down_us=2_000)
    scenario = scenario_of((Map(), Count()), STOP, resume(DROPPED), faults=(dies,))
    history, _ = goes_on(scenario)
    assert len({start.attempt for start in journal(AttemptStarted, history) if start.job == 2}) > 1


def test_only_a_savepoint_is_restored_by_a_job_with_other_operators() -> None:
    scenario = scenario_of((Map(), Count()), Cancel(trigger=BEHIND), resume(DROPPED), resume(Upgrade(added=("op1",))))
    history = ran(scenario)
    assert violated(scenario, history) == []
    assert statuses(history) == ["cancelled", "failed", "finished"]
    assert "is no savepoint" in journal(JobEnded, history)[1].reason


def test_an_older_savepoint_may_be_from_before_the_change() -> None:
    early = Savepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=1), name="early")
    scenario = scenario_of(
        (Map(), Count()),
        early,
        STOP,
        resume(DROPPED),
        AGAIN,
        resume(snapshot="early"),
        resume(Upgrade(allow_non_restored_state=True), "early"),
    )
    history = ran(scenario)
    assert violated(scenario, history) == []
    assert statuses(history) == ["stopped", "stopped", "failed", "finished"]
    assert absent_of(scenario) == ((), ("op1",), ("op1",), ("op1",))


def test_the_state_of_a_checkpoint_to_which_nobody_goes_back_follows_from_the_job_that_took_it() -> None:
    early = Savepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=1), name="early")
    doubled = Upgrade(added=("op0",), begin_empty=("op0",))
    scenario = scenario_of(
        (Map(multiply=2), Sum()),
        early,
        STOP,
        resume(doubled),
        AGAIN,
        resume(Upgrade(removed=("op0",)), "early"),
        later="op0",
    )
    history = ran(scenario)
    case = Case(scenario.workload, scenario.topology, history)
    assert violated(scenario, history) == []
    passed_over = [one.checkpoint for one in history.completed if one.job == 2]
    assert passed_over
    assert not set(passed_over) & set(case.lineage.checkpoints)
    verdict = judge(scenario.workload, scenario.topology, history).verdicts["consistent-cut"]
    assert isinstance(verdict, Holds)
    assert all(case.expected.states(number)["op1"] for number in passed_over)


def test_pyspark_is_not_asked_if_a_job_may_leave_64_bits_though_one_with_all_nodes_does_not() -> None:
    """A map makes small values of large ones; without it they reach the sum."""
    scenario = scenario_of((Map(multiply=0, add=1), Sum()), STOP, resume(Upgrade(removed=("op0",))))
    (source,) = scenario.workload.inputs
    large = tuple((key, 2**57, tag) for key, _, tag in source.splits[0])
    workload = msgspec.structs.replace(scenario.workload, inputs=(msgspec.structs.replace(source, splits=(large,)),))
    case = Case(workload, scenario.topology, ran(msgspec.structs.replace(scenario, workload=workload)))
    assert beyond_64_bits(workload) == ""
    assert nothing_asked(case) == TOO_LARGE


def test_the_workloads_of_all_jobs_are_those_without_the_nodes_that_they_lack() -> None:
    back = msgspec.structs.replace(ADDED, allow_non_restored_state=True)
    scenario = scenario_of((Map(), Count()), STOP, resume(DROPPED), AGAIN, resume(back))
    jobs = Case(scenario.workload, scenario.topology, ran(scenario)).jobs
    assert jobs.workloads == (scenario.workload, without(scenario.workload, ("op1",)))
    none = History(subject="", guarantee="exactly-once", sink="transactional")
    assert Case(scenario.workload, scenario.topology, none).jobs.workloads == (scenario.workload,)


def test_each_retained_snapshot_is_forked_with_the_operators_of_its_job() -> None:
    early = Savepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=1), name="early")
    scenario = scenario_of(
        (Map(), Count()), early, STOP, resume(DROPPED), Fork(trigger=AtRest()), retained_checkpoints=2
    )
    history, _ = goes_on(scenario)
    jobs = {one.checkpoint: one.job for one in history.completed}
    assert {jobs[forked.checkpoint] for forked in history.forks} == {1, 2}  # type: ignore[union-attr]
    assert isinstance(judge(scenario.workload, scenario.topology, history).verdicts["restorable"], Holds)


def test_a_new_operator_in_front_of_a_finished_one_is_refused() -> None:
    scenario = scenario_of((Map(), Map(), Count()), STOP, resume(ADDED), later="op1")
    history = ran(scenario)
    done = next(one for one in history.completed if one.savepoint)
    case = Case(scenario.workload, scenario.topology, history)
    assert violated(scenario, history) == []
    done.finished = ["source-0", "op0-0", "op2-0"]
    assert begun_before_finished(case) is not None


@pytest.mark.parametrize(
    ("operators", "later", "upgrade", "engine", "problem"),
    [
        (
            (Map(), Count()),
            "",
            Upgrade(removed=("op9",)),
            {},
            "command 1 (resume): upgrade: 'op9' is no node that can be added or removed",
        ),
        (
            (Map(), Count()),
            "",
            Upgrade(added=("op1",), removed=("op1",)),
            {},
            "command 1 (resume): upgrade: op1 cannot be both added and removed",
        ),
        (
            (Map(), Count()),
            "",
            Upgrade(begin_empty=("nobody",)),
            {},
            "command 1 (resume): upgrade.begin_empty: no node that can be added has or had the uid 'nobody'",
        ),
        (
            (Count(), Batch(size=2)),
            "",
            Upgrade(removed=("op0",)),
            {},
            f"{KINDS}; op1 is none of these",
        ),
        (
            (Map(), Count()),
            "",
            DROPPED,
            {"sink": "idempotent"},
            "an idempotent sink knows rows by what the last node makes: no job can have other nodes than the first",
        ),
        (
            (Map(), Count()),
            "",
            Upgrade(removed=("op0",)),
            {"two_phase": ("op0",)},
            "job 2 cannot lack 'op0', which is no node that can be added or removed",
        ),
    ],
    ids=["unknown", "both", "unknown uid", "a batch", "an idempotent sink", "two-phase"],
)
def test_a_change_that_cannot_be_is_reported_in_a_line(
    operators: Sequence[AnyOperator], later: str, upgrade: Upgrade, engine: dict[str, object], problem: str
) -> None:
    scenario = scenario_of(operators, STOP, resume(upgrade), later=later, **engine)
    assert problem in list(problems_of(scenario))


GIVES_BACK = Upgrade(added=("op1",), begin_empty=("op1",), allow_non_restored_state=True)


@pytest.mark.parametrize(
    ("commands", "later", "problem"),
    [
        ((STOP, resume(ADDED)), "", "command 1 (resume): upgrade.added: the job before has op1 already"),
        ((STOP, resume(DROPPED)), "op1", "command 1 (resume): upgrade.removed: the job before does not have op1"),
        (
            (STOP, resume(DROPPED), AGAIN, resume(DROPPED)),
            "",
            "command 3 (resume): upgrade.removed: the job before does not have op1",
        ),
        (
            (STOP, resume(DROPPED), AGAIN, resume(GIVES_BACK), resume(GIVES_BACK)),
            "",
            "command 4 (resume): upgrade.added: the job before has op1 already",
        ),
        (
            (STOP, resume(Upgrade(removed=("op1", "op1"), allow_non_restored_state=True))),
            "",
            "command 1 (resume): upgrade.removed: 'op1' is given twice",
        ),
        (
            (STOP, resume(Upgrade(added=("op1",), begin_empty=("op1", "op1")))),
            "op1",
            "command 1 (resume): upgrade.begin_empty: 'op1' is given twice",
        ),
    ],
    ids=["there", "absent", "gone", "back already", "removed twice", "empty twice"],
)
def test_a_change_that_changes_nothing_is_reported_in_a_line(
    commands: Sequence[object], later: str, problem: str
) -> None:
    assert list(problems_of(scenario_of((Map(), Count()), *commands, later=later))) == [problem]


@pytest.mark.parametrize(
    "upgrade", [Upgrade(removed=("op1",)), Upgrade(added=("op1",))], ids=["removed again", "added again"]
)
def test_behind_a_refused_job_the_change_may_be_given_again(upgrade: Upgrade) -> None:
    whole, later = (DROPPED, "") if upgrade.removed else (ADDED, "op1")
    scenario = scenario_of((Map(), Count()), STOP, resume(upgrade), resume(upgrade), resume(whole), later=later)
    history, _ = goes_on(scenario)
    assert statuses(history) == ["stopped", "failed", "failed", "finished"]


def past_op1(after_us: int) -> StallChannel:
    """A stall of the channel that a job has only if it lacks op1."""
    return StallChannel(trigger=AtTime(at_us=after_us), sender="op0-0", receiver="sink-0", for_us=300)


def test_a_fault_is_on_a_channel_that_only_a_job_without_a_node_has() -> None:
    scenario = scenario_of((Map(), Count()), STOP, resume(ADDED), later="op1", faults=(past_op1(2_000),))
    history, _ = goes_on(scenario)
    assert [one.detail for one in journal(FaultFired, history)] == ["op0-0>sink-0 holds what is in it"]


def test_a_channel_that_no_job_has_is_reported_in_a_line() -> None:
    assert list(problems_of(scenario_of((Map(), Count()), faults=(past_op1(2_000),)))) == [
        "fault 0 (stall-channel): there is no channel op0-0>sink-0"
    ]


@pytest.mark.parametrize("forks", [False, True])
def test_a_job_without_a_node_is_rescaled_with_the_node(forks: bool) -> None:
    def rescaling(*names: str) -> Scenario:
        wide = dict.fromkeys(names, 2)
        rest = (resume(), Fork(trigger=AtRest(), parallelism=wide)) if forks else (resume(parallelism=wide),)
        return scenario_of((Count(), Map()), STOP, *rest, later="op1")

    where = "command 2 (fork)" if forks else "command 1 (resume)"
    problem, *_ = problems_of(rescaling("op0", "sink"))
    assert problem == (
        f"{where}: a forward edge from op0 to op1 of another parallelism, which counts though the job lacks op1:"
        " rescale what forward edges join together"
    )
    goes_on(rescaling("source", "op0", "op1", "sink"))


def test_no_node_that_the_job_lacks_is_blamed_for_what_is_wrong_without_it_too() -> None:
    """The forward edge from op0 to op1 is one from op0 to op2 in the job that lacks op1."""
    scenario = scenario_of((Count(), Map(), Map()), STOP, resume(parallelism={"op0": 2}), later="op1")
    problem, *_ = problems_of(scenario)
    assert problem == "command 1 (resume): a forward edge from op0 to op1 of another parallelism"


def test_a_rescaled_job_that_cannot_lack_a_node_is_reported_in_a_line() -> None:
    wrong = resume(Upgrade(removed=("source",)), parallelism={"op0": 2})
    problem, *_ = problems_of(scenario_of((Count(), Map()), STOP, wrong))
    assert problem == "command 1 (resume): a forward edge from op0 to op1 of another parallelism"


def test_nothing_is_inserted_before_a_node_that_the_job_lacks() -> None:
    inserting = Resume(trigger=AtTime(at_us=5_000), inserted={"extra": "op1"})
    scenario = scenario_of((Map(), Count()), STOP, inserting, later="op1")
    assert "extra is to be inserted before 'op1', which job 2 does not have" in list(problems_of(scenario))


def test_a_node_that_is_no_changeable_one_cannot_come_later() -> None:
    scenario = scenario_of((FlatMap(), Count()), STOP, resume(), later="op0")
    assert list(problems_of(scenario)) == [
        f"job {job} cannot lack 'op0', which is no node that can be added or removed" for job in (1, 2)
    ]


def test_event_time_is_reported_in_a_line() -> None:
    scenario = scenario_of((Map(), Count()), STOP, resume(DROPPED))
    (source,) = scenario.workload.inputs
    timed = msgspec.structs.replace(source, times=(tuple(range(len(source.splits[0]))),))
    workload = msgspec.structs.replace(scenario.workload, inputs=(timed,))
    assert list(problems_of(msgspec.structs.replace(scenario, workload=workload))) == [
        "nodes can be added and removed only where no input has event time, and source has it"
    ]


def test_a_job_that_could_have_begun_has_no_excuse_for_its_failure() -> None:
    scenario = scenario_of((Map(), Count()), STOP, resume(Upgrade(removed=("op1",))), resume(DROPPED))
    history = ran(scenario)
    issued = [one for one in journal(CommandIssued, history) if one.kind == "resume"]
    issued[0].upgrade = DROPPED
    assert ("progress", "job failed") in violated(scenario, history)


@pytest.mark.parametrize(
    ("upgrade", "later", "names"),
    [
        (DROPPED, "", ["drop a state without a permission"]),
        (ADDED, "op1", ["begin empty unannounced"]),
        (Upgrade(removed=("op0",)), "", []),
    ],
    ids=["dropped", "added", "stateless"],
)
def test_what_its_user_had_to_say_is_missed(upgrade: Upgrade, later: str, names: list[str]) -> None:
    scenario = scenario_of((Map(), Count()), STOP, resume(upgrade), later=later)
    case = Case(scenario.workload, scenario.topology, ran(scenario))
    tampered = [one for one in tamperings(case) if one.name in UPGRADE_MUTATIONS]
    assert [one.name for one in tampered] == names
    for one in tampered:
        found = judge(scenario.workload, scenario.topology, one.apply(case.history)).verdicts["restored-state"]
        assert isinstance(found, Violated)
        assert found.difference == "begun though it does not fit"


def test_what_is_planned_is_told() -> None:
    operators = (Map(), Count())
    refused, whole = resume(Upgrade(removed=("op1",))), resume(DROPPED)
    scenario = scenario_of(operators, STOP, refused, whole)
    new = resume(Upgrade(added=("op1",))), resume(ADDED)
    assert [is_refused(one, scenario.workload) for one in (refused, whole, *new)] == [True, False, True, False]
    found = {stop.kind: stop.finished for stop in stops_of(scenario, ran(scenario))}
    assert found == {"stop": True, "unfit-resume": True, "resume": True, "natural-end": True}
    assert command_in_words(whole) == (
        "the job is started again; op1 is removed, and the mapping moves nothing; states that nobody takes may be"
        " dropped"
    )
    assert command_in_words(new[1]) == (
        "the job is started again; op1 is added, and the mapping moves nothing; op1 may begin empty"
    )
