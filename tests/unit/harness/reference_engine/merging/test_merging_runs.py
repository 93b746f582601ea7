"""A simulated run whose events go to journals, as if by processes, and are merged again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults.plan import AnyFault, AtPoint, AtTime, CutChannel, FailCommit, KillCoordinator, KillTask, PauseTask
from cutproof.harness.generate.situations.regional import forward_only
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.merging.merging import OF_A_RUN, journals_in, merged
from cutproof.harness.reference_engine.merging.order import Journal as Written
from cutproof.harness.reference_engine.subjects.simulated import Run, SimulatedSubject
from cutproof.harness.scenario.model import Cancel, Resume, Savepoint, Scenario
from cutproof.properties.model.history import History
from cutproof.properties.model.workload import Count, Map
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.transactions import Standing
from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.disk.journal import Entry, Journal
from unit.simulated.worlds import job


class Both:
    """One log behind another: what is told goes to the first, what the first answers comes back."""

    def __init__(self, first: Any, second: Any) -> None:
        self._first, self._second = first, second

    def __getattr__(self, name: str) -> Any:
        first, second = getattr(self._first, name), getattr(self._second, name)
        return call(first, second) if callable(first) else Both(first, second)

    def __len__(self) -> int:
        return len(self._first)


def call(first: Any, second: Any) -> Any:
    def merge_with(*arguments: Any, **options: Any) -> Any:
        answer, other = first(*arguments, **options), second(*arguments, **options)
        return Both(answer, other) if hasattr(answer, "__dict__") else answer

    return merge_with


class Observers:
    """A run's own recorder, and a journal for each process: one a task, the coordinator's, the harness's."""

    def __init__(self, recorder: Any, folder: Path) -> None:
        self.recorder = recorder
        self.detailed = recorder.detailed
        self.now = 0
        self._clock = Clock(lambda: 0)  # one clock is what clocks that hear of each other come to
        self._folder = folder
        self._journals: dict[str, Journal] = {}
        self._began: dict[int, int] = {}
        self._runs: dict[int, tuple[str, int]] = {}

    def journal(self, process: str) -> Journal:
        if process not in self._journals:
            path = self._folder / f"{process}.0"
            self._journals[process] = Journal(path, self._clock, detailed=self.detailed)
        return self._journals[process]

    def close(self) -> None:
        for journal in self._journals.values():
            journal.close()

    def order(self) -> int:
        number = int(self.recorder.order())
        self._began[number] = self.journal("coordinator").order()
        return number

    def task_started(self, task: Any, *rest: Any) -> Any:
        recorded, written = self.recorder.task_started(task, *rest), self.journal(task).task_started(task, *rest)
        self._runs[recorded.run] = (task, written.run)
        log = Both(recorded, written)
        log.run = recorded.run
        return log

    def channel_opened(self, name: str, attempt: Any) -> Any:
        sender = self.journal(name.partition(">")[0])
        return Both(self.recorder.channel_opened(name, attempt), sender.channel_opened(name, attempt))

    def saw(self, event: Any) -> None:
        self.recorder.saw(event)
        process = "coordinator"
        if isinstance(event, OF_A_RUN):
            process, number = self._runs[event.run]
            event = msgspec.structs.replace(event, run=number)
        elif isinstance(event, o.Looked):
            event = o.Looked(self._began[event.began], event.rows)
        elif isinstance(event, o.Transacted):
            process = event.request.writer
        elif isinstance(event, o.FaultFired | o.FaultHealed):
            process = "harness"
        self.journal(process).saw(event)


def observed(scenario: Scenario, folder: Path, timeline: bool) -> tuple[Run, History, list[Written]]:
    """A run, its own history, and its journals."""
    run = Run(scenario, Parts(), timeline)
    both = Observers(run.world.observer, folder)
    run.world.observer = both
    history = run.history()
    both.close()
    return run, history, journals_in(folder)


def again(history: History, run: Run, journals: Sequence[Written]) -> History:
    """What the journals of a run become."""
    blank = History(
        **{
            name: getattr(history, name)
            for name in (
                "subject",
                "guarantee",
                "sink",
                "identity",
                "restart_attempts",
                "tolerated_failures",
                "short_timeout",
                "retained_checkpoints",
                "snapshots",
                "residue",
            )
        },
        quiet=history.quiet,
        unapplied=history.unapplied,
    )
    kinds = [msgspec.to_builtins(fault)["kind"] for fault in run.scenario.faults]
    accounts = {
        name: account for name, account in run.world.external.accounts.items() if account.standing is Standing.COMMITTED
    }
    committed = [(name, row) for name in visible_in_order(history) for row in accounts[name].rows]
    if not accounts:
        committed = [(None, row) for row in history.committed]
    merged(blank, kinds, journals, bool(history.timeline), committed=committed, rolls_back=False)
    return blank


def visible_in_order(history: History) -> list[str]:
    done = [one for one in history.transactions if one.committed is not None]
    return [one.name for one in sorted(done, key=lambda one: one.committed or 0)]


TIMES = ("at_us", "read_at", "advanced_at", "idle_at")


def untimed(history: History) -> Any:
    """The history without its times: the merge's are the machine's, of several clocks, the simulator's virtual.

    When reads, advances and marks of being idle were is told in virtual time alone (docs/format.md).
    """

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: strip(one) for name, one in value.items() if name not in TIMES}
        return [strip(one) for one in value] if isinstance(value, list) else value

    return strip(msgspec.to_builtins(msgspec.structs.replace(history, one_clock=False)))


def regional(*faults: AnyFault) -> Scenario:
    """A job of three regions, each a source and a sink."""
    scenario_job = job(60, width=3, faults=faults)
    engine = msgspec.structs.replace(scenario_job.engine, failover="region")
    return msgspec.structs.replace(scenario_job, topology=forward_only(scenario_job.workload, 3), engine=engine)


SCENARIOS = {
    "no fault": job(40, width=2),
    "a kill and a cut": job(
        60,
        Map(add=1),
        Count(),
        width=2,
        faults=(
            KillTask(trigger=AtTime(at_us=1_900), task="op1-1"),
            CutChannel(trigger=AtPoint(point="record-applied", occurrence=70), sender="op0-0", receiver="op1-0"),
        ),
    ),
    "a coordinator dies, a command waits": job(
        60,
        faults=(KillCoordinator(trigger=AtPoint(point="checkpoint-triggered", occurrence=2), down_us=2_000),),
        commands=(Savepoint(trigger=AtPoint(point="checkpoint-triggered", occurrence=2)),),
    ),
    "a pause, a lost commit, a resume": job(
        60,
        width=2,
        faults=(
            PauseTask(trigger=AtTime(at_us=1_000), task="op0-0", for_us=20_000),
            FailCommit(trigger=AtTime(at_us=500), how="lost-response"),
        ),
        commands=(Cancel(trigger=AtTime(at_us=30_000)), Resume(trigger=AtTime(at_us=1_000))),
    ),
    "a region dies": regional(
        KillTask(trigger=AtPoint(point="checkpoint-completed"), task="sink-1"),
    ),
    "two regions die, and the coordinator": regional(
        KillTask(trigger=AtPoint(point="checkpoint-completed"), task="sink-1"),
        KillTask(trigger=AtPoint(point="state-loaded", task="sink-1", side="before"), task="source-2"),
        KillCoordinator(trigger=AtPoint(point="task-running", task="source-2", occurrence=2)),
    ),
    "a plain sink": job(30, width=2, sink="plain", guarantee="at-least-once"),
}


@pytest.mark.parametrize("timeline", [False, True])
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_journals_of_a_run_become_its_history(name: str, timeline: bool, tmp_path: Path) -> None:
    run, history, journals = observed(SCENARIOS[name], tmp_path, timeline)

    assert untimed(again(history, run, journals)) == untimed(history)


@pytest.mark.parametrize("index", range(12))
def test_the_journals_of_any_run_become_its_history(index: int, tmp_path: Path) -> None:
    can = msgspec.structs.replace(SimulatedSubject().capabilities, local_recovery=False)  # there processes differ
    draw = scenario_of(Drawing(capabilities=can))
    run, history, journals = observed(draw(11, index), tmp_path, timeline=index % 4 == 0)

    assert untimed(again(history, run, journals)) == untimed(history)


KILLED = "it was killed"


def by_kill_9(journals: Sequence[Written], kinds: Sequence[str]) -> list[Written]:
    """The same run, as it is seen when a kill takes the process: the dead tells nothing of its end, the
    harness tells that it killed, and the task comes up again in another process."""
    harness: list[Entry] = []
    found: list[Written] = []
    for process, _, written in journals:
        living: list[Entry] = []
        incarnation = 0
        for entry in written:
            if isinstance(entry.event, o.RunEnded) and entry.event.how is o.RunEnd.KILLED:
                died = o.Died(process, incarnation, KILLED, kinds.index("kill-task"))
                harness.append(Entry(entry.stamp, died))
                found.append((process, incarnation, living))
                incarnation, living = incarnation + 1, []
            elif not (isinstance(entry.event, o.TaskFailed) and entry.event.reason == KILLED):
                living.append(entry)
        found.append((process, incarnation, living))
    return [*found, ("killer", 0, harness)]


def test_a_run_whose_tasks_were_killed_from_outside_has_the_same_history(tmp_path: Path) -> None:
    scenario = SCENARIOS["a kill and a cut"]
    run, history, journals = observed(scenario, tmp_path, timeline=False)
    killed = by_kill_9(journals, ["kill-task", "cut-channel"])
    assert sum(len(written) for _, _, written in killed) < sum(len(written) for _, _, written in journals)

    assert untimed(again(history, run, killed)) == untimed(history)
