"""Resumes that add operators to a job or remove some, and what becomes of states then (SNAP-5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ...faults.plan import AtTime, ChannelFault
from ...properties.model.upgrade import Upgrade
from ...properties.model.workload import (
    KEYED,
    SINK,
    AnyOperator,
    Count,
    Dedup,
    Edge,
    Filter,
    Map,
    Node,
    Sum,
    Workload,
    is_signed,
    problems,
)
from ...properties.semantics.classes import class_of
from ..scenario.model import AnyCommand, Fork, Resume, Scenario, StopWithSavepoint
from ..scenario.upgrades import BESIDE_CHANGES, changeable, is_refused, upgrade_of
from .choices import Choices

CHANGED_PERCENT = 60
"""the share of resumes from a savepoint that add or remove an operator, of the scenarios in which one can"""

NEW = "new"
"""the name of an operator that is added"""

OPERATORS: tuple[AnyOperator, ...] = (
    Count(),
    Map(multiply=2, add=1),
    Filter(modulus=3, drop=0),
    Sum(),
    Dedup(keys_only=True),
    Count(tagged=True),
)
"""what is added"""


def with_other_operators(choices: Choices, scenario: Scenario, *, percent: int = CHANGED_PERCENT) -> Scenario:
    """The scenario, at times with a resume whose job has an operator more, or one less, and at times with another that
    takes this back.

    At times a job comes first whose user does not allow that a state is dropped, or does not say that the new operator
    begins empty; it is refused.
    """
    engine = scenario.engine
    nodes = scenario.workload.nodes
    if engine.guarantee == "at-most-once" or engine.sink == "idempotent" or any(map(upgrade_of, scenario.commands)):
        return scenario
    if not all(isinstance(node.operator, BESIDE_CHANGES) and not is_signed(node.operator) for node in nodes):
        return scenario
    if any(source.times for source in scenario.workload.inputs):
        return scenario
    at = next((at for at, _ in enumerate(scenario.commands) if _may_change(scenario.commands, at)), None)
    if at is None or not choices.percent(percent):
        return scenario
    adds = choices.percent(50)
    grown = _with_another(choices, scenario) if adds else None
    if grown is not None:
        goes = changeable(scenario)
        gone = (choices.pick(goes),) if goes and choices.percent(25) else ()
        return replace(grown, commands=tuple(_commands(choices, grown, at, added=(NEW,), removed=gone)))
    removable = changeable(scenario)
    if not removable:
        return scenario
    return replace(scenario, commands=tuple(_commands(choices, scenario, at, removed=(choices.pick(removable),))))


def _may_change(commands: Sequence[AnyCommand], at: int) -> bool:
    """Whether a command resumes a job from the savepoint with which the one before was stopped."""
    one = commands[at]
    if not isinstance(one, Resume) or one.inserted or not at or one.snapshot != "newest":
        return False
    return isinstance(commands[at - 1], StopWithSavepoint)


def _commands(
    choices: Choices, scenario: Scenario, at: int, added: tuple[str, ...] = (), removed: tuple[str, ...] = ()
) -> list[AnyCommand]:
    """The commands, of which the one `at` changes the operators."""
    commands = list(scenario.commands)
    said = Upgrade(begin_empty=(*added, *removed), allow_non_restored_state=True)  # a snapshot may be an older one
    change = replace(said, added=added, removed=removed)
    back = replace(said, added=removed, removed=added)
    found = commands[:at]
    unsaid = replace(change, begin_empty=(), allow_non_restored_state=False)
    if is_refused(Resume(trigger=AtTime(at_us=1_000), upgrade=unsaid), scenario.workload) and choices.percent(30):
        found.append(Resume(trigger=AtTime(at_us=1_000), upgrade=unsaid))
    later = [number for number in range(at + 1, len(commands)) if _may_change(commands, number)]
    again = later[0] if later and choices.percent(60) else None
    for number, command in enumerate(commands[at:], at):
        if isinstance(command, Resume) and not command.inserted:
            command = replace(command, upgrade=change if number == at else back if number == again else said)
        found.append(command)
    return found


def _with_another(choices: Choices, scenario: Scenario) -> Scenario | None:
    """The scenario with one more node, which only later jobs have; None if none fits."""
    if NEW in scenario.topology.parallelism:
        return None
    grade = class_of(scenario.workload, scenario.topology)
    addressed = set(_addressed(scenario))
    places = [(edge, operator) for edge in scenario.topology.edges for operator in OPERATORS]
    fitting = [
        one
        for edge, operator in places
        if (edge.sender, edge.receiver) not in addressed
        and not problems((one := _grown(scenario, edge, operator)).workload, one.topology)
        and class_of(one.workload, one.topology) == grade  # in another, a history may not show which row went where
    ]
    return choices.pick(fitting) if fitting else None


def _addressed(scenario: Scenario) -> Iterator[tuple[str, ...]]:
    """The edges on whose channels a fault or a schedule perturbation is aimed, as (sender, receiver)."""
    ends = [(one.sender, one.receiver) for one in scenario.faults if isinstance(one, ChannelFault)]
    channels = (one.what.rpartition(" ")[2].split(">") for one in scenario.deviations)
    for tasks in (*ends, *channels):
        yield tuple(task.rpartition("-")[0] for task in tasks)


def _grown(scenario: Scenario, edge: Edge, operator: AnyOperator) -> Scenario:
    """The scenario with a new node on an edge of its topology."""
    topology = scenario.topology
    beside = edge.receiver if edge.partitioning == "forward" else edge.sender
    node = Node(name=NEW, operator=operator, inputs=(edge.sender,), later=True)
    before = "hash" if isinstance(operator, KEYED) else "forward"
    wider = replace(
        topology,
        parallelism={**topology.parallelism, NEW: topology.parallelism[beside]},
        edges=(
            *(one for one in topology.edges if one is not edge),
            Edge(sender=edge.sender, receiver=NEW, partitioning=before),
            Edge(sender=NEW, receiver=edge.receiver, partitioning=edge.partitioning),
        ),
    )
    commands = tuple(_as_wide(command, beside, NEW) for command in scenario.commands)
    workload = _put_in(scenario.workload, node, edge.receiver)
    return replace(scenario, workload=workload, topology=wider, commands=commands)


def _as_wide(command: AnyCommand, beside: str, name: str) -> AnyCommand:
    """The command with as many subtasks of a new operator as of the one beside it."""
    if isinstance(command, Resume | Fork) and beside in command.parallelism:
        return replace(command, parallelism={**command.parallelism, name: command.parallelism[beside]})
    return command


def _put_in(workload: Workload, node: Node, reader: str) -> Workload:
    """The workload with one more node in front of a reader, or of the sink."""
    nodes: list[Node] = []
    for one in workload.nodes:
        if one.name == reader:
            nodes.append(node)
            one = replace(one, inputs=tuple(node.name if name == node.inputs[0] else name for name in one.inputs))
        nodes.append(one)
    return replace(workload, nodes=(*nodes, node) if reader == SINK else tuple(nodes))
