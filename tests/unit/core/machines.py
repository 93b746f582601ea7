"""Single tasks to step by hand, and short words for what comes in and goes out."""

from __future__ import annotations

from typing import Any, TypeVar

from cutproof.reference_impl.core.backends.heap import HeapState
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.decisions.tasks import Copying
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.extensions.sinks.direct_sink import Identity
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.routing import Output
from cutproof.reference_impl.core.job.split_log import SplitLog
from cutproof.reference_impl.core.job.task_spec import TaskSpec
from cutproof.reference_impl.core.operators.operators import Map, Operator
from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.protocol.source import SourceTask
from cutproof.reference_impl.core.protocol.task import Task
from cutproof.reference_impl.core.vocabulary.causes import WhyDeclined
from cutproof.reference_impl.core.vocabulary.effects import Effect, Fail, Open, Report, Send, Transact
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.events import Answered, Arrived, Received
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import (
    Abort,
    Ack,
    Barrier,
    CancelBarrier,
    Complete,
    Decline,
    Deploy,
    Element,
    EndOfData,
    EndOfPartition,
    Finished,
    InputEnded,
    Record,
    Running,
    Terminate,
    Trigger,
)
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.transactions import AnyRequest, Denied, Done, NoAnswer
from cutproof.reference_impl.core.vocabulary.views import Entry

T = TypeVar("T")
AnyTask = TypeVar("AnyTask", bound=Task)
AnyOperator = TypeVar("AnyOperator", bound=Operator)

ATTEMPT = AttemptId(3)
RETRY_US = Config().retry_us


def row(key: int | None, value: int | None, tag: int = 0, origin: int = 0, tag2: int = 0) -> Record:
    return Record(key, value, tag, tag2, origin)


def spec(task: str, *, gates: tuple[int, ...] = (), outputs: tuple[Output, ...] = ()) -> TaskSpec:
    return TaskSpec(task=TaskId(task), job=1, attempt=ATTEMPT, gates=gates, outputs=outputs)


def opened(operator: AnyOperator) -> AnyOperator:
    """The operator with an empty state, on the heap."""
    operator.state = HeapState(operator.layout, Copying())
    return operator


def entries_of(operator: Operator) -> list[Entry]:
    """The entries of an operator's state."""
    return operator.state.snapshot().entries()


def output(partitioning: str, *channels: int) -> Output:
    return Output(partitioning=partitioning, channels=channels)


ONE_OUT = (output("forward", 0),)


def build(**config: Any) -> TaskBuilder:
    """Creates tasks of a job with these settings."""
    return TaskBuilder(Config(**config), Parts())


def work(task: InputTask) -> Any:
    """What the task does with its input, whatever that is."""
    return task.work


def source(
    *splits: int,
    bounded: bool = True,
    outputs: tuple[Output, ...] = ONE_OUT,
    parts: Parts | None = None,
    **config: Any,
) -> SourceTask:
    """A source of splits with so many records each: offset n of split s is (n, 10 s + n, tag 100 s + n)."""
    logs = [
        SplitLog(split=split, records=[(n, 10 * split + n, 100 * split + n) for n in range(length)])
        for split, length in enumerate(splits)
    ]
    return TaskBuilder(Config(**config), parts or Parts()).source(spec("source-0", outputs=outputs), logs, bounded)


def operator(
    inner: Operator | None = None, *, inputs: int = 1, outputs: tuple[Output, ...] = ONE_OUT, **config: Any
) -> InputTask:
    described = spec("op-0", gates=tuple(range(inputs)), outputs=outputs)
    return build(**config).operator(described, inner or Map(lambda key, value: (key, value)))


def transactional(inputs: int = 1, **config: Any) -> InputTask:
    return build(**config).transactional_sink(spec("sink-0", gates=(0,) * inputs))


def direct(identity: Identity | None = None, **config: Any) -> InputTask:
    return build(sink="plain", **config).direct_sink(spec("sink-0", gates=(0,)), identity)


def up(task: AnyTask, state: TaskState | None = None, checkpoint: int | None = None) -> AnyTask:
    """Deployed, restored and running; its start-up effects are dropped."""
    effects = deliver(task, deploy(state=state, checkpoint=checkpoint))
    for number, _ in requests(effects):
        answered(task, number)
    assert task.has_started
    return task


# -- what comes in ---------------------------------------------------------------------------------------------


def deliver(task: Task, message: Any) -> list[Effect]:
    return task.step(Received(message))


def take(task: Task, element: Element, channel: int = 0) -> list[Effect]:
    return task.step(Arrived(channel, element))


def answered(task: Task, number: int, outcome: Done | Denied | NoAnswer | None = None) -> list[Effect]:
    return task.step(Answered(number, outcome or Done()))


def deploy(state: TaskState | None = None, checkpoint: int | None = None, **more: Any) -> Deploy:
    return Deploy(job=1, attempt=ATTEMPT, checkpoint=checkpoint, state=state, **more)


def trigger(checkpoint: int, ending: JobEnd | None = None) -> Trigger:
    return Trigger(job=1, attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint), ending=ending)


def complete(checkpoint: int) -> Complete:
    return Complete(job=1, attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint))


def abort(checkpoint: int) -> Abort:
    return Abort(job=1, attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint))


def terminate(checkpoint: int | None) -> Terminate:
    return Terminate(job=1, attempt=ATTEMPT, checkpoint=CheckpointId(checkpoint) if checkpoint else None)


def barrier(checkpoint: int) -> Barrier:
    return Barrier(CheckpointId(checkpoint))


def cancelled(checkpoint: int) -> CancelBarrier:
    return CancelBarrier(CheckpointId(checkpoint))


# -- what goes out ---------------------------------------------------------------------------------------------


def handle(task: str, checkpoint: int) -> Handle:
    return Handle(f"job-1/chk-{checkpoint}/{task}-{ATTEMPT}")


def ack(task: str, checkpoint: int, *, ended: bool = False) -> Report:
    return Report(
        Ack(
            job=1,
            attempt=ATTEMPT,
            task=TaskId(task),
            checkpoint=CheckpointId(checkpoint),
            handle=handle(task, checkpoint),
            ended=ended,
        )
    )


def decline(task: str, checkpoint: int, cause: WhyDeclined) -> Report:
    return Report(Decline(job=1, attempt=ATTEMPT, task=TaskId(task), checkpoint=CheckpointId(checkpoint), cause=cause))


def running(task: str) -> list[Effect]:
    """What a task says and does when it is restored."""
    return [Open(), Report(Running(job=1, attempt=ATTEMPT, task=TaskId(task)))]


def ended(task: str) -> Report:
    return Report(InputEnded(job=1, attempt=ATTEMPT, task=TaskId(task)))


def finished(task: str) -> list[Effect]:
    return [Report(Finished(job=1, attempt=ATTEMPT, task=TaskId(task)))]


def sent(effects: list[Effect]) -> list[tuple[int, Element]]:
    """(channel, element) of everything sent, in order."""
    return [(effect.channel, effect.element) for effect in effects if isinstance(effect, Send)]


def requests(effects: list[Effect]) -> list[tuple[int, AnyRequest]]:
    """(number, request) of everything asked of the external store, in order."""
    return [(effect.number, effect.request) for effect in effects if isinstance(effect, Transact)]


def reason(effects: list[Effect]) -> str:
    """Why a task fails; it must be all that it does."""
    (effect,) = effects
    assert isinstance(effect, Fail)
    return str(effect.cause)


def only(kind: type[T], effects: list[Effect]) -> T:
    """The one effect of a kind."""
    (effect,) = [effect for effect in effects if isinstance(effect, kind)]
    return effect


END = EndOfData()
ENDED = EndOfPartition()
