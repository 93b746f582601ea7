"""Histories written by hand, for the tests of the report."""

from __future__ import annotations

from typing import Any

from cutproof.properties.model.history import (
    AttemptStarted,
    Completed,
    FaultFired,
    History,
    Loaded,
    Mark,
    Stored,
    TaskFailed,
    TaskRun,
    Timed,
)
from cutproof.properties.model.workload import origin_of
from cutproof.properties.spark.unasked import LOCAL_RECOVERY, NEITHER, NO_STATE, RESCALED
from cutproof.reports.model import (
    Asked,
    CheckpointCounts,
    CommandCounts,
    Counterexample,
    CounterexampleView,
    FaultCounts,
    InvariantCounts,
    OracleCounts,
    RecordCounts,
    ReportView,
    Samples,
    ScenarioCounts,
    Seconds,
    Size,
    Summary,
    ViolatedScenario,
)
from cutproof.reports.rows import side_by_side


class TimelineBuilder:
    """Tells what happened, one call an event, and keeps the books of a history."""

    def __init__(self, inputs: dict[str, list[str]]) -> None:
        self.clock = 0
        self.attempt = 1
        self.runs: list[TaskRun] = []
        self.history = History(subject="simulated", guarantee="exactly-once", sink="transactional", runs=self.runs)
        self._inputs = inputs
        self._sent: dict[str, int] = {}
        self._applied: dict[str, int] = {}

    def start(self, restores: int | None = None) -> None:
        self.history.journal.append(
            AttemptStarted(order=self.tick(), at_us=self.clock * 100, attempt=self.attempt, job=1, restores=restores)
        )
        self._sent, self._applied = {}, {}
        for task, senders in self._inputs.items():
            operator, _, subtask = task.rpartition("-")
            outputs = [f"{task}>{other}" for other, feeds in self._inputs.items() if task in feeds]
            run = TaskRun(
                task=task,
                operator=operator,
                subtask=int(subtask),
                attempt=self.attempt,
                job=1,
                started=self.tick(),
                inputs=[f"{sender}>{task}" for sender in senders],
                outputs=outputs,
            )
            if restores is not None:
                run.loaded = Loaded(checkpoint=restores, order=self.clock)
                self.add("state-loaded", task, checkpoint=restores)
            self.runs.append(run)

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def add(self, what: str, task: str, **more: Any) -> None:
        order = self.tick()
        self.history.timeline.append(
            Timed(order=order, at_us=order * 100, what=what, task=task, attempt=self.attempt, **more)
        )

    def send(self, sender: str, receiver: str, split: int = 0, offset: int = 0) -> None:
        channel = f"{sender}>{receiver}"
        position = self._sent[channel] = self._sent.get(channel, -1) + 1
        origin = origin_of(split, offset)
        self.add("record-sent", sender, peer=receiver, channel=channel, position=position, origin=origin)

    def apply(self, sender: str, receiver: str, split: int = 0, offset: int = 0) -> None:
        channel = f"{sender}>{receiver}"
        position = self._applied[channel] = self._applied.get(channel, -1) + 1
        origin = origin_of(split, offset)
        self.add("record-applied", receiver, peer=sender, channel=channel, position=position, origin=origin)

    def barrier(self, sender: str, receiver: str, checkpoint: int) -> None:
        channel = f"{sender}>{receiver}"
        position = self._sent[channel] = self._sent.get(channel, -1) + 1
        self.add("barrier-sent", sender, peer=receiver, channel=channel, position=position, checkpoint=checkpoint)

    def take_barrier(self, sender: str, receiver: str, checkpoint: int) -> None:
        channel = f"{sender}>{receiver}"
        position = self._applied[channel] = self._applied.get(channel, -1) + 1
        self.add("barrier-received", receiver, peer=sender, channel=channel, position=position, checkpoint=checkpoint)

    def snapshot(self, task: str, checkpoint: int) -> None:
        self.add("snapshot-taken", task, checkpoint=checkpoint)
        run = next(run for run in self.runs if (run.task, run.attempt) == (task, self.attempt))
        run.marks.append(
            Mark(
                checkpoint=checkpoint,
                order=self.clock,
                at_us=self.clock * 100,
                reads=0,
                applies=0,
                received=[],
                sent=[],
            )
        )

    def persist(self, task: str, checkpoint: int) -> None:
        self.add("snapshot-persisted", task, checkpoint=checkpoint)
        self.history.stored.append(
            Stored(
                checkpoint=checkpoint,
                task=task,
                attempt=self.attempt,
                order=self.clock,
                at_us=self.clock * 100,
                handle=f"chk-{checkpoint}/{task}",
                state="{}",
            )
        )

    def acknowledge(self, task: str, checkpoint: int) -> None:
        self.add("ack-sent", task, peer="coordinator", checkpoint=checkpoint)
        self.add("ack-received", "coordinator", peer=task, checkpoint=checkpoint)

    def complete(self, checkpoint: int, *, add: tuple[str, ...] = ()) -> None:
        self.add("checkpoint-completed", "coordinator", checkpoint=checkpoint)
        self.history.completed.append(
            Completed(
                checkpoint=checkpoint,
                job=1,
                attempt=self.attempt,
                order=self.clock,
                at_us=self.clock * 100,
                handles={},
            )
        )
        for task in add:
            self.add("completion-notified", task, checkpoint=checkpoint)

    def kill(self, task: str, fault: int = 0) -> None:
        self.history.journal.append(
            FaultFired(order=self.tick(), at_us=self.clock * 100, fault=fault, kind="kill-task", phase="running")
        )
        self.add("killed", task)
        for run in self.runs:
            if run.attempt == self.attempt and run.ended is None:
                run.ended = self.clock if run.task == task else self.tick()
                run.how = "killed" if run.task == task else "cancelled"
        self.history.journal.append(
            TaskFailed(
                order=self.tick(), at_us=self.clock * 100, task=task, attempt=self.attempt, reason="killed", fault=0
            )
        )


TASKS = {"source-0": [], "source-1": [], "count-0": ["source-0", "source-1"], "sink-0": ["count-0"]}


def premature_snapshot() -> History:
    """The bug FLINK-2098 in small: count-0 goes on with a channel whose barrier it has taken."""
    builder = TimelineBuilder(TASKS)
    builder.start()
    builder.send("source-0", "count-0", 0, 0)
    builder.send("source-1", "count-0", 1, 0)
    builder.apply("source-0", "count-0", 0, 0)
    builder.send("count-0", "sink-0", 0, 0)
    builder.add("checkpoint-triggered", "coordinator", checkpoint=1)
    builder.apply("count-0", "sink-0", 0, 0)
    for task in ("source-0", "source-1"):
        builder.snapshot(task, 1)
        builder.barrier(task, "count-0", 1)
    builder.send("source-0", "count-0", 0, 1)
    builder.persist("source-0", 1)
    builder.acknowledge("source-0", 1)
    builder.take_barrier("source-0", "count-0", 1)
    builder.apply("source-0", "count-0", 0, 1)
    builder.persist("source-1", 1)
    builder.acknowledge("source-1", 1)
    builder.apply("source-1", "count-0", 1, 0)
    builder.send("count-0", "sink-0", 1, 0)
    builder.take_barrier("source-1", "count-0", 1)
    builder.snapshot("count-0", 1)
    builder.barrier("count-0", "sink-0", 1)
    builder.apply("count-0", "sink-0", 1, 0)
    builder.persist("count-0", 1)
    builder.take_barrier("count-0", "sink-0", 1)
    builder.add("transaction-pre-committed", "sink-0", checkpoint=1)
    builder.snapshot("sink-0", 1)
    builder.acknowledge("count-0", 1)
    builder.persist("sink-0", 1)
    builder.acknowledge("sink-0", 1)
    builder.complete(1, add=("source-0", "source-1", "count-0", "sink-0"))
    builder.add("commit-requested", "sink-0", checkpoint=1)
    builder.send("source-1", "count-0", 1, 1)
    builder.add("commit-answered", "sink-0", checkpoint=1, detail="committed")
    builder.kill("count-0")
    builder.attempt = 2
    builder.start(restores=1)
    builder.send("source-0", "count-0", 0, 1)
    builder.apply("source-0", "count-0", 0, 1)
    builder.send("count-0", "sink-0", 0, 1)
    builder.apply("count-0", "sink-0", 0, 1)
    return builder.history


def long_history(records: int = 100, checkpoints: int = 5) -> History:
    """A run of two sources, two counts and a sink, with several checkpoints and two attempts."""
    tasks = {
        "source-0": [],
        "source-1": [],
        "count-0": ["source-0", "source-1"],
        "count-1": ["source-0", "source-1"],
        "sink-0": ["count-0", "count-1"],
    }
    builder = TimelineBuilder(tasks)
    builder.start()
    for number in range(records):
        split, target = number % 2, f"count-{number // 2 % 2}"
        builder.send(f"source-{split}", target, split, number // 2)
        builder.apply(f"source-{split}", target, split, number // 2)
        builder.send(target, "sink-0", split, number // 2)
        builder.apply(target, "sink-0", split, number // 2)
        if number % (records // checkpoints) == 5:
            _checkpoint(builder, tasks, 1 + number // (records // checkpoints))
        if number == records // 2:
            builder.kill("count-1")
            builder.attempt = 2
            builder.start(restores=1 + (number - 5) // (records // checkpoints))
    return builder.history


def _checkpoint(builder: TimelineBuilder, tasks: dict[str, list[str]], checkpoint: int) -> None:
    builder.add("checkpoint-triggered", "coordinator", checkpoint=checkpoint)
    for task, senders in tasks.items():
        for sender in senders:
            builder.take_barrier(sender, task, checkpoint)
        builder.snapshot(task, checkpoint)
        for receiver in (other for other, feeds in tasks.items() if task in feeds):
            builder.barrier(task, receiver, checkpoint)
        builder.persist(task, checkpoint)
        builder.acknowledge(task, checkpoint)
    builder.complete(checkpoint, add=tuple(tasks))


EXPECTED = [(7, 1, 501_234, 0), (7, 2, 889_001, 0), (None, 1, 77_120, 0), (9, 1, 12_009, 0)]
COMMITTED = [(7, 1, 501_234, 0), (7, 3, 889_001, 0), (None, 1, 77_120, 0), (9, 1, 12_009, 0), (9, 1, 12_009, 0)]


def counterexample(identity: str = "A01-7f3a", history: History | None = None) -> CounterexampleView:
    return CounterexampleView(
        id=identity,
        invariant="consistent-cut",
        difference="sent after, applied before",
        story="count-0 took record 0:1 into checkpoint 1, though source-0 had read it after its own snapshot; "
        "after the restart it was counted again.",
        paragraphs=(
            "Two sources feed one running count, which feeds a transactional sink. Each source has two records.",
            "Checkpoint 1 starts. count-0 takes the barrier of source-0 and should now block that channel.",
            "Instead it takes record 0:1 from that channel while it waits for the barrier of source-1.",
            "Then count-0 is killed; attempt 2 restores checkpoint 1, and record 0:1 is read and counted again.",
        ),
        witness="record 0:1: sent after mark 1 of source-0 (order 15), applied before mark 1 of count-0 (order 27)\n"
        "state of count-0 at checkpoint 1: key 7 holds 2, the oracle says 1",
        neighbour="It holds if the barrier of source-1 reaches count-0 before record 0:1 does.",
        scenario='{\n  "format": "cutproof-scenario/1",\n  "name": "two sources, one count"\n}',
        replay=f"cutproof replay counterexamples/{identity}.json",
        rows=side_by_side(EXPECTED, COMMITTED),
        history=premature_snapshot() if history is None else history,
        size=Size(tasks=4, records=4, faults=1),
        scenarios=12,
    )


def summary(violated: int = 1) -> Summary:
    phases = ("deploying", "running", "aligning", "checkpointing", "committing", "recovering", "finishing")
    kinds = {"kill-task": 660, "kill-node": 210, "kill-coordinator": 240, "cut-channel": 180, "fail-commit": 90}
    faults = {
        kind: FaultCounts(
            planned=fired + 40,
            fired=fired,
            phases={phase: fired * (index * 3 % 7) // 21 for index, phase in enumerate(phases) if index * 3 % 7},
        )
        for kind, fired in kinds.items()
    }
    return Summary(
        version="0.1.0",
        subject="simulated",
        profile="default",
        seed=7,
        scenarios=ScenarioCounts(run=1000, held=998 - violated, violated=violated, unknown=2),
        invariants={
            "exactly-once": InvariantCounts(
                can_show=940, holds=898, unknown=102, by_both=650, reasons={"not exercised": 60, "not promised": 42}
            ),
            "no-data-loss": InvariantCounts(can_show=940, holds=930, unknown=70, reasons={"not exercised": 70}),
            "consistent-cut": InvariantCounts(
                can_show=900,
                holds=890 - violated,
                violated=violated,
                unknown=110,
                by_both=700,
                reasons={"not exercised": 110},
            ),
            "at-most-once": InvariantCounts(can_show=0, unknown=1000, reasons={"not promised": 1000}),
            "progress": InvariantCounts(can_show=1000, holds=1000),
        },
        faults={**faults, "tear-write": FaultCounts(planned=12)},
        commands={"stop-with-savepoint": CommandCounts(planned=200, finished=190, drain=95)},
        checkpoints=CheckpointCounts(completed=5000, aborted=300),
        recoveries=900,
        records=RecordCounts(read=98_000, committed=71_500),
        oracle=OracleCounts(
            engine="pyspark 4.3.0",
            workloads=800,
            expected_rows=45_000,
            queries=9,
            asked=930,
            not_asked={LOCAL_RECOVERY: 20, RESCALED: 50},
            state=Asked(asked=600, not_asked={NO_STATE: 400}),
        ),
        seconds=Seconds(total=14.2, start=6.8, draw=0.9, run=2.9, oracle=2.2, judge=1.1, report=0.3),
        scenarios_per_second=135.1,
        counterexamples=[
            Counterexample(
                id="A01-7f3a",
                invariant="consistent-cut",
                scenario="counterexamples/A01-7f3a.json",
                story=counterexample().story,
                replay="cutproof replay counterexamples/A01-7f3a.json",
                size=Size(tasks=4, records=4, faults=1),
                seconds_to_find=0.4,
                seconds_to_shrink=3.1,
                difference="sent after, applied before",
                scenarios=12,
                judges=1,
                not_asked=NEITHER,
            )
        ][:violated],
        shortfalls=["tear-write was planned 12 times and never fired."],
        not_tried=["fault pause-node"],
        unapplied={"schedule perturbation of a write": 17},
    )


def report(violated: int = 1) -> ReportView:
    return ReportView(
        summary=summary(violated),
        counterexamples=(counterexample(),) * violated,
        violated=tuple(
            ViolatedScenario(
                index=index,
                name="S2",
                violated={"consistent-cut": "sent after, applied before", "exactly-once": "repeated row"},
                judges={"consistent-cut": 1, "exactly-once": 2},
                replay=f"cutproof replay out/7/scenarios.jsonl:{index} --defect A01",
            )
            for index in range(3, 3 + 12 * violated)
        ),
        samples=Samples(
            checkpoint_durations_us=[2_000 + number * number % 4_801 for number in range(400)],
            recovery_times_us=[3_500 + number * 37 % 2_900 for number in range(120)],
        ),
    )
