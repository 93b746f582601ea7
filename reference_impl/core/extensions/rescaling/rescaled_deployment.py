"""Deploying tasks from a snapshot whose states they share: of another parallelism, or of unions (OPS-2).

The coordinator's part of rescaling.  What a task then takes of the states is in rescale.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ...job.topology import JobGraph
from ...vocabulary.effects import Effect, SendToTask
from ...vocabulary.events import CompletedCheckpoint
from ...vocabulary.ids import AttemptId, TaskId
from ...vocabulary.messages import Deploy, Piece
from ...vocabulary.state import TaskState


def deployment_from(
    graph: JobGraph,
    old: JobGraph,
    tasks: Sequence[TaskId],
    attempt: AttemptId,
    job: int,
    restores: CompletedCheckpoint,
    finished: Sequence[TaskId],
    in_flight: bool,
) -> list[Effect]:
    """The orders that deploy tasks of a graph from a snapshot of its `old` layout.  Each reads the states of its
    operator's old subtasks and, where data may have been `in_flight`, of the old subtasks that sent to it.  Tasks of a
    finished operator start as finished."""
    pieces = pieces_of(old, restores)
    orders: list[Effect] = []
    for task in tasks:
        deploy = Deploy(job=job, attempt=attempt, checkpoint=restores.checkpoint, finished=task in finished)
        if not deploy.finished:
            operator = graph.operator_of(task).name
            senders = _senders(old, operator, pieces) if in_flight else ()
            deploy = msgspec.structs.replace(deploy, pieces=pieces[operator], senders=senders)
        orders.append(SendToTask(task, deploy))
    return orders


def _senders(old: JobGraph, operator: str, pieces: Mapping[str, tuple[Piece, ...]]) -> tuple[tuple[Piece, ...], ...]:
    """By input of an operator: the pieces of the sending operator; none if that had finished."""
    spec = old.spec(operator)
    if not spec.inputs or not old.overtaken(spec):
        return ()
    return tuple(tuple(_or_nothing(piece) for piece in pieces[edge.sender]) for edge in spec.inputs)


def _or_nothing(piece: Piece) -> Piece:
    there = piece.handle is not None or piece.state is not None
    return piece if there else msgspec.structs.replace(piece, state=TaskState())


def pieces_of(old: JobGraph, restores: CompletedCheckpoint) -> dict[str, tuple[Piece, ...]]:
    """By operator: what its subtasks left in a snapshot of this layout."""
    gates: dict[TaskId, tuple[int, ...]] = {}
    for wire in old.wires():
        gates[wire.receiver] = (*gates.get(wire.receiver, ()), wire.gate)
    pieces: dict[str, tuple[Piece, ...]] = {}
    for task, spec, _ in old.tasks():
        piece = Piece(
            handle=None if task in restores.states else restores.handles.get(task),
            state=restores.states.get(task),
            gates=gates.get(task, ()),
            finished=task in restores.finished,
        )
        pieces[spec.name] = (*pieces.get(spec.name, ()), piece)
    return pieces


def with_unions(graph: JobGraph, orders: Sequence[Effect], restores: CompletedCheckpoint | None) -> list[Effect]:
    """The orders to deploy tasks at an unchanged parallelism; those with a union get the old states of all subtasks."""
    if restores is None or not any(spec.shares for spec in graph.operators):
        return list(orders)
    pieces = pieces_of(graph, restores)
    rescaled: list[Effect] = []
    for order in orders:
        if isinstance(order, SendToTask) and isinstance(order.message, Deploy):
            message, operator = order.message, graph.operator_of(order.task)
            if operator.shares:
                remaining = () if message.finished else pieces[operator.name]
                order = SendToTask(order.task, msgspec.structs.replace(message, pieces=remaining))
        rescaled.append(order)
    return rescaled
