"""What an engine behind the port must do, whichever it is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.answers import ANSWERS, expected_rows
from conformance.conforming import EXACTLY, PATIENTLY, committed, conforms, statuses
from cutproof.faults.plan import (
    AnyFault,
    AnyTrigger,
    AtPoint,
    AtTime,
    CutChannel,
    DelayChannel,
    FailCommit,
    KillCoordinator,
    KillTask,
    LoseMessage,
    PauseTask,
    StallChannel,
    kind_of,
)
from cutproof.harness.examples.finishing.ways_to_finish import THREE_2PC_CHAIN
from cutproof.harness.generate.situations.templates import TEMPLATES
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.model import Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.port import Subject, SubjectFailed
from cutproof.harness.subject.run import run
from cutproof.harness.workloads.library import GENERAL
from cutproof.properties.model.history import AttemptStarted, JobEnded, TaskFailed
from cutproof.properties.model.verdict import Holds, Unknown
from cutproof.properties.model.workload import Count, Input, Node, Union, Workload
from cutproof.properties.reconstruct.snapshots import decode_state

AMID = AtPoint(point="checkpoint-completed", occurrence=1)
"""a checkpoint is complete, and records still flow, in every workload below"""
NOTHING_AT_STAKE = ("S14", "crash-while-waiting")
"""templates in which nothing breaks, or all has been committed when something does"""
SLOWLY = {"read_interval_us": 500, "channel_capacity": 4}
"""records are left to read, however late a busy machine starts the tasks that they go to"""
READING = AtPoint(point="record-read", occurrence=20)
"""where no checkpoints are taken"""


def scenario(
    workload: str,
    *faults: Any,
    commands: tuple[Any, ...] = (),
    kill: bool = True,
    kill_at: AnyTrigger = AMID,
    width: int = 2,
    **engine: Any,
) -> Scenario:
    """A general workload whose widest operator is killed amid records, and what else is asked for."""
    found = GENERAL[workload][1]()
    victim = found.nodes[-1].name
    killed = (KillTask(trigger=kill_at, task=f"{victim}-0"),) if kill else ()
    lasting = {"checkpoint_interval_us": 1_500, "tolerated_failures": 20, "restart_attempts": 20}
    return Scenario(
        workload=found,
        topology=lay_out(found, dict.fromkeys([source.name for source in found.inputs], width)),
        engine=Engine(**{**lasting, **SLOWLY, **PATIENTLY, **engine}),
        faults=(*killed, *faults),
        commands=commands,
        seed=workload,  # by which a subject that has several kinds of sinks chooses one
    )


# -- workloads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", ANSWERS)
def test_every_workload_survives_a_crash_with_exactly_what_is_expected(subject: Subject, workload: str) -> None:
    asked = scenario(workload)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert statuses(result) == ["finished"]


@pytest.mark.parametrize("workload", ANSWERS)
def test_every_workload_without_a_fault(subject: Subject, workload: str) -> None:
    asked = scenario(workload, kill=False)
    assert committed(conforms(subject, asked, "consistent-cut", "visibility")) == expected_rows(asked.workload)


def test_all_general_workloads_but_the_one_with_rules_have_one_answer() -> None:
    assert set(ANSWERS) == set(GENERAL) - {"tariffs"}


@pytest.mark.parametrize("width", [None, 1, 3])
def test_every_parcel_is_priced_once_by_a_tariff_of_its_town_or_by_none(subject: Subject, width: int | None) -> None:
    """Which tariff had come by then is the run's own affair; with a width the job goes on there after a stop."""
    amid = AtPoint(point="record-read", occurrence=15)
    wide = dict.fromkeys(("weighed", "priced", "sink"), width or 2)
    commands = (StopWithSavepoint(trigger=amid), Resume(trigger=AtTime(at_us=1_000), parallelism=wide))
    asked = scenario("tariffs", commands=commands if width else (), kill=not width)
    priced = committed(conforms(subject, asked, "exactly-once", "consistent-cut", "restored-state"))
    weighed, tariffs = ([row for split in source.splits for row in split] for source in asked.workload.inputs)
    prices = {tag: (key, value) for key, value, tag in tariffs} | {0: (None, 0)}
    assert sorted(tag for _, _, tag, _ in priced.elements()) == sorted(tag for _, _, tag in weighed)
    for key, value, tag in weighed:
        (row,) = [one for one in priced if one[2] == tag]
        town, price = prices[row[3]]
        assert row[:2] == (key, (value or 0) + (price or 0))
        assert town in (key, None)


# -- stores and modes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["files", "memory"])
@pytest.mark.parametrize("mode", ["synchronous", "asynchronous"])
def test_every_store_and_mode(subject: Subject, store: str, mode: str) -> None:
    asked = scenario("orders", snapshot_store=store, snapshot_mode=mode, concurrent_checkpoints=2)
    assert committed(conforms(subject, asked, *EXACTLY)) == expected_rows(asked.workload)


def test_narrow_channels_and_small_parallelism(subject: Subject) -> None:
    asked = scenario("order-payments", channel_capacity=1, width=1)
    assert committed(conforms(subject, asked, "exactly-once", "consistent-cut")) == expected_rows(asked.workload)


def test_a_coordinator_that_dies_on_top(subject: Subject) -> None:
    asked = scenario("orders", KillCoordinator(trigger=AtPoint(point="checkpoint-acknowledged", occurrence=3)))
    assert committed(conforms(subject, asked, *EXACTLY)) == expected_rows(asked.workload)


# -- channels and pauses -----------------------------------------------------------------------------------------

EARLY = AtPoint(point="record-read", occurrence=25)
"""a quarter of the input has been read"""


@pytest.mark.parametrize(
    "fault",
    [
        DelayChannel(trigger=EARLY, sender="orders-0", receiver="count-0", by_us=2_000, for_us=10_000),
        StallChannel(trigger=EARLY, sender="orders-0", receiver="count-0", for_us=6_000),
        PauseTask(trigger=EARLY, task="count-0", for_us=3_000),
    ],
    ids=kind_of,
)
def test_what_only_takes_longer_changes_nothing(subject: Subject, fault: AnyFault) -> None:
    asked = scenario("orders", fault, kill=False)
    result = conforms(subject, asked, "consistent-cut", "visibility", "progress")
    assert committed(result) == expected_rows(asked.workload)
    assert result.history.healed is not None
    assert statuses(result) == ["finished"]


@pytest.mark.parametrize(
    "fault",
    [
        CutChannel(trigger=AMID, sender="orders-0", receiver="count-0"),
        PauseTask(trigger=AMID, task="count-0", for_us=30_000),
    ],
    ids=kind_of,
)
def test_a_connection_that_breaks_and_a_task_that_comes_back_as_a_zombie(subject: Subject, fault: AnyFault) -> None:
    asked = scenario("orders", fault, kill=False)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert {entry.fault for entry in result.history.journal if isinstance(entry, TaskFailed)} == {0}
    assert len([entry for entry in result.history.journal if isinstance(entry, AttemptStarted)]) >= 2


# -- sinks and guarantees ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workload", "final"), [("orders", max), ("clicks", max)])
def test_an_idempotent_sink_shows_the_last_row_of_each_key(subject: Subject, workload: str, final: Any) -> None:
    asked = scenario(workload, sink="idempotent")
    result = conforms(subject, asked, "exactly-once")
    rows = expected_rows(asked.workload)
    assert committed(result) == Counter(final(row for row in rows if row[0] == key) for key in {row[0] for row in rows})


def test_a_plain_sink_may_repeat_and_that_is_no_violation(subject: Subject) -> None:
    """The state is exactly-once; what was shown before the crash is shown again (ABS-17)."""
    asked = scenario("orders", sink="plain")
    result = conforms(subject, asked, "consistent-cut")
    rows = expected_rows(asked.workload)
    assert committed(result) > rows
    assert set(committed(result)) == set(rows)
    verdict = result.judgement.verdicts["exactly-once"]
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not promised"


@pytest.mark.parametrize("sink", ["transactional", "plain"])
def test_at_least_once_loses_nothing(subject: Subject, sink: str) -> None:
    asked = scenario("clicks", guarantee="at-least-once", sink=sink)
    result = conforms(subject, asked, "at-least-once")
    assert committed(result) >= expected_rows(asked.workload)


def test_at_most_once_repeats_nothing(subject: Subject) -> None:
    asked = scenario("order-payments", kill_at=READING, guarantee="at-most-once", sink="plain")
    result = conforms(subject, asked, "at-most-once")
    assert committed(result) < expected_rows(asked.workload)
    assert len([entry for entry in result.history.journal if isinstance(entry, AttemptStarted)]) == 2


@pytest.mark.parametrize("sink", ["transactional", "idempotent"])
def test_at_most_once_is_refused_where_nothing_would_ever_commit(subject: Subject, sink: str) -> None:
    with pytest.raises(SubjectFailed, match="it needs a plain sink"):
        subject.run(scenario("orders", guarantee="at-most-once", sink=sink))


# -- who commits -------------------------------------------------------------------------------------------------

SEEDS = ("d", "a")
"""by which a subject that writes to files or to PostgreSQL chooses the one and the other"""


def seeded(asked: Scenario, seed: str) -> Scenario:
    return replace(asked, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("committing", ["committer", "global"])
def test_what_commits_behind_the_sink_commits_each_row_once(subject: Subject, committing: str, seed: str) -> None:
    last = {"committer": "committer-1", "global": "global-committer-0"}[committing]
    lost = FailCommit(trigger=AtTime(at_us=0), task=last, how="lost-response")
    asked = seeded(scenario("orders", lost, committing=committing), seed)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert last in {run.task for run in result.history.runs}
    assert result.history.residue.prepared_transactions == []


@pytest.mark.parametrize(("task", "seed"), [("committer-0", "d"), ("global-committer-0", "a")])
def test_a_committer_that_dies_amid_its_commits(subject: Subject, task: str, seed: str) -> None:
    amid = AtPoint(point="commit-requested", occurrence=2, task=task, side="before")
    asked = seeded(scenario("orders", KillTask(trigger=amid, task=task), committing="global", kill=False), seed)
    found = committed(conforms(subject, asked, "exactly-once", "visibility", "progress"))
    assert found == expected_rows(asked.workload)


@pytest.mark.parametrize("seed", SEEDS)
def test_transactional_ids_may_be_used_again(subject: Subject, seed: str) -> None:
    asked = seeded(scenario("payments", pooled_ids=True), seed)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    ids = Counter(one.name.partition("#")[0] for one in result.history.transactions)
    assert max(ids.values()) > 1


@pytest.mark.parametrize(("finishing", "seed"), [("together", "d"), ("one-by-one", "d"), ("together", "a")])
def test_operators_that_commit_what_they_pass_on(subject: Subject, finishing: str, seed: str) -> None:
    chain = THREE_2PC_CHAIN.scenario
    slowly = 4 * chain.engine.read_interval_us  # the chain's tasks start late on a busy machine: records are left
    engine = replace(chain.engine, finishing=finishing, read_interval_us=slowly, channel_capacity=4, **PATIENTLY)
    asked = seeded(replace(chain, engine=engine), seed)
    result = conforms(subject, asked, *EXACTLY)
    rows = Counter((*record, 0) for _, _, records in chain.workload.splits() for record in records)
    assert committed(result) == rows
    for task in ("first-0", "second-0"):
        passed = [one for one in result.history.passing if one.task == task and one.status == "committed"]
        assert Counter(row for one in passed for row in one.rows) == rows


@pytest.mark.parametrize(("committing", "seed"), [("writer", "a"), ("global", "d")])
def test_a_transaction_that_expires_stops_the_job_which_names_it(subject: Subject, committing: str, seed: str) -> None:
    expired = FailCommit(trigger=AtTime(at_us=0), how="expired")
    asked = seeded(scenario("orders", expired, committing=committing, kill=False, restart_attempts=1), seed)
    result = conforms(subject, asked)
    end = [entry for entry in result.history.journal if isinstance(entry, JobEnded)][-1]
    assert end.status == "failed"
    assert any(one.prepared and one.aborted and one.name in end.reason for one in result.history.transactions)
    assert {entry.fault for entry in result.history.journal if isinstance(entry, TaskFailed)} == {0}
    for invariant in ("exactly-once", "no-data-loss", "progress"):
        verdict = result.judgement.verdicts[invariant]
        assert isinstance(verdict, Unknown)
        assert verdict.reason == "assumption broken"


# -- stops and notifications -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("drain", "status"), [(False, "stopped"), (True, "drained")])
def test_stop_and_resume_leave_no_seam(subject: Subject, drain: bool, status: str) -> None:
    amid = AtPoint(point="record-read", occurrence=20, task="payments-0")
    held = PauseTask(trigger=amid, task="payments-0", for_us=10_000)  # records remain beyond the savepoint
    commands = (StopWithSavepoint(trigger=amid, drain=drain), Resume(trigger=AtTime(at_us=500)))
    asked = scenario("payments", held, commands=commands, kill=False, checkpoint_interval_us=1_000_000)
    # consistent-cut cannot be asked for: the only cut is a stop's, beyond whose barrier no source reads
    result = conforms(subject, asked, "exactly-once", "no-data-loss", "progress")
    assert committed(result) == expected_rows(asked.workload)
    assert statuses(result) == [status, "finished"]


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2)])
def test_lists_and_unions_go_on_at_another_parallelism(subject: Subject, before: int, after: int) -> None:
    amid = AtPoint(point="record-read", occurrence=15, task="parcels-0")
    held = PauseTask(trigger=amid, task="parcels-0", for_us=10_000)  # records remain beyond the savepoint
    wide = dict.fromkeys(("parcels", "tally", "van", "sink"), after)
    commands = (StopWithSavepoint(trigger=amid), Resume(trigger=AtTime(at_us=500), parallelism=wide))
    asked = scenario("parcels", held, commands=commands, kill=False, width=before, checkpoint_interval_us=1_000_000)
    narrow = lay_out(asked.workload, dict.fromkeys(wide, before))
    result = conforms(subject, replace(asked, topology=narrow), "exactly-once", "no-data-loss", "restored-state")
    assert committed(result) == expected_rows(asked.workload)
    assert statuses(result) == ["stopped", "finished"]
    loads = [run.loaded for run in result.history.runs if run.operator in ("tally", "van") and run.loaded is not None]
    states = [decode_state(load.state) for load in loads]
    assert any(state and state.listed for state in states)
    assert any(state and state.shared for state in states)


def test_a_job_with_an_operator_more_is_refused_by_name_and_goes_on_as_it_was(subject: Subject) -> None:
    """The count of the short input has finished, and so nothing new may stand before it."""
    records = [
        tuple((number % 3, number, first + number) for number in range(many)) for first, many in ((1, 8), (99, 150))
    ]
    workload = Workload(
        name="incompatible",
        inputs=tuple(Input(name=name, splits=(one,)) for name, one in zip(("short", "long"), records, strict=True)),
        nodes=(
            Node(name="count", operator=Count(), inputs=("short",)),
            Node(name="both", operator=Union(), inputs=("count", "long")),
        ),
    )
    late = AtPoint(point="record-read", occurrence=110, task="long-0")
    incompatible, again = (Resume(trigger=AtTime(at_us=500), inserted=new) for new in ({"fresh": "count"}, {}))
    asked = scenario("orders", commands=(StopWithSavepoint(trigger=late), incompatible, again), kill=False)
    result = conforms(subject, replace(asked, workload=workload, topology=lay_out(workload)), *EXACTLY[2:])
    assert statuses(result) == ["stopped", "failed", "finished"]
    reason = [entry.reason for entry in result.history.journal if isinstance(entry, JobEnded)][1]
    assert "counts count as finished, but not all that sends to it: rows of fresh would be lost" in reason
    due = Counter({(key, value, tag, 0): 1 for key, value, tag in records[1]})
    assert committed(result) == due + Counter(
        (key, n, 0, 0) for key, many in ((0, 3), (1, 3), (2, 2)) for n in range(1, many + 1)
    )


def test_a_lost_notification_is_made_up_for(subject: Subject) -> None:
    lost = LoseMessage(trigger=AtTime(at_us=2_000), message="complete", task="sink-0")
    asked = scenario("orders", lost)
    assert committed(conforms(subject, asked, *EXACTLY)) == expected_rows(asked.workload)


# -- templates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("template", TEMPLATES)
def test_drawn_scenarios_of_every_template(subject: Subject, template: str) -> None:
    draw = scenario_of(Drawing(templates=(template,), capabilities=subject.capabilities))
    outcomes: Counter[str] = Counter()
    exercised: set[str] = set()
    for index in range(2 if subject.capabilities.real_time else 8):
        judgement = run(subject, draw(7, index)).judgement
        assert judgement.violated == {}, (template, index)
        outcomes[judgement.outcome] += 1
        exercised |= {name for name, verdict in judgement.verdicts.items() if isinstance(verdict, Holds)}
    assert outcomes.total() - outcomes["held"] <= 1
    if subject.capabilities.real_time:
        return  # two of a template are too few to show everything
    assert "consistent-cut" in exercised
    if template not in NOTHING_AT_STAKE:
        assert {"exactly-once", "no-data-loss", "restored-state"} <= exercised
