"""Stories: every fault, trigger, command and perturbation has words, and a run is told in order."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cutproof.faults import plan
from cutproof.faults.plan import KINDS, AnyFault, AnyTrigger, AtAim, AtPoint, AtRest, AtTime, InPhase, KillNode
from cutproof.faults.points import PHASES, POINTS
from cutproof.harness.counterexamples.replay import replay
from cutproof.harness.counterexamples.story import expected_rows, nearest_passing, story_of
from cutproof.harness.counterexamples.words import (
    command_in_words,
    engine_in_words,
    fault_in_words,
    ordinal,
    perturbation_in_words,
    time_in_words,
    trigger_in_words,
    workload_in_words,
)
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import read_history, read_scenario
from cutproof.harness.scenario.model import (
    COMMANDS,
    AnyCommand,
    CopySnapshot,
    DeleteSnapshot,
    Fork,
    Perturbation,
    Resume,
    Savepoint,
    Scenario,
    StopWithSavepoint,
)
from cutproof.harness.shrink.on_subject import fails_like
from cutproof.harness.subject.names import subject_called
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import JobEnded
from cutproof.properties.quick_checker.case import Case
from unit.harness.scenarios import chain
from unit.harness.subjects import Lossy

NOW = AtTime(at_us=1_000)


def test_every_fault_has_words_of_its_own() -> None:
    drawn: dict[str, AnyFault] = {}
    able = msgspec.structs.replace(SimulatedSubject().capabilities, faults=frozenset(KINDS), real_time=True)
    draw = scenario_of(Drawing(capabilities=able))
    for index in range(60):
        for fault in draw(1, index).faults:
            drawn.setdefault(plan.kind_of(fault), fault)
    assert set(drawn) == set(KINDS)
    assert len({fault_in_words(fault) for fault in drawn.values()}) == len(KINDS)


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (AtTime(at_us=12_500), "12.5 ms after the start"),
        (AtPoint(point="ack-sent", occurrence=2, task="map-0"), f"2nd ack sent of map-0 ({POINTS['ack-sent']})"),
        (AtPoint(point="ack-sent", side="before"), f"before the 1st ack sent ({POINTS['ack-sent']})"),
        (InPhase(phase="aligning", after_us=40), f"aligning for the 1st time, 40 µs in ({PHASES['aligning']})"),
    ],
)
def test_triggers(trigger: AnyTrigger, words: str) -> None:
    assert trigger_in_words(trigger).endswith(words)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (plan.KillTask(trigger=NOW, task="map-0"), "task map-0 is killed"),
        (plan.FailWrite(trigger=NOW, task=None), "the next snapshot write of the coordinator fails"),
        (plan.LoseMessage(trigger=NOW, message="ack", task="map-0"), "the next ack message from or to map-0 is lost"),
        (
            plan.FailCommit(trigger=NOW, how="lost-response", times=3),
            "the next commit goes wrong 3 times in a row (lost response)",
        ),
    ],
)
def test_faults(fault: AnyFault, words: str) -> None:
    assert fault_in_words(fault) == words


def test_commands_and_perturbations() -> None:
    assert len({command_in_words(kind(trigger=NOW)) for kind in COMMANDS.values()}) == len(COMMANDS)
    assert command_in_words(StopWithSavepoint(trigger=NOW, drain=True)).endswith("and drained")
    late = Perturbation(what="control ack map-0", occurrence=3, by_us=2_000)
    assert perturbation_in_words(late) == "the 3rd ack message of map-0 is 2 ms late"
    assert perturbation_in_words(msgspec.structs.replace(late, what="write map-0")).startswith(
        "the 3rd snapshot write of"
    )


def test_numbers() -> None:
    ordinals = [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 21, 113)]
    assert ordinals == ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "113th"]
    assert [time_in_words(us) for us in (900, 1_000, 1_250, 2_000_000)] == ["900 µs", "1 ms", "1.25 ms", "2 s"]


def test_what_ran() -> None:
    assert workload_in_words(chain()) == (
        "source (12 records in 2 splits, 2 tasks), map (2 tasks), count (2 tasks), into a transactional sink (2 tasks)"
    )
    assert engine_in_words(chain()) == ("exactly-once, a checkpoint every 800 µs, asynchronous snapshots into files")
    engine = msgspec.structs.replace(chain().engine, snapshot_format="incremental", full_every=3)
    assert engine_in_words(msgspec.structs.replace(chain(), engine=engine)) == (
        "exactly-once, a checkpoint every 800 µs, asynchronous incremental snapshots (each 3rd full) into files"
    )
    when = AtTime(at_us=1)
    assert command_in_words(Savepoint(trigger=when, format="incremental")) == "an incremental savepoint is requested"
    assert command_in_words(StopWithSavepoint(trigger=when, format="native")) == (
        "the job is stopped with a native savepoint"
    )
    in_files = replace(chain(), engine=replace(chain().engine, state_backend="lsm", memtable_entries=2))
    assert engine_in_words(in_files).endswith("state in sorted files of 2 keys, asynchronous snapshots into files")


def test_a_run_that_holds_is_described_in_order() -> None:
    replayed = replay(SimulatedSubject(), chain())
    ran, happened, cut, out = replayed.story.paragraphs
    assert ran.startswith("What ran: source")
    assert happened.index("attempt 1 starts from the very beginning") < happened.index("task count-1 is killed")
    assert happened.index("task count-1 is killed") < happened.index("attempt 2 starts")
    assert happened.endswith("the job ends: finished.")
    assert cut.startswith("Where the closing cut was: all input ended")
    assert out == "What came out: 12 rows committed; 12 rows expected."
    assert replayed.story.sentence.startswith("Task count-1 is killed 1.2 ms after the start and ")
    assert replayed.story.sentence.endswith("and everything that could be judged holds.")


def test_a_run_that_fails_states_what_is_lost_and_what_would_hold() -> None:
    subject = Lossy()
    replayed = replay(subject, chain())
    assert "exactly-once is violated" in replayed.story.sentence
    assert any(line.startswith("Lost: (key 0, value ") for line in replayed.story.paragraphs)
    only_kill = msgspec.structs.replace(chain(), faults=chain().faults[:1], deviations=(), commands=())
    verdict = replay(subject, only_kill).judgement.violated["exactly-once"]

    def still_fails(scenario: Scenario) -> bool:
        return fails_like(subject, scenario, "exactly-once", verdict.difference)

    neighbour = nearest_passing(only_kill, still_fails)
    assert neighbour is not None
    assert neighbour.sentence == "It holds unless task count-1 is killed."
    assert not still_fails(neighbour.scenario)


def test_a_failure_without_a_cause_has_no_neighbour() -> None:
    assert nearest_passing(chain(), lambda _: True) is None


def test_the_resumed_job_is_reported() -> None:
    stopped = msgspec.structs.replace(
        chain(),
        faults=(),
        commands=(StopWithSavepoint(trigger=AtTime(at_us=1_500)), Resume(trigger=AtTime(at_us=1_000))),
    )
    story = replay(SimulatedSubject(), stopped).story
    assert "the job is stopped with a savepoint" in story.paragraphs[1]
    assert "the job is started again" in story.paragraphs[1]


def not_done_in(scenario: Scenario) -> str:
    """What the story of a scenario says that its run did not do; empty if it says nothing."""
    paragraphs = replay(SimulatedSubject(), scenario).story.paragraphs
    head = "What did not happen: "
    return next((one.removeprefix(head) for one in paragraphs if one.startswith(head)), "")


STOP, GONE = StopWithSavepoint(trigger=AtTime(at_us=8_000)), Resume(trigger=AtTime(at_us=100), snapshot="s")
LONG = replace(chain(), faults=(), deviations=(), engine=replace(chain().engine, read_interval_us=2_000))


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        (
            (
                Savepoint(trigger=AtTime(at_us=2_500), name="s"),
                DeleteSnapshot(trigger=AtTime(at_us=7_000), snapshot="s"),
                STOP,
                GONE,
                Resume(trigger=AtTime(at_us=100)),
            ),
            "command 3 (resume) was not requested: there was no snapshot s; command 4 (resume) was not requested.",
        ),
        (
            (CopySnapshot(trigger=AtTime(at_us=1)), Resume(trigger=AtTime(at_us=100)), STOP),
            "command 0 (copy-snapshot) was not requested: its trigger was not met, or there was no snapshot then.",
        ),
        (
            (GONE, GONE),
            "command 0 (resume) was not requested: the job had finished; command 1 (resume) was not requested.",
        ),
        ((STOP, Resume(trigger=AtTime(at_us=100)), Fork(trigger=AtRest(), snapshot="newest")), ""),
    ],
)
def test_a_command_that_was_not_requested_is_told(commands: tuple[AnyCommand, ...], words: str) -> None:
    assert not_done_in(replace(LONG, commands=commands)) == words


def test_a_fault_that_did_not_fire_is_told() -> None:
    silent = plan.FailWrite(trigger=AtTime(at_us=1_000), task=None, what="copy-file")
    scenario = replace(LONG, faults=(silent, silent), commands=())
    assert not_done_in(scenario) == "fault 0 (fail-write) did not fire; fault 1 (fail-write) did not fire."
    sentence = replay(SimulatedSubject(), scenario).story.sentence
    assert sentence == "No fault fired, and everything that could be judged holds."
    assert not_done_in(replace(chain(), commands=())) == "", "its fault fires"


def test_a_node_that_no_job_had_did_not_run() -> None:
    added = read_scenario(Path(__file__).parents[3] / "regressions" / "an-added-operator-that-finished.json")
    name = next(node.name for node in added.workload.nodes if node.later is True)
    assert f", {name} (2 tasks, added later)" in workload_in_words(added)
    never = replace(added, commands=tuple(one for one in added.commands if not isinstance(one, Resume)), faults=())
    assert name not in replay(SimulatedSubject(), never).story.paragraphs[0]
    waits = tuple(replace(one, trigger=AtTime(at_us=10**9)) for one in added.commands if isinstance(one, Resume))
    told = replay(SimulatedSubject(), replace(added, commands=waits, faults=())).story.paragraphs
    assert "was not requested" in " ".join(told)
    assert name not in told[0]


def test_a_violation_without_a_fault_is_not_reported_as_if_nothing_were_wrong() -> None:
    quiet = msgspec.structs.replace(chain(), faults=(), deviations=(), commands=())
    held = replay(SimulatedSubject(), quiet).story.sentence
    assert held == "Without any fault, everything that could be judged holds."
    wrong = read_scenario(Path(__file__).parents[3] / "corpus" / "A01.json")
    assert not wrong.faults
    sentence = replay(subject_called("simulated", "A01"), wrong).story.sentence
    assert sentence.startswith("Without any fault, consistent-cut is violated: sent after, applied before (")


def test_a_pipelines_story_speaks_of_no_engine() -> None:
    outside = Path(__file__).parents[4] / "docs" / "examples" / "outside"
    scenario, history = read_scenario(outside / "scenario.json"), read_history(outside / "history.json")
    kill = KillNode(node=0, trigger=AtAim(aim="halfway"))
    scenario = replace(scenario, pipeline="orders", faults=(kill,))
    history.journal[1] = replace(history.journal[1], detail="4 records had been given, 2 rows were visible")
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    story = story_of(scenario, history, dict(verdicts))
    assert story.sentence.startswith("The pipeline is killed when the aim 'halfway' is met for the 1st time, and")
    assert "exactly-once is violated: repeated row" in story.sentence
    text = " ".join(story.paragraphs)
    assert "What ran: the pipeline orders, which was fed with 4 records." in text
    assert "the pipeline is killed at the aim 'holds work': 4 records had been given, 2 rows were visible" in text
    assert "and continues from something of its own" in text
    assert not [word for word in ("checkpoint", "node", "task", "cut") if word in text.lower().replace("cutproof", "")]
    history.journal[2] = replace(history.journal[2], restores=None)
    assert "nothing shows that it continued" in " ".join(story_of(scenario, history, dict(verdicts)).paragraphs)


@pytest.mark.parametrize(
    ("sink", "identity", "status", "rows"),
    [
        ("transactional", "key", "finished", 4),
        ("transactional", "key", "stopped", 3),
        ("idempotent", "row", "finished", 4),
        ("idempotent", "key", "finished", 2),
    ],
)
def test_the_rows_expected_of_a_pipeline_are_those_that_its_judge_expects(
    sink: str, identity: str, status: str, rows: int
) -> None:
    """A table whose rows replace each other by the whole row has all of them; a stopped job has those it covers."""
    outside = Path(__file__).parents[4] / "docs" / "examples" / "outside"
    scenario, history = read_scenario(outside / "scenario.json"), read_history(outside / "history.json")
    end = history.journal[-1]
    assert isinstance(end, JobEnded)
    covers = {0: 3} if status == "stopped" else None
    history = replace(
        history,
        sink=sink,
        identity=identity,
        journal=[*history.journal[:-1], replace(end, status=status, covers=covers)],
    )
    case = Case(scenario.workload, scenario.topology, history)
    assert expected_rows(case).total() == rows
