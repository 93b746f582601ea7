"""Scenarios crossed from three others: the job of one, the faults of a second, the commands of a third.

A template draws things that belong together, so some combinations occur in none: a kill, then a stop without a resume,
with a sink whose rows are visible at once.  Here guarantee, sink, alignment and store are drawn again too, and so is
failover by region, if there are several regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint, AtTime, kind_of
from ....properties.semantics.classes import last_row_is_fixed
from ...scenario.forecast import Forecast, forecast
from ...scenario.layout import Layout, layout_of, layout_of_any_job
from ...scenario.model import AnyCommand, Cancel, Command, Engine, Resume, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import alignments, promising, spilled, with_enough_time
from ..stage import Frame, Template, has_regions
from .draw_faults import at_some_time, possible

CROSSED = "crossed"
PAIRS = (
    ("exactly-once", "transactional"),
    ("exactly-once", "plain"),
    ("exactly-once", "idempotent"),
    ("at-least-once", "plain"),
    ("at-least-once", "transactional"),
    ("at-most-once", "plain"),
)
"""guarantee and sink, when they are drawn again; in other scenarios most have the first pair"""
AFTER_US = (1_000, 0, 5_000)
T = TypeVar("T", bound=plan.Fault | Command)


def crossing_of(templates: Sequence[Template]) -> Template:
    """A template that draws three scenarios from these templates and crosses them."""

    def cross(choices: Choices, frame: Frame) -> Scenario:
        job, trouble, user = (choices.pick(templates)(choices, frame) for _ in range(3))
        target = with_enough_time(forecast(job.workload, job.topology, _engine(choices, frame, job)))
        faults = _faults(choices, target, job, trouble)[: max(1, frame.max_faults)]
        commands = _commands(choices, target, user)
        engine = target.engine
        if any(isinstance(one, Resume) and one.snapshot != "newest" for one in commands):
            engine = replace(engine, pooled_ids=False)  # its store would not fit an older snapshot
        crossed = replace(job, name=CROSSED, engine=engine, faults=(), commands=commands, deviations=())
        return replace(crossed, faults=tuple(_on_its_channels(faults, crossed)))

    return cross


# -- the engine ----------------------------------------------------------------------


def _engine(choices: Choices, frame: Frame, job: Scenario) -> Engine:
    """The job's engine, mostly with another guarantee or sink, at times with another store or failover."""
    engine = job.engine
    pairs = _pairs(frame, job)
    if pairs and choices.percent(60):
        guarantee, sink = choices.pick(pairs)
        engine = promising(engine, guarantee, sink)
    if choices.percent(30):
        alignment = choices.pick(alignments(engine.guarantee, job.workload))
        engine = spilled(choices, replace(engine, alignment=alignment, spilling="at-once"))
    if choices.percent(10):
        in_memory = engine.snapshot_store == "files"
        engine = replace(engine, snapshot_store="memory" if in_memory else "files")
        if in_memory:  # there are no files, which the other formats need
            engine = replace(engine, snapshot_format="canonical")
    if engine != job.engine and engine.failover == "local":  # few settings allow local recovery
        return replace(engine, failover="full")
    if has_regions(job.topology) and engine.failover != "local" and choices.percent(30):
        return replace(engine, failover="region" if engine.failover == "full" else "full")
    return engine


def _pairs(frame: Frame, job: Scenario) -> list[tuple[str, str]]:
    """The pairs that the subject has and that are right for the job: an idempotent sink needs one right last row a key,
    enumerators need state."""
    fixed = last_row_is_fixed(job.workload, job.topology)
    stateless = not any(source.assignment == "enumerated" for source in job.workload.inputs)
    return [
        (guarantee, sink)
        for guarantee, sink in PAIRS
        if guarantee in frame.guarantees and sink in frame.sinks
        if sink != "idempotent" or fixed
        if guarantee != "at-most-once" or stateless
    ]


# -- what goes wrong, and what users ask ---------------------------------------------


def _on_its_channels(faults: Sequence[AnyFault], crossed: Scenario) -> Iterator[AnyFault]:
    """The faults without those on channels that no job of the crossed scenario has: it may have lost its committers,
    and the resumes that rescaled it."""
    channels = layout_of_any_job(crossed).channels
    for fault in faults:
        if not isinstance(fault, plan.ChannelFault) or (fault.sender, fault.receiver) in channels:
            yield fault


def _faults(choices: Choices, target: Forecast, job: Scenario, trouble: Scenario) -> tuple[AnyFault, ...]:
    """The faults of the second scenario but those on channels, at times with a kill, at times with the first's."""
    there, own = _layout(trouble), _layout(job)
    struck = [fault for fault in trouble.faults if not isinstance(fault, plan.ChannelFault)]
    found: list[AnyFault] = [_at_home(choices, target, fault, there) for fault in struck]
    found += [_at_home(choices, target, fault, own) for fault in job.faults] if choices.percent(50) else []
    found = [fault for fault in found if possible(kind_of(fault), target)]
    if not found or choices.percent(30):
        found.insert(0, plan.KillTask(trigger=at_some_time(choices, target), task=choices.pick(target.layout.tasks)))
    return tuple(found)


def _commands(choices: Choices, target: Forecast, user: Scenario) -> tuple[AnyCommand, ...]:
    """The commands of the third scenario, whose resumes may be rescaled later.  At times the resumes are left out, and
    at times a job without a stop is stopped."""
    found: list[AnyCommand] = []
    there = _layout(user)
    for command in user.commands:
        plain = replace(command, parallelism={}, inserted={}, upgrade=UNSET) if isinstance(command, Resume) else command
        found.append(_at_home(choices, target, plain, there))
    if found and isinstance(found[-1], Resume) and choices.percent(25):
        found.pop()
    if found or not choices.percent(40):
        return tuple(found)
    asked = at_some_time(choices, target, share=(5, 110))
    stops = (StopWithSavepoint(trigger=asked), StopWithSavepoint(trigger=asked, drain=True), Cancel(trigger=asked))
    again = (Resume(trigger=AtTime(at_us=choices.pick(AFTER_US))),) if choices.percent(50) else ()
    return (choices.pick(stops), *again)


def _layout(scenario: Scenario) -> Layout:
    return layout_of(scenario.workload, scenario.topology, scenario.engine.committing)


def _at_home(choices: Choices, target: Forecast, one: T, abroad: Layout) -> T:
    """A fault or command of a job with the layout `abroad`, retargeted to tasks and nodes of this job."""
    changes: dict[str, object] = {}
    if isinstance(one, plan.FailCommit):
        changes["task"] = one.task if one.task in target.layout.committing else None
    elif task := getattr(one, "task", None):
        changes["task"] = _like(choices, task, abroad, target.layout)
    if isinstance(one, plan.KillNode | plan.LoseUnsynced | plan.PauseNode):
        changes["node"] = one.node % target.engine.nodes
    if isinstance(one.trigger, AtPoint) and one.trigger.task is not None:
        task = _like(choices, one.trigger.task, abroad, target.layout)
        changes["trigger"] = replace(one.trigger, task=task)
    return replace(one, **changes)


def _like(choices: Choices, task: str, abroad: Layout, here: Layout) -> str:
    """The task of that name here, else a task of the same role, else any task."""
    if task in here.tasks:
        return task
    for there, peers in zip(_roles(abroad), _roles(here), strict=True):
        if task in there and peers:
            return choices.pick(peers)
    return choices.pick(here.tasks)


def _roles(layout: Layout) -> tuple[tuple[str, ...], ...]:
    return layout.sources, layout.operators, layout.sinks, layout.committers
