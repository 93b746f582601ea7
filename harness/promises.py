"""What a scenario is able to show, decided from the scenario alone, before it runs.

An invariant that a scenario could exercise and did not is a miss of the
strategies; the shares by invariant (see `profiles`) keep them honest.
"""

from __future__ import annotations

from ..faults.plan import AnyTrigger, AtTime, FailCommit, Fault, RaiseInOperator, kind_of
from ..properties.classes import promised
from .layout import reads_by_source
from .scenario import Resume, Scenario

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
    }
)
"""kinds of faults after which some attempt restores"""


def can_show(scenario: Scenario) -> frozenset[str]:
    """The names of the promised invariants that the scenario could exercise."""
    if scenario.workload.records() == 0:
        return frozenset()
    span_us = _span_us(scenario)
    engine = scenario.engine
    restores = _restores(scenario, span_us)
    troubled = engine.sink == "transactional" and any(isinstance(fault, FailCommit) for fault in scenario.faults)
    checkpoints = engine.guarantee != "at-most-once" and span_us > engine.checkpoint_interval_us
    could = {
        "exactly-once": restores or troubled,
        "no-data-loss": True,
        "consistent-cut": checkpoints,
        "at-least-once": restores,
        "at-most-once": restores,
        "order": restores,
        "restored-state": restores and checkpoints,
        "visibility": engine.sink == "transactional" and checkpoints,
        "progress": not _may_fail(scenario),
        "no-leaks": checkpoints,
    }
    return frozenset(name for name in promised(engine.guarantee, engine.sink) if could.get(name, False))


def _span_us(scenario: Scenario) -> int:
    """How long the busiest source reads, undisturbed."""
    reads = reads_by_source(scenario.workload, scenario.topology)
    return max(reads.values(), default=0) * scenario.engine.read_interval_us


def _restores(scenario: Scenario, span_us: int) -> bool:
    """Whether something makes the job restore while records flow."""
    if any(isinstance(command, Resume) for command in scenario.commands):
        return True
    return any(kind_of(fault) in RESTORING and _amid(fault, span_us) for fault in scenario.faults)


def _amid(fault: Fault, span_us: int) -> bool:
    trigger: AnyTrigger = fault.trigger
    return not isinstance(trigger, AtTime) or 0 < trigger.at_us < span_us


def _may_fail(scenario: Scenario) -> bool:
    """Whether a correct engine may give the job up."""
    poisoned = any(isinstance(fault, RaiseInOperator) and fault.always for fault in scenario.faults)
    forgetful = scenario.engine.snapshot_store == "memory" and any(
        kind_of(fault) in ("kill-coordinator", "kill-node", "lose-unsynced") for fault in scenario.faults
    )
    return poisoned or forgetful
