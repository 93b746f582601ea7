"""Small jobs in a simulated world, and short words for what their histories tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeVar

from cutproof.harness.reference_engine.subjects.simulated import Run, SimulatedSubject
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import AttemptStarted, FaultFired, History, JobEnded, JournalEntry, Timed
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import AnyOperator, Count, Input, InputRecord, Map, Node, Row, Workload
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.simulated.world import World

E = TypeVar("E", bound=JournalEntry)

QUICK = {"checkpoint_interval_us": 1_500, "tolerated_failures": 20, "restart_attempts": 20}


def job(
    records: int = 40,
    *operators: AnyOperator,
    width: int = 1,
    splits: int = 1,
    bounded: bool = True,
    faults: tuple[Any, ...] = (),
    commands: tuple[Any, ...] = (),
    deviations: tuple[Any, ...] = (),
    **engine: Any,
) -> Scenario:
    """source → op0 → op1 … → sink, each as wide as said; by default a map and a count by key."""
    operators = operators or (Map(add=1), Count(tagged=True))
    logs = tuple(tuple((n % 3, n, 1000 * split + n + 1) for n in range(records // splits)) for split in range(splits))
    names = ["source", *(f"op{number}" for number in range(len(operators)))]
    workload = Workload(
        name="job",
        inputs=(Input(name="source", splits=logs, bounded=bounded),),
        nodes=tuple(
            Node(name=name, operator=operator, inputs=(before,))
            for before, name, operator in zip(names, names[1:], operators, strict=False)
        ),
    )
    return Scenario(
        workload=workload,
        topology=lay_out(workload, dict.fromkeys([*names, "sink"], width)),
        engine=Engine(**{**QUICK, **engine}),
        faults=faults,
        commands=commands,
        deviations=deviations,
    )


def run(scenario: Scenario, *, timeline: bool = False) -> History:
    return SimulatedSubject().run(scenario, timeline=timeline)


def started(scenario: Scenario, until_us: int = 0) -> World:
    """A world in which the scenario has begun, at a time."""
    world = Run(scenario, Parts(), False).world
    world.submit(())
    world.loop.run(until_us)
    return world


def counted(scenario: Scenario) -> Counter[Row]:
    """1, 2, 3 … of each key of all input."""
    return rows_of_counts(record for _, _, records in scenario.workload.splits() for record in records)


def rows_of_counts(records: Iterable[InputRecord]) -> Counter[Row]:
    """1, 2, 3 … of each key of some records."""
    keys = Counter(key for key, _, _ in records)
    return Counter((key, number, 0, 0) for key, times in keys.items() for number in range(1, times + 1))


def all_there(scenario: Scenario, parts: Parts | None = None) -> History:
    """It finished, each row is there once, and nothing is accused; restored-state was exercised."""
    history = Run(scenario, parts or Parts(), False).history()
    assert [entry.status for entry in journal(JobEnded, history)][-1] == "finished"
    assert Counter(history.committed) == counted(scenario)
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    assert [name for name, verdict in verdicts.items() if isinstance(verdict, Violated)] == []
    assert isinstance(verdicts["restored-state"], Holds)
    assert isinstance(verdicts["consistent-cut"], Holds)
    return history


# -- what a history tells ----------------------------------------------------------------------------------------


def journal(kind: type[E], history: History) -> list[E]:
    return [entry for entry in history.journal if isinstance(entry, kind)]


def fired(history: History) -> list[str]:
    return [entry.kind for entry in journal(FaultFired, history)]


def attempts(history: History) -> int:
    return len(journal(AttemptStarted, history))


def ended(history: History) -> tuple[str, str]:
    """How the last job ended, and why."""
    last = journal(JobEnded, history)[-1]
    return last.status, last.reason


def rows(scenario: Scenario) -> Counter[Row]:
    """What the default job owes, one task wide: every record counted by key, in order."""
    counts: Counter[int | None] = Counter()
    expected: Counter[Row] = Counter()
    for source in scenario.workload.inputs:
        for split in source.splits:
            for key, _, tag in split:
                counts[key] += 1
                expected[(key, counts[key], tag, 0)] += 1
    return expected


def shown(history: History, task: str, *what: str) -> list[Timed]:
    """A task's events of these kinds, in order."""
    return [event for event in history.timeline if event.task == task and event.what in what]
