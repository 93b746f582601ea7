"""Scenarios for a subject in real time: smaller, with fewer faults, and with every kind of fault in turn.

Such a scenario takes seconds, so a few dozen have to show what thousands show in virtual time.  Random drawing would
leave some kinds out.  Here the number of a scenario determines two kinds of faults that must occur in it, its leading
kinds.  Every kind occurs twice in as many scenarios as there are kinds.  Most faults are triggered at points: on a busy
machine a time comes too early, but a point does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ...faults import plan
from ...faults.plan import KINDS, AnyFault, AnyTrigger, AtPoint, AtTime
from ..scenario.forecast import Forecast, forecast
from ..scenario.model import AnyCommand, Resume, Scenario
from ..subject.port import Capabilities
from .choices import Choices
from .engines import Tuning, draw_guarantee, strongest
from .faults.draw_faults import RESTARTING, at_some_step, draw_fault, possible
from .situations import extras
from .situations.local import local_stage
from .stage import Frame, Stage, Template, stage_of

LONGEST_US = 30_000
"""the longest delay or outage"""
SHORT_PAUSE_US = 6_000
"""clearly shorter than the heartbeat timeout; LONGEST_US is clearly longer"""
LEAST_RECORDS = 40
"""enough that at each checkpoint some records are being read or queued; reading fewer would not be faster"""
FEW_RESTARTS = 4
"""the number of restarts of a job that cannot recover: it ends when they are used up, and each takes time"""
UNLED_EVERY = 8
"""one scenario in this many has no leading kinds and is drawn from the templates"""

LOCAL_PERCENT = 3
"""the share of scenarios with leading kinds that have local recovery: the share of its template in virtual time"""

_SLOW_WRITE_US = 2_000
"""the time of a snapshot's write: one task's write is in progress while another task takes its snapshot"""

Lead = tuple[str, ...]
"""the kinds of fault that a scenario must have; empty: a template draws its faults"""

_NEEDS_FILES = frozenset({"lose-unsynced", "tear-write", "fail-read"})
_NEEDS_TRANSACTIONS = frozenset({"fail-commit", "kill-database"})
_IN_WAIT = frozenset(
    {
        "lose-message",
        "late-message",
        "repeat-message",
        "fail-write",
        "fail-read",
        "tear-write",
        "fail-commit",
        "raise-in-operator",
    }
)
"""kinds that wait for the next event of their sort, so that they are triggered early"""
_LASTING = frozenset({"delay-channel", "stall-channel", "slice-channel"})
"""kinds that act on the elements that pass while they last"""
_MACHINE_RESTARTING = frozenset({"reset-channel", "limit-channel", "timeout-channel", "kill-proxy"})


def leads_of(capabilities: Capabilities) -> tuple[Lead, ...]:
    """Pairs of kinds that are far apart in the list of all kinds; each kind is in two pairs."""
    kinds = [kind for kind in KINDS if kind in capabilities.faults]
    half = (len(kinds) + 1) // 2
    return tuple(
        (kind,) if len(kinds) == 1 else (kind, kinds[(at + half) % len(kinds)]) for at, kind in enumerate(kinds)
    )


def lead_of(index: int, leads: Sequence[Lead]) -> Lead:
    """The leading kinds of scenario `index`; every eighth scenario has none."""
    if not leads or index % UNLED_EVERY == UNLED_EVERY - 1:
        return ()
    return leads[(index - index // UNLED_EVERY) % len(leads)]


def draw_scenario(choices: Choices, frame: Frame, templates: Sequence[Template]) -> Scenario:
    """A scenario with the frame's leading kinds; if it has none, a scenario of a random template."""
    capabilities = frame.capabilities or Capabilities()
    lead = choices.pick(((), *leads_of(capabilities))) if frame.lead is None else frame.lead
    return led(choices, frame, lead) if lead else choices.pick(templates)(choices, frame)


def led(choices: Choices, frame: Frame, lead: Lead) -> Scenario:
    """Faults of the leading kinds, in a scenario where each can fire, with the commands or settings that they need."""
    lead = lead[: max(1, frame.max_faults - 1)]
    stage = _local(choices, frame) or _stage(choices, frame, lead)
    target = stage.target
    kinds = [kind for kind in lead if possible(kind, target)]
    faults = [_on_targets(choices, target, kind) for kind in kinds]
    if "fail-read" in kinds or not (_MACHINE_RESTARTING | set(RESTARTING)).intersection(kinds) or choices.percent(15):
        faults.append(_blow(choices, target))
    commands = extras.mixed_commands(choices, target) if choices.percent(15) else ()
    return stage.scenario("led", faults=tuple(faults[: max(1, frame.max_faults)]), commands=commands)


def _local(choices: Choices, frame: Frame) -> Stage | None:
    """At times a stage with local recovery, whatever the leading kinds are."""
    can = frame.capabilities is not None and frame.capabilities.local_recovery
    return local_stage(choices, frame) if can and choices.percent(LOCAL_PERCENT) else None


def _stage(choices: Choices, frame: Frame, lead: Lead) -> Stage:
    guarantee, sink = draw_guarantee(choices, guarantees=frame.guarantees, sinks=frame.sinks)
    if _NEEDS_TRANSACTIONS.intersection(lead) and "transactional" in frame.sinks:
        guarantee, sink = strongest(frame.guarantees), "transactional"
    recipe = frame.recipe(
        idempotent=sink == "idempotent",
        least_records=LEAST_RECORDS,
        least_operators=int("raise-in-operator" in lead),
    )
    tuning = Tuning(
        guarantees=(guarantee,),
        sinks=(sink,),
        checkpoints=(3, 6),
        memory_percent=0 if _NEEDS_FILES.intersection(lead) else 12,
    )
    slow = {"snapshot_write_us": _SLOW_WRITE_US, "nodes": choices.pick((1, 2))} if "lose-unsynced" in lead else {}
    return stage_of(choices, frame, recipe, tuning, **slow)


def eased(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario within the limits of real time: faults are short, and most triggers are points."""
    target = forecast(scenario.workload, scenario.topology, scenario.engine)
    engine = scenario.engine
    if any(isinstance(fault, plan.FailCommit) and fault.how == "expired" for fault in scenario.faults):
        engine = msgspec.structs.replace(engine, restart_attempts=min(engine.restart_attempts, FEW_RESTARTS))
    return msgspec.structs.replace(
        scenario,
        engine=engine,
        faults=tuple(_eased(choices, fault, target) for fault in scenario.faults),
        commands=tuple(_command(choices, command, target) for command in scenario.commands),
    )


def _on_targets(choices: Choices, target: Forecast, kind: str) -> AnyFault:
    if kind == "lose-unsynced":
        return _power_loss(choices, target)
    if kind in _IN_WAIT or kind in _LASTING:
        trigger: AnyTrigger = _reading(choices, target, 5, 45)
    elif choices.percent(50):
        trigger = _reading(choices, target, 50, 95)
    else:
        trigger = _step(choices, target)
    maker = _MAKERS.get(kind)
    return maker(choices, target, trigger) if maker else draw_fault(choices, target, kind, trigger)


def _reading(choices: Choices, target: Forecast, low: int, high: int) -> AtPoint:
    """A point that is surely reached: the read of a record after a share (per cent) of the input."""
    return AtPoint(point="record-read", occurrence=max(1, target.reads * choices.between(low, high) // 100))


def _step(choices: Choices, target: Forecast) -> AtPoint:
    """A step of one of the first checkpoints."""
    found = at_some_step(choices, target)
    most = 3 * len(target.layout.tasks) if found.task is None else 3
    return msgspec.structs.replace(found, occurrence=min(found.occurrence, most))


def _power_loss(choices: Choices, target: Forecast) -> AnyFault:
    """A node loses power as its last task takes its snapshot, while the snapshots of its other tasks are being written.
    Most engines assign tasks to nodes round-robin."""
    tasks, nodes = target.layout.tasks, target.engine.nodes
    number = len(tasks) - 1 - choices.between(0, max(0, min(nodes, len(tasks) - nodes) - 1))
    occurrence = choices.between(1, min(3, target.checkpoints))
    trigger = AtPoint(point="snapshot-taken", occurrence=occurrence, task=tasks[number])
    return plan.LoseUnsynced(trigger=trigger, node=number % nodes)


def _blow(choices: Choices, target: Forecast) -> AnyFault:
    return plan.KillTask(trigger=_reading(choices, target, 65, 95), task=choices.pick(target.layout.tasks))


def _eased(choices: Choices, fault: AnyFault, target: Forecast) -> AnyFault:
    changes: dict[str, object] = {"trigger": _pointed(choices, fault.trigger, target)}
    for field in ("for_us", "by_us", "down_us", "after_us"):
        if field in fault.__struct_fields__:
            changes[field] = min(LONGEST_US, getattr(fault, field))
    match fault:
        case plan.PauseTask(for_us=for_us) | plan.PauseNode(for_us=for_us) if for_us > SHORT_PAUSE_US:
            changes["for_us"] = LONGEST_US
        case plan.KillNode(node=node):
            changes["node"] = node % min(target.engine.nodes, len(target.layout.tasks))
        case _:
            pass
    return msgspec.structs.replace(fault, **changes)


def _command(choices: Choices, command: AnyCommand, target: Forecast) -> AnyCommand:
    """The command at a point instead of a time; a resume keeps its time after the end of the job."""
    if isinstance(command, Resume):
        return command
    return msgspec.structs.replace(command, trigger=_pointed(choices, command.trigger, target))


def _pointed(choices: Choices, trigger: AnyTrigger, target: Forecast) -> AnyTrigger:
    """Replace a time by the read of the record that is due then, two times in three; the start of the run stays."""
    if not isinstance(trigger, AtTime) or trigger.at_us == 0 or not target.reads or choices.percent(33):
        return trigger
    reads = target.reads * (trigger.at_us - target.start_us) // max(1, target.span_us)
    return AtPoint(point="record-read", occurrence=max(1, min(target.reads, reads)))


def _pause_node(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    node = choices.between(0, min(target.engine.nodes, len(target.layout.tasks)) - 1)
    return plan.PauseNode(trigger=trigger, node=node, for_us=choices.pick((LONGEST_US, 3_000, SHORT_PAUSE_US)))


def _link(choices: Choices, target: Forecast) -> dict[str, str]:
    sender, receiver = choices.pick(target.layout.channels)
    return {"sender": sender, "receiver": receiver}


def _lasting(choices: Choices) -> int:
    """Long enough for some barrier to pass."""
    return choices.pick((10_000, 6_000, 20_000))


def _delay_channel(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    by_us, for_us = choices.pick((2_000, 1_000, 5_000)), _lasting(choices)
    return plan.DelayChannel(trigger=trigger, **_link(choices, target), by_us=by_us, for_us=for_us)


def _stall_channel(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.StallChannel(trigger=trigger, **_link(choices, target), for_us=_lasting(choices))


def _reset_channel(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    for_us = choices.pick((2_000, 1_000, 5_000))
    return plan.ResetChannel(trigger=trigger, **_link(choices, target), for_us=for_us)


def _slice_channel(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    size, for_us = choices.pick((1, 3, 16)), _lasting(choices)
    return plan.SliceChannel(trigger=trigger, **_link(choices, target), size=size, for_us=for_us)


def _limit_channel(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.LimitChannel(trigger=trigger, **_link(choices, target), bytes=choices.pick((10, 50, 150)))


def _timeout_channel(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    after_us = choices.pick((2_000, 1_000, 5_000))
    return plan.TimeoutChannel(trigger=trigger, **_link(choices, target), after_us=after_us)


def _kill_proxy(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.KillProxy(trigger=trigger, down_us=choices.pick((3_000, 1_000, 10_000)))


def _kill_database(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.KillDatabase(trigger=trigger, down_us=choices.pick((5_000, 2_000, 15_000)))


_MAKERS: dict[str, Callable[[Choices, Forecast, AnyTrigger], AnyFault]] = {
    "pause-node": _pause_node,
    "delay-channel": _delay_channel,
    "stall-channel": _stall_channel,
    "reset-channel": _reset_channel,
    "slice-channel": _slice_channel,
    "limit-channel": _limit_channel,
    "timeout-channel": _timeout_channel,
    "kill-proxy": _kill_proxy,
    "kill-database": _kill_database,
}
"""the kinds that only processes have, and those that are drawn too short in virtual time to be felt here"""
