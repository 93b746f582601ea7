"""Scenarios crossed from three drawn ones: the job of one, what goes wrong in a second, what users ask in a third.

A template draws what belongs together, so what no template puts together is never met: a kill and then a stop that
nobody resumes, before a sink that shows rows at once.  Here guarantee, sink, alignment, failover and store are chosen
anew too, whatever the template would say.  `python -m defects.crossed SEED SECONDS`, in this folder's parent, searches
for longer than the test does, and prints every scenario that the judge accuses.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from typing import TypeVar

from msgspec.structs import replace

from cutproof.faults.plan import AnyFault, AnyTrigger, AtTime, KillTask
from cutproof.harness.checks import ALIGNMENTS, FAILOVERS, SNAPSHOT_STORES, problems_of
from cutproof.harness.files import text_of
from cutproof.harness.layout import layout_of
from cutproof.harness.run import Result, run
from cutproof.harness.scenario import AnyCommand, Cancel, Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.strategies import Drawing, scenario_of
from cutproof.harness.subject import SubjectFailed
from cutproof.harness.subjects.simulated import SimulatedSubject
from cutproof.reference_impl.core.errors import EngineError

PAIRS = (
    ("exactly-once", "transactional"),
    ("exactly-once", "idempotent"),
    ("exactly-once", "plain"),
    ("at-least-once", "plain"),
    ("at-least-once", "transactional"),
    ("at-most-once", "plain"),
)
MOST_FAULTS = 6
LATEST_US = 60_000
"""about when the longest of the drawn jobs ends"""
T = TypeVar("T")


def crossed(seed: int) -> Iterator[Scenario]:
    """Valid scenarios without end; what some engines would refuse is among them."""
    dice = random.Random(seed)
    draw = scenario_of(Drawing())
    while True:
        job, trouble, user = (draw(seed, dice.randrange(1 << 20)) for _ in range(3))
        engine = _engine(dice, job.engine)
        tasks = layout_of(job.workload, job.topology, engine.committing).tasks
        scenario = replace(
            job,
            name="crossed",
            seed="",
            engine=engine,
            faults=_faults(dice, job, trouble, tasks),
            commands=_commands(dice, user, tasks),
            deviations=(),
        )
        if not any(problems_of(scenario)):
            yield scenario


def runs(seed: int) -> Iterator[Result]:
    """Those that the reference engine does not refuse, as they ran."""
    for scenario in crossed(seed):
        try:
            yield run(SimulatedSubject(), scenario)
        except (SubjectFailed, EngineError):
            continue


def _chance(dice: random.Random, percent: int) -> bool:
    return dice.randrange(100) < percent


def _engine(dice: random.Random, engine: Engine) -> Engine:
    if _chance(dice, 60):
        guarantee, sink = dice.choice(PAIRS)
        keeps = sink == "transactional"
        engine = replace(
            engine,
            guarantee=guarantee,
            sink=sink,
            committing=engine.committing if keeps else "writer",
            pooled_ids=engine.pooled_ids and keeps,
        )
    if _chance(dice, 30):
        engine = replace(engine, alignment=dice.choice(ALIGNMENTS))
    if _chance(dice, 15):
        engine = replace(engine, failover=dice.choice(FAILOVERS))
    return replace(engine, snapshot_store=dice.choice(SNAPSHOT_STORES)) if _chance(dice, 10) else engine


def _faults(dice: random.Random, job: Scenario, trouble: Scenario, tasks: tuple[str, ...]) -> tuple[AnyFault, ...]:
    """The second's, those on channels left out, at times with the first's own and with one kill more."""
    found = [_aimed(dice, fault, tasks) for fault in trouble.faults if not hasattr(fault, "sender")]
    found += job.faults if _chance(dice, 50) else ()
    if _chance(dice, 30):
        found.append(KillTask(trigger=AtTime(at_us=dice.randrange(LATEST_US)), task=dice.choice(tasks)))
    return tuple(found[:MOST_FAULTS])


def _aimed(dice: random.Random, one: T, tasks: tuple[str, ...]) -> T:
    """The same fault or command, at tasks that there are."""
    if getattr(one, "task", None) not in (None, *tasks):
        one = replace(one, task=dice.choice(tasks))  # type: ignore[type-var]
    trigger: AnyTrigger = one.trigger  # type: ignore[attr-defined]
    if getattr(trigger, "task", None) not in (None, *tasks):
        one = replace(one, trigger=replace(trigger, task=dice.choice(tasks)))  # type: ignore[type-var]
    return one


def _commands(dice: random.Random, user: Scenario, tasks: tuple[str, ...]) -> tuple[AnyCommand, ...]:
    """The third's, laid out as before; at times nobody goes on, and somebody stops a job that nobody would have."""
    found: list[AnyCommand] = []
    for command in user.commands:
        plain = replace(command, parallelism={}, inserted={}) if isinstance(command, Resume) else command
        found.append(_aimed(dice, plain, tasks))
    if found and isinstance(found[-1], Resume) and _chance(dice, 25):
        found.pop()
    if not found and _chance(dice, 40):
        asked = AtTime(at_us=dice.randrange(LATEST_US))
        found.append(
            dice.choice(
                (StopWithSavepoint(trigger=asked), StopWithSavepoint(trigger=asked, drain=True), Cancel(trigger=asked))
            )
        )
        found += [Resume(trigger=AtTime(at_us=dice.choice((0, 1_000, 5_000))))] if _chance(dice, 50) else []
    return tuple(found)


def search(seed: int, seconds: float) -> int:
    """How many of the runs were accused; each such scenario is printed."""
    until, ran, bad = time.monotonic() + seconds, 0, 0
    for result in runs(seed):
        ran += 1
        if result.judgement.violated:
            bad += 1
            print(", ".join(f"{name}: {one.message}" for name, one in result.judgement.violated.items()))
            print(text_of(result.scenario))
        if time.monotonic() > until:
            break
    print(f"{ran} runs, {bad} accused")
    return bad


if __name__ == "__main__":
    sys.exit(bool(search(int(sys.argv[1]), float(sys.argv[2]))))
