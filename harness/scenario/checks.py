"""What a scenario must be, beyond its schema, so that an engine can run it.

The schema knows kinds and types.  These checks are about meanings: names that are no paths, numbers within bounds,
targets and triggers that exist.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from ...faults import plan
from ...faults.plan import AnyTrigger, AtAim, AtPoint, AtRest, AtTime, InPhase
from ...faults.points import CONTROL_MESSAGES, COORDINATOR_POINTS, PHASES, POINTS
from ...properties.model.absent import laid_without, without
from ...properties.model.stages import COMMITTERS
from ...properties.model.workload import SINK, Filter, FlatMap, Map, Topology, Workload, problems
from ...properties.reconstruct.layouts import rescaled
from ...properties.semantics.user_functions import user_problems
from .bounds import HOUR_US, PARALLELISM_LIMIT, size_problems, work_problems
from .layout import Layout, layout_of_any_job, topologies_of
from .model import (
    AnyCommand,
    CopySnapshot,
    Engine,
    Fork,
    MoveSnapshot,
    OfASnapshot,
    Perturbation,
    Resume,
    Savepoint,
    Scenario,
    StopWithSavepoint,
    format_of,
    kind_of,
)
from .snapshots import CLAIMED
from .upgrades import absent_of, changeable, upgrade_problems

GUARANTEES = ("exactly-once", "at-least-once", "at-most-once")
SINKS = ("transactional", "idempotent", "plain")
COMMITTING = ("writer", "committer", "global")
ALIGNMENTS = ("aligned", "unaligned", "timeout", "in-turn")
SPILLING = ("at-once", "continuous", "buffer-timeout")
SPILL_STORES = ("log", "files")
STATE_BACKENDS = ("heap", "lsm")
SNAPSHOT_MODES = ("asynchronous", "synchronous")
SNAPSHOT_STORES = ("files", "memory")
SNAPSHOT_FORMATS = ("canonical", "native", "incremental")
CLAIM_MODES = tuple(CLAIMED)
SAVEPOINTS = ("snapshots", "never-restored", "without-side-effects")
FINISHING = ("together", "one-by-one", "commit-at-finish", "discard-at-finish", "drain-after-savepoint")
FAILOVERS = ("full", "region", "local")
ANY_SNAPSHOT = ("each", "newest", "oldest")
"""the words that stand for retained snapshots without a name; only a fork takes each of them"""
WRITE_FAILURES = ("write", "delete-file", "delete-record", "copy-file", "copy-record")
TEARS = ("torn", "lost-link", "copy")
COMMIT_FAILURES = ("refused", "unavailable", "lost-response", "expired")

TAG_BITS = 40
_INT64 = range(-(2**63), 2**63)
_BYTES_AT_MOST = 2**31 - 1
_PROCESSES_AT_MOST = 1_000

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_LABEL = re.compile(r"[A-Za-z0-9 _.,:;=()+'#-]{0,200}")
"""A label is free text for people; it has no slash either, so that it is never a path."""


def problems_of(scenario: Scenario) -> Iterator[str]:
    """What is wrong with a scenario, in words; empty if an engine can run it."""
    for find in (
        size_problems,
        _numbers,
        _names,
        _sizes,
        _workload,
        _engine,
        _resumes,
        upgrade_problems,
        _forks,
        work_problems,
    ):
        found = list(find(scenario))
        if found:
            yield from found
            return
    layout = layout_of_any_job(scenario)
    for index, fault in enumerate(scenario.faults):
        where = f"fault {index} ({plan.kind_of(fault)})"
        if isinstance(fault.trigger, AtRest):
            yield f"{where}: a run at rest has ended, and no fault can act on it"
        yield from (f"{where}: {problem}" for problem in _fault(fault, scenario, layout))
    for index, command in enumerate(scenario.commands):
        where = f"command {index} ({kind_of(command)})"
        yield from (f"{where}: {problem}" for problem in _trigger(command.trigger, layout))
        yield from (f"{where}: {problem}" for problem in _snapshot(command, scenario))
        if format_of(command) and format_of(command) not in SNAPSHOT_FORMATS:
            yield f"{where}: the format is {format_of(command)!r}; it can be {', '.join(SNAPSHOT_FORMATS)}"
        if isinstance(command, Resume) and not isinstance(command.trigger, AtTime):
            yield f"{where}: a resume is triggered by a time, which counts from the end of the job"
        if isinstance(command, Resume):
            yield from (f"{where}: {problem}" for problem in _claim(command, scenario))
        if isinstance(command.trigger, AtRest) and not isinstance(command, Fork):
            yield f"{where}: a run at rest has ended, and only a fork can begin then"
    for index, perturbation in enumerate(scenario.deviations):
        yield from (f"schedule perturbation {index}: {problem}" for problem in _perturbation(perturbation, layout))


def _resumes(scenario: Scenario) -> Iterator[str]:
    """What is wrong with the layouts of the jobs that are resumed."""
    topology, jobs = scenario.topology, iter(absent_of(scenario)[1:])
    for index, command in enumerate(scenario.commands):
        if isinstance(command, Resume):
            where = f"command {index} (resume)"
            yield from (f"{where}: {problem}" for problem in _inserted(scenario, command))
            found = list(_rescaled(scenario, topology, command.parallelism, next(jobs)))
            if found:
                yield from (f"{where}: {problem}" for problem in found)
                return
            topology = rescaled(topology, command.parallelism)


def _forks(scenario: Scenario) -> Iterator[str]:
    """What is wrong with the layouts of the jobs that are forked: a fork may come at any of the jobs."""
    for index, command in enumerate(scenario.commands):
        if isinstance(command, Fork):
            jobs = zip(topologies_of(scenario), absent_of(scenario), strict=True)
            found = (_rescaled(scenario, topology, command.parallelism, absent) for topology, absent in jobs)
            problems_found = dict.fromkeys(problem for each in found for problem in each)
            yield from (f"command {index} (fork): {problem}" for problem in problems_found)
            if command.by_reference and scenario.engine.snapshot_store == "memory":
                yield f"command {index} (fork): by_reference: snapshots in memory have no files to refer to"


def _rescaled(
    scenario: Scenario, topology: Topology, parallelism: Mapping[str, int], absent: Collection[str]
) -> Iterator[str]:
    """What is wrong with a topology after it is rescaled.  The nodes that the job lacks count too: a later job, which
    has them, is as parallel."""
    most = min(topology.key_groups, PARALLELISM_LIMIT)
    for name, number in parallelism.items():
        if name not in topology.parallelism:
            yield f"there is no operator {name!r}"
            return
        if not 1 <= number <= most:
            least = f"it can be 1 to {most}; there are {topology.key_groups} key groups"
            yield f"{name} cannot have a parallelism of {number}; {least}"
            return
    found, advice = problems(scenario.workload, rescaled(topology, parallelism)), ""
    if found and all(name in changeable(scenario) for name in absent):
        laid = laid_without(rescaled(topology, parallelism), absent)
        if not problems(without(scenario.workload, absent), laid):
            advice = (
                f", which counts though the job lacks {', '.join(absent)}: rescale what forward edges join together"
            )
    yield from (f"{problem}{advice}" for problem in found)


def _snapshot(command: AnyCommand, scenario: Scenario) -> Iterator[str]:
    """What is wrong with the name of a savepoint, or with the snapshot that a resume or a fork names."""
    saved = [one.name for one in scenario.commands if isinstance(one, Savepoint | StopWithSavepoint) and one.name]
    if isinstance(command, Savepoint | StopWithSavepoint) and command.name:
        if not _NAME.fullmatch(command.name) or command.name in ANY_SNAPSHOT:
            taken = ", ".join(ANY_SNAPSHOT)
            yield f"{command.name!r} cannot be the name of a savepoint (letters, digits, - and _, none of {taken})"
        if saved.count(command.name) > 1:
            yield f"another savepoint has the name {command.name!r} too"
    elif isinstance(command, Resume) and command.snapshot != "newest" and scenario.engine.pooled_ids:
        yield "engine.pooled_ids: the store knows the last transaction of an id alone, and fits the newest snapshot"
    elif isinstance(command, OfASnapshot | Resume | Fork):
        if isinstance(command, CopySnapshot | MoveSnapshot) and scenario.engine.snapshot_store == "memory":
            yield "snapshots in memory have no files to copy"
        words = ANY_SNAPSHOT if isinstance(command, Fork) else ANY_SNAPSHOT[1:]
        if command.snapshot not in words and command.snapshot not in saved:
            yield f"snapshot is {command.snapshot!r}; it can be {', '.join(words)}, or the name of a savepoint"


def _claim(resume: Resume, scenario: Scenario) -> Iterator[str]:
    """What is wrong with what a resume says of its snapshot."""
    if resume.claim_mode not in CLAIM_MODES:
        yield f"claim_mode is {resume.claim_mode!r}; it can be {', '.join(CLAIM_MODES)}"
    elif resume.claim_mode != "by-kind" and scenario.engine.guarantee == "at-most-once":
        yield f"claim_mode {resume.claim_mode}: an at-most-once job restores no snapshot, and has nothing to claim"


def _inserted(scenario: Scenario, resume: Resume) -> Iterator[str]:
    """What is wrong with the operators that a resume inserts."""
    nodes = [*(node.name for node in scenario.workload.nodes), SINK]
    taken = [*scenario.topology.parallelism, *COMMITTERS]
    if resume.inserted and scenario.engine.guarantee == "at-most-once":
        yield "an at-most-once job restores no snapshot, so no new operator can be incompatible with one"
    for name, behind in resume.inserted.items():
        if not _NAME.fullmatch(name) or name in taken:
            yield f"{name!r} cannot be the name of a new operator (letters, digits, - and _, and of no other operator)"
        if behind not in nodes:
            yield f"{name} is to be inserted before {behind!r}, which is neither a node nor the sink"


def _numbers(scenario: Scenario) -> Iterator[str]:
    for where, number in _integers(msgspec.to_builtins(scenario), "$"):
        if number not in _INT64:
            yield f"{where} does not fit into 64 bits"


def _integers(value: Any, where: str) -> Iterator[tuple[str, int]]:
    if isinstance(value, int):
        yield where, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _integers(inner, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _integers(inner, f"{where}[{index}]")


def _names(scenario: Scenario) -> Iterator[str]:
    workload = scenario.workload
    for name in [source.name for source in workload.inputs] + [node.name for node in workload.nodes]:
        if not _NAME.fullmatch(name):
            yield f"{name!r} is no name for an input or a node (letters, digits, - and _)"
        if name in COMMITTERS:
            yield f"the name {name!r} is reserved for a stage behind the sink"
    labels = {"name": scenario.name, "workload": workload.name, "defect": scenario.defect}
    labels |= {"seed": scenario.seed, "expects": scenario.expects, "query": workload.query or ""}
    for what, label in labels.items():
        if not _LABEL.fullmatch(label) or ".." in label:
            yield f"{label!r} cannot be its {what} (plain text without slashes)"


def _sizes(scenario: Scenario) -> Iterator[str]:
    tags: set[int] = set()
    for split, _, records in scenario.workload.splits():
        for offset, (_, _, tag) in enumerate(records):
            if not abs(tag) < 1 << TAG_BITS:
                yield f"the tag of record {offset} of split {split} is not within -2^{TAG_BITS} and 2^{TAG_BITS}"
            if tag in tags:
                yield f"record {offset} of split {split} has the tag of another record, {tag}"
            tags.add(tag)
    for node in scenario.workload.nodes:
        match node.operator:
            case Filter(modulus=modulus) if modulus < 1:
                yield f"{node.name}: a modulus of {modulus}; it can be 1 or more"
            case FlatMap(fan=fan) if not 0 <= fan <= 255:
                yield f"{node.name}: a fan of {fan}; it can be 0 to 255"
            case Map(rekey=int(rekey)) if rekey < 1:
                yield f"{node.name}: keys modulo {rekey}; it can be 1 or more"
            case _:
                pass


def _workload(scenario: Scenario) -> Iterator[str]:
    workload: Workload = scenario.workload
    topology: Topology = scenario.topology
    yield from problems(workload, topology)
    if workload.query and not scenario.pipeline:
        yield "workload.query: only a scenario of a pipeline has one, whose file has the text"
    yield from user_problems(workload)
    if not 1 <= topology.key_groups <= 32_768:
        yield f"{topology.key_groups} key groups; there can be 1 to 32,768"
    for name, parallelism in topology.parallelism.items():
        if parallelism > PARALLELISM_LIMIT:
            yield f"{name} has a parallelism of {parallelism}; the limit is {PARALLELISM_LIMIT}"


def _engine(scenario: Scenario) -> Iterator[str]:
    engine = scenario.engine
    choices = {
        "guarantee": (engine.guarantee, GUARANTEES),
        "sink": (engine.sink, SINKS),
        "committing": (engine.committing, COMMITTING),
        "alignment": (engine.alignment, ALIGNMENTS),
        "spilling": (engine.spilling, SPILLING),
        "spill_store": (engine.spill_store, SPILL_STORES),
        "state_backend": (engine.state_backend, STATE_BACKENDS),
        "snapshot_mode": (engine.snapshot_mode, SNAPSHOT_MODES),
        "snapshot_store": (engine.snapshot_store, SNAPSHOT_STORES),
        "snapshot_format": (engine.snapshot_format, SNAPSHOT_FORMATS),
        "finishing": (engine.finishing, FINISHING),
        "savepoints": (engine.savepoints, SAVEPOINTS),
        "failover": (engine.failover, FAILOVERS),
    }
    for field, (value, allowed) in choices.items():
        if value not in allowed:
            yield f"engine.{field} is {value!r}; it can be {', '.join(allowed)}"
    if engine.alignment != "aligned" and engine.guarantee != "exactly-once":
        yield f"engine.alignment {engine.alignment} is for exactly-once: {engine.guarantee} blocks no channel"
    named = (engine.snapshot_format, *(format_of(command) for command in scenario.commands))
    if engine.snapshot_store == "memory" and any(name in ("native", "incremental") for name in named):
        yield "engine.snapshot_store memory has no files: its snapshots are canonical, not native or incremental"
    if engine.compaction_files < 2:
        yield f"engine.compaction_files is {engine.compaction_files}; a compaction merges at least 2 files"
    if engine.spill_after_us < 1:
        yield f"engine.spill_after_us is {engine.spill_after_us}; an element waits at least 1 µs before it is spilled"
    if engine.alignment_timeout_us < 1:
        yield f"engine.alignment_timeout_us is {engine.alignment_timeout_us}; a barrier waits at least 1 µs"
    forgetful = [source.name for source in scenario.workload.inputs if not source.rewindable]
    if forgetful and engine.guarantee != "at-most-once":
        yield (
            f"{', '.join(forgetful)} cannot rewind, so {engine.guarantee} cannot be kept: "
            "use a source that can, or lower engine.guarantee to at-most-once"
        )
    if engine.guarantee == "at-most-once" and engine.sink != "plain":
        yield "engine.guarantee at-most-once takes no checkpoints, so nothing would ever commit: it needs a plain sink"
    bounded = [source.bounded for source in scenario.workload.inputs]
    if not engine.checkpoints_after_finish and any(bounded) and not all(bounded):
        yield (
            "engine.checkpoints_after_finish false needs inputs that are all bounded, or all unbounded: behind the end "
            "of one no checkpoint is taken, and the others never end"
        )
    if engine.finishing == "one-by-one" and not engine.checkpoints_after_finish:
        yield "engine.finishing one-by-one needs checkpoints after some input has ended: each task waits for one"
    if engine.savepoints != "snapshots" and engine.failover != "full":
        yield (
            f"engine.savepoints {engine.savepoints} needs engine.failover full: tasks that recover in part go on from "
            "the newest snapshot, savepoint or not"
        )
    if engine.committing != "writer" and (engine.sink != "transactional" or engine.finishing != "together"):
        yield (
            f"engine.committing {engine.committing} needs a transactional sink whose last transactions are committed "
            "with the final checkpoint: engine.finishing together"
        )
    if engine.pooled_ids and (engine.sink != "transactional" or engine.committing != "writer"):
        yield "engine.pooled_ids: only a transactional sink that commits itself knows which ids are free"
    unchanged = [node.name for node in scenario.workload.nodes if node.operator == Map()]
    for name in engine.two_phase:
        if name not in unchanged:
            yield f"engine.two_phase: {name} is no map that changes nothing"
    for field in Engine.__struct_fields__:
        value = getattr(engine, field)
        if not isinstance(value, int):
            continue
        least = 1 if field in _AT_LEAST_ONE else 0
        if not least <= value <= HOUR_US:
            yield f"engine.{field} is {value}; it can be {least} to {HOUR_US}"


_AT_LEAST_ONE = frozenset(
    {
        "checkpoint_interval_us",
        "checkpoint_timeout_us",
        "concurrent_checkpoints",
        "retained_checkpoints",
        "full_every",
        "channel_capacity",
        "nodes",
        "memtable_entries",
    }
)


def _trigger(trigger: AnyTrigger, layout: Layout) -> Iterator[str]:
    match trigger:
        case AtTime(at_us=at_us):
            yield from _time("at_us", at_us)
        case AtPoint(point=point, occurrence=occurrence, task=task, side=side):
            if point not in POINTS:
                yield f"an unknown point {point!r}"
            if side not in ("before", "after"):
                yield f"it is {side!r} the point; it can be before or after"
            yield from _occurrence(occurrence)
            yield from _task(task, layout)
            if point in COORDINATOR_POINTS and task is not None:
                yield f"{point} is a point of the coordinator, and {task} never reaches it"
        case InPhase(phase=phase, occurrence=occurrence, after_us=after_us):
            if phase not in PHASES:
                yield f"an unknown phase {phase!r}"
            yield from _occurrence(occurrence)
            yield from _time("after_us", after_us)
        case AtAim(occurrence=occurrence, after_us=after_us):
            yield from _occurrence(occurrence)
            yield from _time("after_us", after_us)


def _nodes(scenario: Scenario) -> int:
    """How many nodes a fault may hit at most.  A pipeline's are its processes, which only its own file has."""
    return scenario.engine.nodes if isinstance(scenario.pipeline, msgspec.UnsetType) else _PROCESSES_AT_MOST


def _fault(fault: plan.AnyFault, scenario: Scenario, layout: Layout) -> Iterator[str]:
    yield from _trigger(fault.trigger, layout)
    for field in ("for_us", "by_us", "after_us", "down_us"):
        yield from _time(field, getattr(fault, field, 0))
    yield from _task(getattr(fault, "task", None), layout)
    nodes = _nodes(scenario)
    match fault:
        case plan.KillNode(node=node) | plan.LoseUnsynced(node=node) | plan.PauseNode(node=node):
            if not 0 <= node < nodes:
                yield f"there is no node {node}; the nodes are 0 to {nodes - 1}"
        case plan.ChannelFault(sender=sender, receiver=receiver):
            if not scenario.pipeline:  # a pipeline's are its proxies, which only its own file has
                yield from _channel(fault, sender, receiver, layout)
            yield from _bytes(fault)
        case plan.MessageFault(message=message):
            if message not in CONTROL_MESSAGES:
                yield f"an unknown control message {message!r}"
        case plan.FailCommit(how=how, times=times):
            if how not in COMMIT_FAILURES:
                yield f"how is {how!r}; it can be {', '.join(COMMIT_FAILURES)}"
            if not 1 <= times <= 1_000:
                yield f"times is {times}; it can be 1 to 1000"
        case plan.FailWrite(what=what, task=task):
            if what not in WRITE_FAILURES:
                yield f"what is {what!r}; it can be {', '.join(WRITE_FAILURES)}"
            elif what != "write" and task is not None:
                who = "the coordinator that copies" if what.startswith("copy") else "the coordinator that deletes"
                yield f"task is {task!r}, but it is {who}: leave task out, or set it to null"
        case plan.TearWrite(how=how, task=task):
            if how not in TEARS:
                yield f"how is {how!r}; it can be {', '.join(TEARS)}"
            elif how == "lost-link" and task is None:
                yield "a lost link is of a task's snapshot: name the task"
            elif how == "copy" and task is not None:
                yield f"task is {task!r}, but it is the coordinator that copies: leave task out, or set it to null"
        case _:
            pass


def _channel(fault: plan.ChannelFault, sender: str, receiver: str, layout: Layout) -> Iterator[str]:
    if (sender, receiver) not in layout.channels:
        yield f"there is no channel {sender}>{receiver}"
    if isinstance(fault, plan.CutChannel) and fault.for_us:
        yield "for_us: only the proxies of a pipeline refuse connections for a time"


def _bytes(fault: plan.ChannelFault) -> Iterator[str]:
    """Sizes of bytes as a proxy takes them: 31 bits; a piece has at least one byte."""
    match fault:
        case plan.SliceChannel(size=size) if not 1 <= size <= _BYTES_AT_MOST:
            yield f"size is {size}; it can be 1 to {_BYTES_AT_MOST} bytes"
        case plan.LimitChannel(bytes=limit) if not 0 <= limit <= _BYTES_AT_MOST:
            yield f"bytes is {limit}; it can be 0 to {_BYTES_AT_MOST}"
        case _:
            pass


def _perturbation(perturbation: Perturbation, layout: Layout) -> Iterator[str]:
    yield from _occurrence(perturbation.occurrence)
    yield from _time("by_us", perturbation.by_us)
    channels = {f"{sender}>{receiver}" for sender, receiver in layout.channels}
    match perturbation.what.split(" "):
        case ["message", channel] if channel in channels:
            pass
        case ["control", kind, task] if kind in CONTROL_MESSAGES and task in layout.tasks:
            pass
        case ["write" | "read" | "step" | "transaction" | "compaction", task] if task in layout.tasks:
            pass
        case ["write", "coordinator"]:
            pass
        case _:
            what = perturbation.what
            kinds = "message, control message, write, read, step, transaction or compaction"
            yield f"{what!r} names no {kinds} of this job"


def _task(task: str | None, layout: Layout) -> Iterator[str]:
    if task is not None and task not in layout.tasks:
        yield f"there is no task {task!r}"


def _occurrence(occurrence: int) -> Iterator[str]:
    if not 1 <= occurrence <= 1_000_000:
        yield f"occurrence {occurrence}; they count from 1"


def _time(field: str, time_us: int) -> Iterator[str]:
    if not 0 <= time_us <= HOUR_US:
        yield f"{field} is {time_us}; it can be 0 to {HOUR_US}"
