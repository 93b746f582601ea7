"""The summary's counts, what a scenario can show, and what a run falls short of."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.faults.plan import (
    AnyFault,
    AtAim,
    AtPoint,
    AtTime,
    FailCommit,
    InPhase,
    KillDatabase,
    KillNode,
    KillProxy,
    KillTask,
    LimitChannel,
    PauseNode,
    PauseTask,
    RaiseInOperator,
    ResetChannel,
    SliceChannel,
    TimeoutChannel,
)
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.forecast import forecast
from cutproof.harness.scenario.model import Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.scenario.promises import can_show
from cutproof.harness.search.outcome import ScenarioOutcome, measure, outcome_of
from cutproof.harness.search.profiles import PROFILES, REAL_TIME_PROFILES, Share, shortfalls, unjudged
from cutproof.harness.search.summary import Tally, kind_of_unapplied
from cutproof.harness.subject.port import Capabilities
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import (
    AttemptRunning,
    AttemptStarted,
    CheckpointAborted,
    CheckpointTriggered,
    CommandIssued,
    CommandReturned,
    Completed,
    FaultFired,
    History,
    JournalEntry,
    Timed,
)
from cutproof.properties.model.verdict import Holds, Reason, Unknown, Verdict, Violated
from cutproof.reports.model import ReportView, RestartCounts, ScenarioCounts
from cutproof.reports.overview import restarts_lead
from cutproof.reports.render import render_html
from cutproof.reports.text import render_text
from unit.harness.scenarios import chain

replace = msgspec.structs.replace


def history(**fields: object) -> History:
    return replace(History(subject="x", guarantee="exactly-once", sink="transactional"), **fields)


def outcome(index: int, **verdicts: Verdict) -> ScenarioOutcome:
    named = {name.replace("_", "-"): verdict for name, verdict in verdicts.items()}
    return outcome_of(index, chain(), history(), named)


HOLDS, UNKNOWN = Holds(exercised=2), Unknown(reason=Reason.NOT_EXERCISED)
VIOLATED = Violated(difference="lost row", message="one row is lost")


def test_what_a_history_counts_up_to() -> None:
    journal = [
        AttemptStarted(order=1, at_us=100, attempt=1, job=1),
        AttemptRunning(order=2, at_us=200, attempt=1),
        CheckpointTriggered(order=3, at_us=300, checkpoint=1, job=1, attempt=1),
        CheckpointTriggered(order=4, at_us=350, checkpoint=2, job=1, attempt=1),
        CheckpointAborted(order=5, at_us=360, checkpoint=2, reason="declined"),
        FaultFired(order=6, at_us=400, fault=0, kind="kill-task", phase="running"),
        FaultFired(order=7, at_us=410, fault=0, kind="kill-task", phase="recovering"),
        AttemptStarted(order=8, at_us=1_000, attempt=2, job=1, restores=1),
        AttemptRunning(order=9, at_us=1_700, attempt=2),
        CommandReturned(order=10, at_us=1_800, command=0, checkpoint=3),
    ]
    done = Completed(checkpoint=1, job=1, attempt=1, order=5, at_us=390, handles={})
    measured = measure(chain(), history(journal=journal, completed=[done], committed=[(1, 1, 1, 0)] * 3))
    assert measured.fired == (("kill-task", "running"),)
    assert (measured.completed, measured.aborted, measured.recoveries, measured.committed) == (1, 1, 1, 3)
    assert (measured.checkpoint_durations_us, measured.recovery_times_us) == ((90,), (700,))
    assert [(command.kind, command.finished) for command in measured.commands] == [("savepoint", True)]


def test_what_restarted_while_the_others_went_on_is_counted_by_task() -> None:
    def come_up(number: int, *, runs: bool = True, **how: object) -> list[JournalEntry]:
        began = AttemptStarted(order=2 * number, at_us=100 * number, attempt=number, job=1, **how)  # type: ignore[arg-type]
        return [
            began,
            *([AttemptRunning(order=2 * number + 1, at_us=100 * number + 50, attempt=number)] if runs else []),
        ]

    journal = [
        *come_up(1),
        *come_up(2, tasks=["source-0", "sink-0"]),
        *come_up(3, tasks=["sink-0"], in_place=True, runs=False),
        *come_up(4, tasks=["sink-0"], in_place=True),
        *come_up(5, tasks=["sink-0", "count-1"], in_place=True),
        *come_up(6),
    ]
    fault = FaultFired(order=99, at_us=1, fault=0, kind="kill-task", phase="running")
    measured = measure(chain(), history(journal=[*journal, fault]))
    tally = Tally()
    tally.add(msgspec.structs.replace(outcome(0, exactly_once=HOLDS), measured=measured))
    summary = tally.summary()
    assert summary.recoveries == 4
    assert summary.restarts == {
        "local": RestartCounts(recoveries=2, tasks={"count-1": 1, "sink-0": 2}),
        "region": RestartCounts(recoveries=1, tasks={"sink-0": 1, "source-0": 1}),
    }
    sentence = (
        "In 2 recoveries only the lost tasks restarted (local recovery) and the others went on: 3 tasks, most often "
        "sink-0 (2), count-1 (1). In 1 recovery a region restarted and the others went on: 2 tasks, most often "
        "sink-0 (1), source-0 (1)."
    )
    assert restarts_lead(summary) == sentence
    assert sentence in render_html(ReportView(summary=summary))
    assert sentence in " ".join(render_text(summary, verbose=True).split())
    assert restarts_lead(Tally().summary()) == ""


def test_a_command_that_failed_is_not_finished() -> None:
    failed = CommandReturned(order=1, at_us=1, command=0, error="no such job")
    assert not measure(chain(), history(journal=[failed])).commands[0].finished


def test_verdicts_are_counted_by_scenario_and_invariant() -> None:
    tally = Tally()
    tally.add(outcome(0, exactly_once=HOLDS, order=UNKNOWN))
    tally.add(outcome(1, exactly_once=VIOLATED, order=HOLDS))
    tally.add(outcome(2, exactly_once=UNKNOWN, order=UNKNOWN))
    summary = tally.summary()
    assert summary.scenarios == ScenarioCounts(run=3, held=1, violated=1, unknown=1)
    counts = summary.invariants["exactly-once"]
    assert (counts.can_show, counts.holds, counts.violated, counts.unknown) == (3, 1, 1, 1)
    assert counts.reasons == {"not exercised": 1}
    assert tally.shares()["exactly-once"] == Share(shown=2, can_show=3)
    assert (summary.faults["kill-task"].planned, summary.faults["kill-task"].fired) == (3, 0)


def test_a_real_run_adds_up() -> None:
    tally = Tally()
    result = run(SimulatedSubject(), chain())
    tally.add(outcome_of(0, chain(), result.history, result.judgement.verdicts))
    summary = tally.summary()
    assert summary.faults["kill-task"].fired == 1
    assert sum(summary.faults["kill-task"].phases.values()) == 1
    assert summary.records.committed == 12
    assert summary.recoveries >= 1
    assert summary.checkpoints.completed >= 1
    assert len(tally.samples().checkpoint_durations_us) == summary.checkpoints.completed


def test_two_tallies_add_up_to_one_of_all() -> None:
    draw = scenario_of(Drawing(max_records=30, capabilities=SimulatedSubject().capabilities))
    whole, first, second = Tally(), Tally(), Tally()
    for index in range(24):
        scenario = draw(1, index)
        result = run(SimulatedSubject(), scenario)
        ran = outcome_of(index, scenario, result.history, result.judgement.verdicts)
        for tally in (whole, (first, second)[index % 2]):
            tally.add(ran)
            tally.add_word(ran.not_asked, ["exactly-once"])
    both = Tally()
    both.add_all(first)
    both.add_all(second)
    can = SimulatedSubject().capabilities
    assert both.summary() == whole.summary()
    assert both.shares() == whole.shares()
    assert both.coverage.coverage(can) == whole.coverage.coverage(can)
    assert sorted(both.samples().checkpoint_durations_us) == sorted(whole.samples().checkpoint_durations_us)
    assert first.summary() != both.summary()


def test_shortfalls_name_share_and_fault() -> None:
    capabilities = Capabilities(faults=frozenset({"kill-task", "kill-node"}))
    shares = {"exactly-once": Share(shown=8, can_show=10), "order": Share(shown=0, can_show=0)}
    found = shortfalls(PROFILES["default"], shares, frozenset({"kill-task"}), capabilities)
    assert found == [
        "exactly-once was exercised in 80.0 % of the 10 scenarios that can show it; 90 % are wanted",
        "kill-node never fired",
    ]
    assert not shortfalls(PROFILES["default"], {}, frozenset({"kill-task", "kill-node"}), capabilities)


def test_a_night_of_real_time_has_to_show_what_a_short_run_may_miss_by_chance() -> None:
    capabilities = Capabilities(faults=frozenset())
    shares = {"drain": Share(shown=84, can_show=120), "exactly-once": Share(shown=480, can_show=550)}
    assert shortfalls(REAL_TIME_PROFILES["default"], shares, frozenset(), capabilities) == []
    assert shortfalls(REAL_TIME_PROFILES["nightly"], shares, frozenset(), capabilities) == [
        "exactly-once was exercised in 87.3 % of the 550 scenarios that can show it; 90 % are wanted",
        "drain was exercised in 70.0 % of the 120 scenarios that can show it; 75 % are wanted",
    ]


def test_a_run_is_judged_by_shares_from_the_size_of_its_profile_on() -> None:
    profile = PROFILES["default"]
    assert unjudged(profile, profile.scenarios) == ""
    assert unjudged(profile, 4) == (
        "The run had 4 of the 1,500 scenarios of the profile default: whether it exercised enough is not judged."
    )
    assert unjudged(profile, 2_000, stopped=True).startswith("The run stopped at its first violated scenario: ")
    assert unjudged(profile, 2_000, stopped=True, interrupted=True).startswith("The run was interrupted: ")


def calm(**fields: object) -> Scenario:
    return replace(replace(chain(40), faults=(), commands=(), deviations=()), **fields)


@pytest.mark.parametrize(
    ("scenario", "shown"),
    [
        (calm(), False),
        (calm(faults=(KillTask(trigger=AtTime(at_us=3_000), task="map-0"),)), True),
        (calm(faults=(KillTask(trigger=AtTime(at_us=900_000), task="map-0"),)), False),
        (calm(faults=(KillTask(trigger=InPhase(phase="running"), task="map-0"),)), True),
        (calm(faults=(KillTask(trigger=AtPoint(point="record-read", occurrence=20), task="map-0"),)), True),
        (calm(faults=(FailCommit(trigger=AtTime(at_us=3_000)),)), True),
        (calm(faults=(FailCommit(trigger=AtTime(at_us=3_000)),), engine=Engine(sink="idempotent")), False),
        (calm(engine=Engine(sink="plain"), faults=(KillTask(trigger=AtTime(at_us=3_000), task="map-0"),)), False),
        (calm(commands=(StopWithSavepoint(trigger=AtTime(at_us=2_000)), Resume(trigger=AtTime(at_us=0)))), True),
    ],
)
def test_what_can_show_exactly_once(scenario: Scenario, shown: bool) -> None:
    assert ("exactly-once" in can_show(scenario)) is shown


LINK = {"sender": "map-0", "receiver": "count-0"}


@pytest.mark.parametrize(
    ("fault", "restores"),
    [
        (PauseNode(trigger=AtTime(at_us=3_000), node=0, for_us=30_000), True),
        (PauseNode(trigger=AtTime(at_us=3_000), node=0, for_us=6_000), False),
        (PauseTask(trigger=AtTime(at_us=3_000), task="map-0", for_us=6_000), False),
        (ResetChannel(trigger=AtTime(at_us=3_000), **LINK, for_us=1_000), True),
        (LimitChannel(trigger=AtTime(at_us=3_000), **LINK, bytes=9), True),
        (TimeoutChannel(trigger=AtTime(at_us=3_000), **LINK, after_us=1_000), True),
        (KillProxy(trigger=AtTime(at_us=3_000)), True),
        (SliceChannel(trigger=AtTime(at_us=3_000), **LINK, size=1, for_us=9_000), False),
        (KillDatabase(trigger=AtTime(at_us=3_000)), False),
    ],
)
def test_what_surely_makes_the_job_restore(fault: AnyFault, restores: bool) -> None:
    assert ("exactly-once" in can_show(calm(faults=(fault,)))) is restores


def test_what_may_fail_cannot_show_progress() -> None:
    exception = RaiseInOperator(trigger=AtTime(at_us=1), task="map-0", always=True)
    assert "progress" in can_show(calm())
    assert "progress" not in can_show(calm(faults=(exception,)))


def test_nothing_can_be_shown_without_records() -> None:
    assert not can_show(replace(chain(0), faults=chain().faults))


def test_the_forecast_is_about_right() -> None:
    scenario = replace(calm(), engine=Engine(checkpoint_interval_us=1_000, snapshot_write_us=100))
    course = forecast(scenario.workload, scenario.topology, scenario.engine)
    done = SimulatedSubject().run(scenario)
    first = done.completed[0].at_us
    running = next(entry.at_us for entry in done.journal if isinstance(entry, AttemptRunning))
    assert 0.5 < course.first_completion_us / first < 2
    assert 0.4 < course.start_us / running < 2.5
    assert 0.5 < course.checkpoints / len(done.completed) < 2
    assert (course.reads, course.depth, course.span_us) == (40, 3, 20 * 200)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("fault 0: kill-task", "kill-task"),
        ("command 1: stop-with-savepoint", "stop-with-savepoint"),
        ("resume", "resume"),
        ("write coordinator, occurrence 2", "schedule perturbation of a write"),
        ("message source-0>count-1, occurrence 7", "schedule perturbation of a message"),
    ],
)
def test_what_never_applied_is_counted_by_its_kind(words: str, kind: str) -> None:
    assert kind_of_unapplied(words) == kind


def test_how_often_an_aim_was_met_is_counted_beside_what_waited_for_it_and_what_struck() -> None:
    """Two faults and a stop wait for one aim, of which one strikes; nothing meets the other."""
    common, rare = AtAim(aim="common", occurrence=2), AtAim(aim="rare")
    faults = (KillNode(node=0, trigger=common), KillNode(node=0, trigger=common), KillNode(node=0, trigger=rare))
    commands = (StopWithSavepoint(trigger=common),)
    scenario = msgspec.structs.replace(chain(), faults=faults, commands=commands)
    history = History(
        subject="told",
        guarantee="exactly-once",
        sink="transactional",
        witnesses=["reader", "journal"],
        journal=[
            FaultFired(order=3, at_us=0, fault=1, kind="kill-node", phase="common"),
            CommandIssued(order=5, at_us=0, command=0, kind="stop-with-savepoint"),
        ],
        timeline=[Timed(order=order, at_us=0, what="aim-met", task="aim", detail="common") for order in (1, 2, 4, 6)],
    )
    tally = Tally()
    for index in range(2):
        tally.add(outcome_of(index, scenario, history, {}))
    summary = tally.summary()
    assert {name: (one.planned, one.met, one.fired) for name, one in summary.aims.items()} == {
        "common": (6, 8, 4),
        "rare": (2, 0, 0),
    }
    said = " ".join(render_text(summary, verbose=True).split())
    assert "Aims met: common 8 (6 planned, 4 fired), rare 0 (2 planned, 0 fired)." in said
    page = render_html(ReportView(summary=summary))
    assert '<th scope="row">rare</th><td class="n">2</td><td class="n"><strong>never</strong></td>' in page
