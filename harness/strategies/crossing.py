"""Scenarios crossed from three others: the job of one, what goes wrong in a second, what users ask in a third.

A template draws what belongs together, so what no template puts together is never met: a kill and then a stop that
nobody resumes, before a sink that shows rows at once.  Here guarantee, sink, alignment, failover and store are chosen
anew too, whatever the templates would say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from ...faults import plan
from ...faults.plan import AnyFault, AnyTrigger, AtTime
from ...properties.classes import last_row_is_fixed
from ...properties.workload import Workload
from ..checks import problems_of
from ..forecast import forecast
from ..layout import Layout, layout_of
from ..scenario import AnyCommand, Cancel, Engine, Resume, Scenario, StopWithSavepoint
from .choices import Choices
from .engines import alignments, spilled
from .faults import at_some_time
from .stage import Frame, Template, has_regions

CROSSED = "crossed"
PAIRS = (
    ("exactly-once", "transactional"),
    ("exactly-once", "plain"),
    ("exactly-once", "idempotent"),
    ("at-least-once", "plain"),
    ("at-least-once", "transactional"),
    ("at-most-once", "plain"),
)
"""guarantee and sink, each as likely: elsewhere nine in ten are of the first"""
AFTER_US = (1_000, 0, 5_000)
T = TypeVar("T")


def crossing_of(templates: Sequence[Template]) -> Template:
    """What draws three by these templates and crosses them; a job that the others do not fit stays as it was drawn."""

    def crossed(choices: Choices, frame: Frame) -> Scenario:
        job, trouble, user = (choices.pick(templates)(choices, frame) for _ in range(3))
        engine = _engine(choices, frame, job)
        layout = layout_of(job.workload, job.topology, engine.committing)
        scenario = replace(
            job,
            name=CROSSED,
            engine=engine,
            faults=_faults(choices, job, trouble, layout)[: max(1, frame.max_faults)],
            commands=_commands(choices, job, user, layout),
            deviations=(),
        )
        return job if any(problems_of(scenario)) else scenario

    return crossed


# -- the engine ----------------------------------------------------------------------


def _engine(choices: Choices, frame: Frame, job: Scenario) -> Engine:
    """The job's, promising or showing rows otherwise most of the time, at times storing or restarting otherwise."""
    engine = job.engine
    pairs = _pairs(frame, job)
    if pairs and choices.percent(60):
        guarantee, sink = choices.pick(pairs)
        engine = _promising(choices, job.workload, engine, guarantee, sink)
    if choices.percent(30):
        alignment = choices.pick(alignments(engine.guarantee, job.workload))
        engine = spilled(choices, replace(engine, alignment=alignment, spilling="at-once"))
    if choices.percent(10):
        engine = replace(engine, snapshot_store="memory" if engine.snapshot_store == "files" else "files")
    if engine != job.engine and engine.failover == "local":  # which asks much of all of them
        return replace(engine, failover="full")
    if has_regions(job.topology) and engine.failover != "local" and choices.percent(30):
        return replace(engine, failover="region" if engine.failover == "full" else "full")
    return engine


def _pairs(frame: Frame, job: Scenario) -> list[tuple[str, str]]:
    """Those that the subject has and the job can be held to: a table needs one right last row a key, enumerators need
    state."""
    fixed = last_row_is_fixed(job.workload, job.topology)
    stateless = not any(source.assignment == "enumerated" for source in job.workload.inputs)
    return [
        (guarantee, sink)
        for guarantee, sink in PAIRS
        if guarantee in frame.guarantees and sink in frame.sinks
        if sink != "idempotent" or fixed
        if guarantee != "at-most-once" or stateless
    ]


def _promising(choices: Choices, workload: Workload, engine: Engine, guarantee: str, sink: str) -> Engine:
    seals = sink == "transactional"
    aligned = guarantee != "exactly-once"
    return replace(
        engine,
        guarantee=guarantee,
        sink=sink,
        alignment="aligned" if aligned else engine.alignment,
        spilling="at-once" if aligned else engine.spilling,
        committing=engine.committing if seals else "writer",
        pooled_ids=engine.pooled_ids and seals,
        trims_logs=engine.trims_logs and guarantee != "at-most-once",
    )


# -- what goes wrong, and what users ask ---------------------------------------------


def _faults(choices: Choices, job: Scenario, trouble: Scenario, layout: Layout) -> tuple[AnyFault, ...]:
    """The second's, those on channels left out, at times with the first's own, or with one kill more."""
    found = [_at_home(choices, job, fault, layout) for fault in trouble.faults if not hasattr(fault, "sender")]
    if not found or choices.percent(30):
        when = at_some_time(choices, forecast(job.workload, job.topology, job.engine))
        found.insert(0, plan.KillTask(trigger=when, task=choices.pick(layout.tasks)))
    return (*found, *job.faults) if choices.percent(50) else tuple(found)


def _commands(choices: Choices, job: Scenario, user: Scenario, layout: Layout) -> tuple[AnyCommand, ...]:
    """The third's, whose resumes may be laid out anew later; at times nobody goes on, and somebody stops a job that
    nobody would have."""
    found: list[AnyCommand] = []
    for command in user.commands:
        plain = replace(command, parallelism={}, inserted={}) if isinstance(command, Resume) else command
        found.append(_at_home(choices, job, plain, layout))
    if found and isinstance(found[-1], Resume) and choices.percent(25):
        found.pop()
    if found or not choices.percent(40):
        return tuple(found)
    asked = at_some_time(choices, forecast(job.workload, job.topology, job.engine), share=(5, 110))
    stops = (StopWithSavepoint(trigger=asked), StopWithSavepoint(trigger=asked, drain=True), Cancel(trigger=asked))
    again = (Resume(trigger=AtTime(at_us=choices.pick(AFTER_US))),) if choices.percent(50) else ()
    return (choices.pick(stops), *again)


def _at_home(choices: Choices, job: Scenario, one: T, layout: Layout) -> T:
    """The same fault or command, at tasks and nodes that there are."""
    changes: dict[str, object] = {}
    if getattr(one, "task", None) not in (None, *layout.tasks):
        changes["task"] = choices.pick(layout.tasks)
    if hasattr(one, "node"):
        changes["node"] = one.node % job.engine.nodes
    trigger: AnyTrigger = one.trigger  # type: ignore[attr-defined]
    if getattr(trigger, "task", None) not in (None, *layout.tasks):
        changes["trigger"] = replace(trigger, task=choices.pick(layout.tasks))
    return replace(one, **changes)  # type: ignore[type-var]
