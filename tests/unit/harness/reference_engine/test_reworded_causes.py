"""However the engine words the causes of failures, blame and verdicts stay the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, KillNode
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.merging import failures, merging
from cutproof.harness.reference_engine.merging.order import Placed, Source
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import JobEnded, TaskFailed
from cutproof.properties.model.verdict import Unknown
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary import causes
from unit.harness.scenarios import chain
from unit.harness.stage import planned

WORDINGS = {
    "nothing": "ceci n'est pas une cause",
    "misleading": "no heartbeat",
    "another misleading one": "its connection from source-0 broke: transaction a of checkpoint 1 2 3 4 5 6 7 8 9",
}
SEEDS = [(1, index) for index in range(60)]


def reworded(monkeypatch: pytest.MonkeyPatch, sentence: str) -> None:
    """Put every cause into other words: `in_words` is the one place where they are made."""

    def other(cause: causes.Cause) -> str:
        return sentence

    monkeypatch.setattr(causes, "in_words", other)


def judged(result: Result) -> list[object]:
    """Whatever a sentence could have changed: the blame, how jobs ended, and the verdicts but for their words."""
    verdicts = [
        (name, type(one), getattr(one, "difference", ""), one.reason if isinstance(one, Unknown) else "")
        for name, one in result.judgement.verdicts.items()
    ]
    journal = result.history.journal
    blame = [(one.task, one.attempt, one.fault, one.cause) for one in journal if isinstance(one, TaskFailed)]
    return [verdicts, blame, [(one.status, one.cause) for one in journal if isinstance(one, JobEnded)]]


def test_every_cause_has_a_sentence_of_its_own_which_no_other_place_makes() -> None:
    kinds = {one for one in vars(causes).values() if isinstance(one, type) and issubclass(one, causes.Cause)}
    assert set(causes._WORDS) == kinds - {causes.Cause}


@pytest.mark.parametrize("sentence", WORDINGS.values(), ids=WORDINGS)
def test_in_virtual_time(sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = scenario_of(Drawing())
    subject = subject_called("simulated", None)
    scenarios = [draw(seed, index) for seed, index in SEEDS]
    before = [judged(run(subject, scenario)) for scenario in scenarios]
    assert any(blame for _, blame, _ in before), "some of them fail"
    reworded(monkeypatch, sentence)
    for scenario, wanted in zip(scenarios, before, strict=True):
        result = run(subject, scenario)
        assert judged(result) == wanted
        sentences = {one.reason for one in result.history.journal if isinstance(one, TaskFailed)}
        assert sentences <= {sentence}


@pytest.mark.parametrize("defect", ["P10", "P02", "F08"])
def test_with_a_defect_it_is_as_wrong_as_before(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = scenario_of(Drawing())
    subject = subject_called("simulated", defect)
    scenarios = [draw(2, index) for index in range(20)]
    before = [judged(run(subject, scenario)) for scenario in scenarios]
    reworded(monkeypatch, WORDINGS["another misleading one"])
    assert [judged(run(subject, scenario)) for scenario in scenarios] == before


# -- on processes: the sentences in recorded journals are replaced, and the journals are merged again -----------------


Merge = tuple[list[Placed], list[Source]]


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessesSubject]:
    made = ProcessesSubject()
    yield made
    made.close()


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Merge]:
    """The journals of each run, in one order, as blame is decided on them."""
    found: list[Merge] = []

    def keep(placed: Any, sources: Any) -> failures.Judged:
        found.append((list(placed), list(sources)))
        return failures.judged(placed, sources)

    monkeypatch.setattr(merging, "judged", keep)
    return found


def blamed(placed: list[Placed], sources: list[Source]) -> list[object]:
    judgement = failures.judged(placed, sources)
    return [
        judgement.starved,
        [
            (one.event.task, one.event.attempt, one.event.fault, type(one.event.cause))
            for one in judgement.placed
            if isinstance(one.event, o.TaskFailed)
        ],
    ]


def kill(point: str) -> KillNode:
    return KillNode(trigger=AtPoint(point=point, occurrence=1), node=1)


@pytest.mark.parametrize("point", ["checkpoint-completed", "snapshot-persisted"])
def test_on_processes(processes: ProcessesSubject, recorded: list[Merge], point: str) -> None:
    run(processes, planned(chain(60), kill(point), checkpoint_interval_us=1_500))
    ((placed, sources),) = recorded
    before = blamed(placed, sources)
    assert before[1], "tasks have failed"
    for sentence in WORDINGS.values():
        other = [
            one.with_event(msgspec.structs.replace(one.event, reason=sentence))
            if isinstance(one.event, o.TaskFailed | o.Died | o.JobEnded)
            else one
            for one in placed
        ]
        assert blamed(other, sources) == before
