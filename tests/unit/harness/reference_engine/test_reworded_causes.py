"""However the engine words failures, their causes and what faults did, blame and verdicts stay the same."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import pytest

from cutproof.faults.plan import AnyFault, AtPoint, AtTime, CutChannel, FailCommit, KillNode, PauseTask, TearWrite
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.merging.merging import merged
from cutproof.harness.reference_engine.merging.order import Journal
from cutproof.harness.reference_engine.orchestrator import evidence
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.reference_engine.subjects.recorder import Recorder
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.stops import stops_of
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.run import run
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import (
    AttemptStarted,
    CheckpointAborted,
    CommandReturned,
    CoordinatorDown,
    FaultFired,
    History,
    JobEnded,
    TaskFailed,
)
from cutproof.properties.model.struck import StruckCommit, TornWrite
from cutproof.properties.model.verdict import Unknown
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary import causes, status_changes
from cutproof.reference_impl.processes.disk.journal import Entry
from unit.harness.scenarios import chain
from unit.harness.stage import planned

WORDINGS = {
    "nothing": "ceci n'est pas une cause",
    "misleading": "no heartbeat",
    "another misleading one": (
        "its connection from source-0 broke: transaction a of checkpoint 1 2 3 4 5 6 7 8 9; half of 1/op0-0 is written,"
        " the commit of sink-0/1/1: expired"
    ),
}
SEEDS = [(1, index) for index in range(60)]
TESTS = Path(__file__).parents[3]
DEPENDENT = (
    "regressions/half-written-between-two-coordinators.json",
    "regressions/failed/expired-while-no-coordinator-lived.json",
    "corpus/P10.json",
)
"""Scenarios whose verdicts depend on what a fault struck, or on a cause."""

SENTENCES: dict[type, str] = {
    o.TaskFailed: "reason",
    o.JobEnded: "reason",
    o.Died: "reason",
    o.CommandReturned: "error",
    o.CoordinatorChanged: "reason",
    o.FaultFired: "detail",
    o.Transacted: "reason",
}
"""By type of event, the field in which a sentence stands; "" in it says that there is none."""
CAUSED = (status_changes.AttemptStarted, status_changes.CheckpointAborted)
"""Changes of status that have a cause; none has a sentence, the history gets it from the cause."""
TEXTS = ("detail", "error", "how", "last_words", "reason")
"""Fields of causes that hold what an exception or the operating system said."""
Value = TypeVar("Value", bound=msgspec.Struct)


def reworded(event: o.Observed, sentence: str) -> o.Observed:
    """The event in other words, also inside its cause."""
    if isinstance(event, o.StatusChanged):
        return o.StatusChanged(event.job, reworded_change(event.change, sentence))
    field = SENTENCES.get(type(event))
    if field is None or not getattr(event, field):
        return event
    changed: dict[str, Any] = {field: sentence}
    cause = getattr(event, "cause", None)
    if cause is not None:
        changed["cause"] = reworded_inside(cause, sentence)
    return msgspec.structs.replace(event, **changed)


def reworded_change(change: status_changes.AnyStatusChange, sentence: str) -> status_changes.AnyStatusChange:
    if not isinstance(change, CAUSED):
        return change
    assert isinstance(change.cause, causes.Cause), "an engine says why in a type of its own"
    return msgspec.structs.replace(change, cause=reworded_inside(change.cause, sentence))


def reworded_inside(cause: Value, sentence: str) -> Value:
    assert not isinstance(cause, causes.FormerSentence), "only what reads journals of older runs makes one"
    changed: dict[str, Any] = {}
    for name in cause.__struct_fields__:
        value = getattr(cause, name)
        if isinstance(value, causes.Cause):
            changed[name] = reworded_inside(value, sentence)
        elif name in TEXTS:
            changed[name] = sentence
    return msgspec.structs.replace(cause, **changed)


def judged(scenario: Scenario, history: History) -> list[object]:
    """Whatever a sentence could have changed: the blame, how jobs ended, which checkpoints failed, and the verdicts but
    for their words."""
    verdicts = [
        (name, type(one), getattr(one, "difference", ""), one.reason if isinstance(one, Unknown) else "")
        for name, one in judge(scenario.workload, scenario.topology, history).verdicts.items()
    ]
    journal = history.journal
    blame = [(one.task, one.attempt, one.fault, one.cause) for one in journal if isinstance(one, TaskFailed)]
    ends = [(one.status, one.cause) for one in journal if isinstance(one, JobEnded)]
    given_up = [(one.checkpoint, one.failed) for one in journal if isinstance(one, CheckpointAborted)]
    return [verdicts, blame, ends, given_up, stops_of(scenario, history), history.starved]


def sentences(history: History) -> set[str]:
    """Every sentence that the journal has."""
    found: set[str] = set()
    for entry in history.journal:
        match entry:
            case TaskFailed(reason=words) | JobEnded(reason=words) | CheckpointAborted(reason=words):
                found.add(words)
            case CommandReturned(error=words) | FaultFired(detail=words) | AttemptStarted(cause=words):
                found.add(words)
            case CoordinatorDown(reason=words):
                found.add(words)
    return found - {""}


def test_every_cause_has_a_sentence_of_its_own_which_no_other_place_makes() -> None:
    kinds = {one for one in vars(causes).values() if isinstance(one, type) and issubclass(one, causes.Cause)}
    assert set(causes._WORDS) == kinds - {causes.Cause, causes.Incompatible}


def test_every_sentence_of_an_event_is_reworded_here() -> None:
    """A field that is not must be an id, or a word of a fixed set."""
    told = {
        (event.__name__, field.name)
        for event in o.Observed.__subclasses__()
        for field in msgspec.structs.fields(event)
        if field.type in (str, o.Words | None) and field.name in ("reason", "error", "detail", "message")
    }
    assert told == {(event.__name__, field) for event, field in SENTENCES.items()} | {
        ("Timed", "detail"),  # the time line, which nobody judges
    }
    texts = {
        (change, field.name)
        for change in status_changes.StatusChange.__subclasses__()
        for field in msgspec.structs.fields(change)
        if field.type is str
    }
    assert not texts
    assert {one for one in status_changes.StatusChange.__subclasses__() if "cause" in one.__struct_fields__} == set(
        CAUSED
    )


# -- in virtual time ------------------------------------------------------------------------------------------------


def word_causes(monkeypatch: pytest.MonkeyPatch, sentence: str) -> None:
    """Put every cause into other words: `in_words` is the one place where they are made."""

    def other(cause: causes.Cause) -> str:
        return sentence

    monkeypatch.setattr(causes, "in_words", other)


def in_other_words(monkeypatch: pytest.MonkeyPatch, sentence: str) -> None:
    """Put every cause into other words, and all that is recorded."""
    saw = Recorder.saw
    word_causes(monkeypatch, sentence)
    monkeypatch.setattr(Recorder, "saw", lambda recorder, event: saw(recorder, reworded(event, sentence)))


@pytest.fixture(scope="module")
def drawn() -> list[tuple[Scenario, History]]:
    """Drawn scenarios, and what happened in the engine's own words."""
    draw = scenario_of(Drawing())
    subject = subject_called("simulated", None)
    scenarios = [*(read_scenario(TESTS / name) for name in DEPENDENT), *(draw(seed, index) for seed, index in SEEDS)]
    return [(scenario, run(subject, scenario).history) for scenario in scenarios]


def test_there_is_enough_to_be_worded(drawn: list[tuple[Scenario, History]]) -> None:
    entries = [entry for _, history in drawn for entry in history.journal]
    assert any(isinstance(entry, TaskFailed) for entry in entries)
    assert any(isinstance(entry, CommandReturned) and entry.error for entry in entries)
    assert len({entry.cause for entry in entries if isinstance(entry, AttemptStarted)}) > 2
    assert {entry.failed for entry in entries if isinstance(entry, CheckpointAborted)} == {False, True}
    assert {type(entry.struck) for entry in entries if isinstance(entry, FaultFired)} >= {TornWrite, StruckCommit}


@pytest.mark.parametrize("number", range(len(DEPENDENT)), ids=DEPENDENT)
def test_without_values_the_verdicts_would_follow_from_sentences(
    drawn: list[tuple[Scenario, History]], number: int
) -> None:
    scenario, before = drawn[number]
    history = copy.deepcopy(before)
    for entry in history.journal:
        if isinstance(entry, TaskFailed | JobEnded):
            entry.cause, entry.reason = None, WORDINGS["nothing"]
        elif isinstance(entry, FaultFired):
            entry.struck, entry.detail = None, WORDINGS["nothing"]
    assert judged(scenario, history)[0] != judged(scenario, before)[0]


@pytest.mark.parametrize("sentence", WORDINGS.values(), ids=WORDINGS)
def test_in_virtual_time(sentence: str, drawn: list[tuple[Scenario, History]], monkeypatch: pytest.MonkeyPatch) -> None:
    subject = subject_called("simulated", None)
    in_other_words(monkeypatch, sentence)
    for scenario, before in drawn:
        history = run(subject, scenario).history
        assert judged(scenario, history) == judged(scenario, before)
        assert sentences(history) <= {sentence}


@pytest.mark.parametrize("defect", ["P10", "P02", "F08"])
def test_with_a_defect_it_is_as_wrong_as_before(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = scenario_of(Drawing())
    subject = subject_called("simulated", defect)
    scenarios = [draw(2, index) for index in range(20)]
    before = [judged(scenario, run(subject, scenario).history) for scenario in scenarios]
    in_other_words(monkeypatch, WORDINGS["another misleading one"])
    assert [judged(scenario, run(subject, scenario).history) for scenario in scenarios] == before


# -- on processes: the sentences in recorded journals are replaced, and the journals are merged again -----------------


class Merge(NamedTuple):
    """What a history was made from."""

    head: History
    kinds: list[str]
    journals: list[Journal]
    timeline: bool
    more: dict[str, Any]

    def history(self, sentence: str | None = None) -> History:
        """The history, in these words."""
        made = copy.deepcopy(self.head)
        journals = [
            (process, incarnation, [one if sentence is None else in_words(one, sentence) for one in written])
            for process, incarnation, written in self.journals
        ]
        merged(made, self.kinds, journals, self.timeline, **self.more)
        return made


def in_words(entry: Entry, sentence: str) -> Entry:
    return Entry(entry.stamp, reworded(entry.event, sentence))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessesSubject]:
    made = ProcessesSubject()
    yield made
    made.close()


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Merge]:
    """What the history of each run is made from."""
    found: list[Merge] = []

    def keep(history: History, kinds: Any, journals: Any, timeline: bool, **more: Any) -> None:
        found.append(Merge(copy.deepcopy(history), kinds, journals, timeline, more))
        merged(history, kinds, journals, timeline, **more)

    monkeypatch.setattr(evidence, "merged", keep)
    return found


def at(point: str, occurrence: int = 1, task: str | None = None) -> AtPoint:
    return AtPoint(point=point, occurrence=occurrence, task=task)


FAULTS: dict[str, tuple[tuple[AnyFault, ...], type[causes.Cause]]] = {
    "a node is killed": ((KillNode(trigger=at("checkpoint-completed"), node=1),), causes.NodeLost),
    "a task dies as it writes": ((TearWrite(trigger=AtTime(at_us=0), task="count-1"),), causes.SnapshotTorn),
    "a transaction expires": ((FailCommit(trigger=AtTime(at_us=0), how="expired"),), causes.StoreRefused),
    "a connection breaks": (
        (CutChannel(trigger=at("record-applied", 9, "count-0"), sender="map-1", receiver="count-0"),),
        causes.ConnectionBroke,
    ),
    "a process stands still": (
        (PauseTask(trigger=at("snapshot-taken", 2, "count-0"), task="count-0", for_us=30_000),),
        causes.HeartbeatMissed,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_on_processes(
    processes: ProcessesSubject, recorded: list[Merge], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults, cause = FAULTS[name]
    scenario = planned(chain(60), *faults, checkpoint_interval_us=1_500)
    run(processes, scenario)
    (kept,) = recorded
    events = [entry.event for _, _, written in kept.journals for entry in written]
    failed = [event for event in events if isinstance(event, o.TaskFailed | o.Died)]
    assert cause in {type(event.cause) for event in failed}
    before = judged(scenario, kept.history())
    assert before[1], "tasks have failed"
    for sentence in WORDINGS.values():
        word_causes(monkeypatch, sentence)
        history = kept.history(sentence)
        assert judged(scenario, history) == before
        assert sentences(history) <= {sentence}
