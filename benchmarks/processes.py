"""What a crash costs on real processes: seconds, not virtual ones.

`from a kill to the next commit` is the time from SIGKILL to the first rows that a
sink commits for a checkpoint that had not begun then: the end of the process is
noticed, another comes up, all tasks restore, read on, and a checkpoint completes.
"""

from __future__ import annotations

import time

from cutproof.faults.plan import AtPoint, KillTask
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import FaultFired
from cutproof.properties.model.workload import Count, Input, Node, Workload
from measure import Figure, figure

KILLS = 11
ROUNDS = 5
RECORDS = 1_000
VICTIMS = ("source-0", "count-0", "count-1", "sink-0")


def workload(records: int) -> Workload:
    """A count by key over two splits."""
    half = records // 2
    splits = tuple(tuple((key % 7, key, 1_000 * split + key + 1) for key in range(half)) for split in range(2))
    return Workload(
        name="benchmark",
        inputs=(Input(name="source", splits=splits),),
        nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
    )


def scenario(records: int, *faults: KillTask, read_interval_us: int = 20) -> Scenario:
    asked = workload(records)
    return Scenario(
        workload=asked,
        topology=lay_out(asked, {"source": 2}),
        engine=Engine(checkpoint_interval_us=5_000, read_interval_us=read_interval_us, apply_cost_us=1),
        faults=faults,
        seed="benchmark",
    )


def kill(task: str, occurrence: int) -> KillTask:
    return KillTask(trigger=AtPoint(point="record-read", occurrence=occurrence), task=task)


def held(result: Result) -> Result:
    """A run that went wrong is no measurement."""
    if result.judgement.violated:
        raise SystemExit(f"the run does not hold: {', '.join(result.judgement.violated)}")
    return result


def seconds_to_the_next_commit(subject: ProcessesSubject, task: str) -> float:
    """Of one run with one kill amid its records."""
    history = held(run(subject, scenario(300, kill(task, 150), read_interval_us=100), timeline=True)).history
    struck = next(entry.at_us for entry in history.journal if isinstance(entry, FaultFired))
    begun = max((one.checkpoint or 0 for one in history.timeline if one.at_us <= struck), default=0)
    commits = [
        one.at_us
        for one in history.timeline
        if one.what == "transaction-committed" and (one.checkpoint or 0) > begun and one.detail != "0 rows"
    ]
    return (min(commits) - struck) / 1e6


def figures() -> list[Figure]:
    subject = ProcessesSubject()
    try:
        held(run(subject, scenario(50)))  # what is started once is started
        waits = [seconds_to_the_next_commit(subject, VICTIMS[one % len(VICTIMS)]) for one in range(KILLS)]
        whole: list[float] = []
        rates: list[float] = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            held(run(subject, scenario(RECORDS, kill("count-0", 300), kill("sink-0", 1_000))))
            whole.append(time.perf_counter() - began)
            rates.append(_rate(subject))
    finally:
        subject.close()
    return [
        figure("from a kill to the next commit", "s", waits, f"median of {KILLS} kills"),
        figure(f"a scenario of {RECORDS:,} records and two kills", "s", whole, "run and judged"),
        figure("records through the processes", "per second", rates, "2 sources, 2 counts, 2 sinks; one run"),
    ]


def _rate(subject: ProcessesSubject) -> float:
    """From the first commit's beginning to the last: everything between was read, counted, committed."""
    history = held(run(subject, scenario(4 * RECORDS, read_interval_us=1), timeline=True)).history
    times = [one.at_us for one in history.timeline if one.what in ("task-deployed", "transaction-committed")]
    return 4 * RECORDS / ((max(times) - min(times)) / 1e6)
