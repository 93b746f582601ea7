"""What a scenario is able to show, decided from the scenario alone, before it runs.

If a scenario could exercise an invariant and does not, the generators have missed; `profiles` demands a share of hits
for each invariant.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...faults.plan import AnyFault, FailCommit, FailWrite, PauseNode, PauseTask, RaiseInOperator, kind_of
from ...properties.model.workload import Workload, window_of
from ...properties.reconstruct.buffered_rows import batches
from ...properties.semantics.classes import promised
from ...properties.semantics.user_functions import has_user_timers
from .forecast import Forecast, forecast
from .model import Cancel, Fork, Resume, Scenario, StopWithSavepoint

RESTORING = frozenset(
    {
        "kill-task",
        "kill-node",
        "kill-coordinator",
        "pause-task",
        "cut-channel",
        "tear-write",
        "lose-unsynced",
        "raise-in-operator",
        "pause-node",
        "reset-channel",
        "limit-channel",
        "timeout-channel",
        "kill-proxy",
    }
)
"""kinds of faults after which some attempt restores a snapshot"""
FAILING = frozenset(
    {
        "fail-write",
        "lose-message",
        "late-message",
        "pause-task",
        "pause-node",
        "stall-channel",
        "delay-channel",
        "fail-commit",
    }
)
"""kinds of faults through which a checkpoint fails, or times out, though no task is lost"""
FEW = 3
"""a job that tolerates fewer failed checkpoints in a row may restart for them"""
HEARTBEAT_TIMEOUT_US = 12_000
"""an engine declares a node lost that stands still for this long; mostly it does not notice a shorter pause"""


def can_show(scenario: Scenario) -> frozenset[str]:
    """The names of the promised invariants that the scenario could exercise."""
    if scenario.workload.records() == 0:
        return frozenset()
    engine = scenario.engine
    if scenario.pipeline:
        seen = {"exactly-once", "no-data-loss", "at-least-once", "at-most-once", "progress"}
        return promised(engine.guarantee, engine.sink) & seen if scenario.faults else frozenset()
    course = forecast(scenario.workload, scenario.topology, engine)
    if _expires(scenario):
        return frozenset()
    strikes = list(_strikes(scenario, course))
    troubled = engine.sink == "transactional" and any(isinstance(fault, FailCommit) for fault in scenario.faults)
    # some checkpoint begins while records are read
    amid = course.span_us > engine.checkpoint_interval_us + 2 * engine.control_latency_us and not _keeps_failing(
        scenario
    )
    if (_gives_up(scenario) or _forgets(scenario)) and min(strikes, default=0) <= course.first_completion_us:
        return frozenset()  # it may fail without a checkpoint to restore, or without a committed row
    could = {
        "exactly-once": bool(strikes) or troubled,
        "no-data-loss": any(True for _ in _losses(scenario, course)) or troubled,
        "consistent-cut": amid,
        "at-least-once": bool(strikes),
        "at-most-once": bool(strikes),
        "order": bool(strikes),
        "restored-state": any(at_us > course.first_completion_us for at_us in strikes),
        "restorable": any(isinstance(command, Fork) for command in scenario.commands),
        "visibility": engine.sink == "transactional" and amid,
        "drain": amid and _holds_back(scenario.workload) and not _is_endless(scenario),
        "progress": not _may_fail(scenario),
        "no-leaks": amid,
    }
    invariants = promised(engine.guarantee, engine.sink)
    if engine.guarantee != "exactly-once" and has_user_timers(scenario.workload):
        # records that are repeated come late for them: no counterpart says what they do then
        invariants &= {"progress", "no-leaks"}
    if any(isinstance(command, Resume) and command.snapshot != "newest" for command in scenario.commands):
        # the rows behind an older snapshot are committed again, as their user wished
        invariants -= {"exactly-once", "visibility"}
    return frozenset(name for name in invariants if could.get(name, False))


def _strikes(scenario: Scenario, course: Forecast) -> Iterator[int]:
    """About when something makes the job restore a snapshot while records flow."""
    yield from _losses(scenario, course)
    yield from _resumed(scenario, course, StopWithSavepoint)


def _losses(scenario: Scenario, course: Forecast) -> Iterator[int]:
    """About when a fault or a cancel makes the job restore a snapshot while records flow.  Rows may be uncommitted
    then, as they are not after a stop with a savepoint."""
    end_us = course.start_us + course.span_us
    for fault in scenario.faults:
        if restores(fault):
            at_us = course.time_of(fault.trigger)
            if at_us is None:
                yield end_us // 2
            elif course.start_us < at_us < end_us:
                yield at_us
    yield from _resumed(scenario, course, Cancel)


def _resumed(scenario: Scenario, course: Forecast, kind: type[Cancel] | type[StopWithSavepoint]) -> Iterator[int]:
    """About when commands of a kind end the job while records flow, if it is resumed."""
    if any(isinstance(command, Resume) for command in scenario.commands):
        for command in scenario.commands:
            at_us = course.time_of(command.trigger)
            if isinstance(command, kind) and at_us is not None and at_us < course.start_us + course.span_us:
                yield at_us


def restores(fault: AnyFault) -> bool:
    """Whether an attempt restores a snapshot after the fault, mostly."""
    if isinstance(fault, (PauseNode, PauseTask)) and fault.for_us < HEARTBEAT_TIMEOUT_US:
        return False
    return kind_of(fault) in RESTORING


def _may_fail(scenario: Scenario) -> bool:
    """Whether a correct engine may let the job fail."""
    return _keeps_failing(scenario) or _forgets(scenario) or _expires(scenario) or _gives_up(scenario)


def _forgets(scenario: Scenario) -> bool:
    """Snapshots are lost with the process that held them."""
    return scenario.engine.snapshot_store == "memory" and any(
        kind_of(fault) in ("kill-coordinator", "kill-node", "lose-unsynced") for fault in scenario.faults
    )


def fails_a_checkpoint(fault: AnyFault) -> bool:
    """Whether a checkpoint may fail by it: a delete that fails is tried again."""
    return kind_of(fault) in FAILING and not (isinstance(fault, FailWrite) and fault.what != "write")


def _gives_up(scenario: Scenario) -> bool:
    """There may be more failures than the job may restart after, too many failed checkpoints included."""
    engine = scenario.engine
    restarts = sum(restores(fault) for fault in scenario.faults)
    failing = [fault for fault in scenario.faults if fails_a_checkpoint(fault) and not restores(fault)]
    if failing and engine.tolerated_failures < FEW:  # one fault may fail several in a row
        restarts += max(1, len(failing) // (engine.tolerated_failures + 1))
    return restarts > engine.restart_attempts


def _expires(scenario: Scenario) -> bool:
    """The store aborts a sealed transaction: its rows are lost, and nobody can know what else would have happened."""
    return any(isinstance(fault, FailCommit) and fault.how == "expired" for fault in scenario.faults)


def _keeps_failing(scenario: Scenario) -> bool:
    return any(isinstance(fault, RaiseInOperator) and fault.always for fault in scenario.faults)


def _holds_back(workload: Workload) -> bool:
    """Some rows may be buffered until the end of the data."""
    return window_of(workload) is not None or bool(batches(workload))


def _is_endless(scenario: Scenario) -> bool:
    """Some input does not end, so that rows may be uncommitted when the run is over."""
    return any(not source.bounded for source in scenario.workload.inputs)
