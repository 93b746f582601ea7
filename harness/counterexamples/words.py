"""Scenarios and verdicts in words: faults, triggers, commands and schedule perturbations."""

from __future__ import annotations

from collections.abc import Mapping

from ...faults import plan
from ...faults.plan import AnyFault, AnyTrigger, AtAim, AtPoint, AtRest, AtTime, InPhase, MachineFault
from ...faults.points import PHASES, POINTS
from ...properties.model.verdict import Holds, Unknown, Verdict, Violated
from ..scenario.layout import never_unaligned
from ..scenario.model import (
    AnyCommand,
    Cancel,
    CopySnapshot,
    DeleteSnapshot,
    Fork,
    MoveSnapshot,
    Perturbation,
    Resume,
    Savepoint,
    Scenario,
    StopWithSavepoint,
    format_of,
)
from ..scenario.upgrades import absent_of, upgrade_of


def time_in_words(time_us: int) -> str:
    """A time in µs, with the unit that a person would choose."""
    if time_us < 1_000:
        return f"{time_us} µs"
    return f"{time_us / 1_000:.10g} ms" if time_us < 1_000_000 else f"{time_us / 1_000_000:.10g} s"


def ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def count_in_words(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def trigger_in_words(trigger: AnyTrigger) -> str:
    match trigger:
        case AtTime(at_us=at_us):
            return f"{time_in_words(at_us)} after the start"
        case AtPoint(point=point, occurrence=occurrence, task=task, side=side):
            where = f" of {task}" if task else ""
            return f"{side} the {ordinal(occurrence)} {point.replace('-', ' ')}{where} ({POINTS[point]})"
        case InPhase(phase=phase, occurrence=occurrence, after_us=after_us):
            later = f", {time_in_words(after_us)} in" if after_us else ""
            return f"when the job is {phase} for the {ordinal(occurrence)} time{later} ({PHASES[phase]})"
        case AtAim(aim=aim, occurrence=occurrence, after_us=after_us):
            later = f", {time_in_words(after_us)} later" if after_us else ""
            return f"when the aim {aim!r} is met for the {ordinal(occurrence)} time{later}"
        case AtRest():
            return "once the run is at rest"


def fault_in_words(fault: AnyFault) -> str:
    """What a fault does, without its trigger."""
    match fault:
        case plan.KillTask(task=task):
            return f"task {task} is killed"
        case plan.KillNode(trigger=AtAim()):
            return "the pipeline is killed"
        case plan.KillNode(node=node):
            return f"node {node} is killed with every task on it"
        case plan.KillCoordinator(down_us=down_us):
            return f"the coordinator is killed and another takes over {time_in_words(down_us)} later"
        case plan.PauseTask(task=task, for_us=for_us):
            return f"task {task} is paused for {time_in_words(for_us)}, is declared lost and comes back"
        case plan.DelayChannel(sender=sender, receiver=receiver, by_us=by_us, for_us=for_us):
            return (
                f"for {time_in_words(for_us)} messages from {sender} to {receiver} take {time_in_words(by_us)} longer"
            )
        case plan.StallChannel(sender=sender, receiver=receiver, for_us=for_us):
            return f"the channel from {sender} to {receiver} stalls for {time_in_words(for_us)}"
        case plan.CutChannel(sender=sender, receiver=receiver, for_us=for_us):
            refused = f", and for {time_in_words(for_us)} new ones are refused" if for_us else ""
            return f"the connection from {sender} to {receiver} breaks{refused}"
        case plan.LoseMessage():
            return f"the next {_message(fault)} is lost"
        case plan.LateMessage(by_us=by_us):
            return f"the next {_message(fault)} comes {time_in_words(by_us)} late"
        case plan.RepeatMessage(after_us=after_us):
            return f"the next {_message(fault)} comes again {time_in_words(after_us)} later"
        case plan.FailWrite(what="delete-file"):
            return "the coordinator's next delete of a file of a snapshot fails"
        case plan.FailWrite(what="delete-record"):
            return "the coordinator's next delete of the record of a checkpoint fails"
        case plan.FailWrite(what="copy-file"):
            return "the coordinator's next write of a file that it copies for a user fails"
        case plan.FailWrite(what="copy-record"):
            return "the coordinator's next write of the record of a copy fails"
        case plan.FailWrite(task=task):
            return f"the next snapshot write of {task or 'the coordinator'} fails"
        case plan.FailRead(task=task):
            return f"the next snapshot read of {task or 'the coordinator'} fails once"
        case plan.TearWrite(task=task, how="lost-link"):
            return (
                f"the power fails in the next snapshot write of {task}: its files' names were not synced, and are lost"
            )
        case plan.TearWrite(how="copy"):
            return "the coordinator dies in its next write of a copy and leaves half a file"
        case plan.TearWrite(task=task):
            return f"{task or 'the coordinator'} dies in its next snapshot write and leaves half a file"
        case plan.LoseUnsynced(node=node):
            return f"node {node} loses power and every write that it had not synced"
        case plan.FailCommit(task=task, how=how, times=times):
            often = f" {times} times in a row" if times > 1 else ""
            return f"the next commit{f' of {task}' if task else ''} goes wrong{often} ({how.replace('-', ' ')})"
        case plan.RaiseInOperator(task=task, always=always):
            return f"the user function of {task} raises on its next record{', every time it comes' if always else ''}"
        case _:
            return _on_machines(fault)


def _on_machines(fault: MachineFault) -> str:
    match fault:
        case plan.PauseNode(node=node, for_us=for_us):
            return f"node {node} stands still for {time_in_words(for_us)} with every task on it"
        case plan.ResetChannel(sender=sender, receiver=receiver, for_us=for_us):
            return f"for {time_in_words(for_us)} every connection from {sender} to {receiver} is reset"
        case plan.SliceChannel(sender=sender, receiver=receiver, size=size, for_us=for_us):
            pieces = f"pieces of {count_in_words(size, 'byte')}"
            return f"for {time_in_words(for_us)} what {sender} sends to {receiver} comes in {pieces}"
        case plan.LimitChannel(sender=sender, receiver=receiver, bytes=limit):
            return f"the connection from {sender} to {receiver} closes after {count_in_words(limit, 'more byte')}"
        case plan.TimeoutChannel(sender=sender, receiver=receiver, after_us=after_us):
            closes = f"and {time_in_words(after_us)} later the connection closes"
            return f"what {sender} sends to {receiver} is dropped, {closes}"
        case plan.KillProxy(down_us=down_us):
            return f"the proxy of the channels is killed and another is there {time_in_words(down_us)} later"
        case plan.KillDatabase(down_us=down_us):
            return f"the external store is killed and there again {time_in_words(down_us)} later"


def command_in_words(command: AnyCommand) -> str:
    match command:
        case Savepoint(name=name):
            return f"{_savepoint(command, name)} is requested"
        case StopWithSavepoint(drain=drain, name=name):
            return f"the job is stopped with {_savepoint(command, name)}{' and drained' if drain else ''}"
        case Cancel():
            return "the job is cancelled"
        case CopySnapshot(snapshot=snapshot):
            return f"{_which(snapshot)} is to be copied"
        case MoveSnapshot(snapshot=snapshot):
            return f"{_which(snapshot)} is to be moved"
        case DeleteSnapshot(snapshot=snapshot):
            return f"{_which(snapshot)} is to be deleted"
        case Resume(inserted=inserted) if inserted:
            new = ", ".join(f"{name} before {behind}" for name, behind in inserted.items())
            return f"the job is started again{_from(command.snapshot)} with new operators: {new}"
        case Resume():
            whose = {"claim": ", which it claims", "no-claim": ", which it does not claim"}.get(command.claim_mode, "")
            source = _from(command.snapshot) or (" from the newest snapshot" if whose else "")
            return f"the job is started again{source}{whose}{_widths(command.parallelism)}{_changed(command)}"
        case Fork(snapshot="each"):
            how = f"{_widths(command.parallelism)}{_shares(command)}"
            return f"from each retained snapshot another job is started beside{how}"
        case Fork():
            how = f"{_from(command.snapshot)}{_widths(command.parallelism)}{_shares(command)}"
            return f"another job is started beside{how}"


def _which(snapshot: str) -> str:
    return f"the {snapshot} snapshot" if snapshot in ("newest", "oldest") else f"the savepoint {snapshot}"


def _shares(fork: Fork) -> str:
    return ", which refers to the files of this one" if fork.by_reference else ""


def _changed(command: Resume) -> str:
    """What an upgrade changes, and which states it moves."""
    upgrade = upgrade_of(command)
    if upgrade is None:
        return ""
    changes = [f"{name} has the uid {uid}" for name, uid in upgrade.renamed.items()]
    changes += [f"{name} keeps its sums in the type {kind}" for name, kind in upgrade.retyped.items()]
    changes += [f"{name} is removed" for name in upgrade.removed] + [f"{name} is added" for name in upgrade.added]
    moves = ", ".join(f"{old} to {new}" for old, new in upgrade.moves.items()) or "nothing"
    converts = ", ".join(f"the state of {uid}" for uid in upgrade.converts)
    mapping = f"the mapping moves {moves}{f' and converts {converts}' if converts else ''}"
    mapping += f"; {', '.join(upgrade.begin_empty)} may begin empty" if upgrade.begin_empty else ""
    mapping += "; states that nobody takes may be dropped" if upgrade.allow_non_restored_state else ""
    return f"; {' and '.join(changes) or 'nothing changes'}, and {mapping}"


def _savepoint(command: AnyCommand, name: str) -> str:
    """The savepoint that a command requests, with its format if the command names one."""
    kind = f"{named} " if (named := format_of(command)) else ""
    return f"{'an' if kind.startswith('i') else 'a'} {kind}savepoint{f' {name}' if name else ''}"


def _from(snapshot: str) -> str:
    """The snapshot with which a job begins, unless it is the newest."""
    if snapshot == "newest":
        return ""
    return " from the oldest snapshot" if snapshot == "oldest" else f" from the savepoint {snapshot}"


def _widths(parallelism: Mapping[str, int]) -> str:
    widths = ", ".join(f"{name} in {_tasks(number)}" for name, number in parallelism.items())
    return f", rescaled: {widths}" if widths else ""


def perturbation_in_words(perturbation: Perturbation) -> str:
    what, *rest = perturbation.what.split(" ")
    named = {
        "message": f"message through {rest[0]}",
        "control": f"{' message of '.join(rest)}",
        "write": f"snapshot write of {rest[0]}",
        "read": f"snapshot read of {rest[0]}",
        "step": f"step of {rest[0]}",
        "transaction": f"transaction request of {rest[0]}",
        "compaction": f"compaction of {rest[0]}",
    }[what]
    return f"the {ordinal(perturbation.occurrence)} {named} is {time_in_words(perturbation.by_us)} late"


def workload_in_words(scenario: Scenario) -> str:
    """The job: inputs, operators and sink, with their parallelism.  An operator that no job has is left out."""
    workload, parallelism = scenario.workload, scenario.topology.parallelism
    inputs = " and ".join(
        f"{source.name} ({count_in_words(sum(map(len, source.splits)), 'record')} in "
        f"{count_in_words(len(source.splits), 'split')}, {_tasks(parallelism[source.name])})"
        for source in workload.inputs
    )
    first, *upgraded = absent_of(scenario)
    nodes = "".join(
        f", {node.name} ({_tasks(parallelism[node.name])}{', added later' if node.name in first else ''})"
        for node in workload.nodes
        if node.name not in first or not all(node.name in absent for absent in upgraded)
    )
    return f"{inputs}{nodes}, into {_article(scenario.engine.sink)} sink ({_tasks(parallelism['sink'])})"


_ALIGNING = {
    "aligned": "",
    "unaligned": "unaligned, ",
    "timeout": "unaligned after a timeout, ",
    "in-turn": "aligned, unaligned and unaligned after a timeout in turn, ",
}


_SPILLING = {
    "at-once": "",
    "continuous": "spilled continuously, ",
    "buffer-timeout": "spilled after a timeout, ",
}


def engine_in_words(scenario: Scenario) -> str:
    engine = scenario.engine
    at_once = f", up to {engine.concurrent_checkpoints} at once" if engine.concurrent_checkpoints > 1 else ""
    kept = f"state in sorted files of {count_in_words(engine.memtable_entries, 'key')}, "
    where = "files" if engine.snapshot_store == "files" else "the coordinator's memory"
    chain = f" (each {ordinal(engine.full_every)} full)" if engine.snapshot_format == "incremental" else ""
    kind = "" if engine.snapshot_format == "canonical" else f"{engine.snapshot_format} "
    return (
        f"{engine.guarantee}, a checkpoint every {time_in_words(engine.checkpoint_interval_us)}{at_once}, "
        f"{_ALIGNING[engine.alignment]}{_SPILLING[engine.spilling]}{kept if engine.state_backend == 'lsm' else ''}"
        f"{engine.snapshot_mode} {kind}snapshots{chain} into {where}"
    )


def never_unaligned_in_words(scenario: Scenario) -> str:
    """The edges that are never unaligned, and why, for a job with unaligned checkpoints; else empty."""
    if scenario.engine.alignment == "aligned":
        return ""
    edges = ", ".join(f"{sender}>{receiver} ({why})" for (sender, receiver), why in never_unaligned(scenario).items())
    return f"Never unaligned: {edges or 'no edge'}."


def verdict_in_words(verdict: Verdict) -> tuple[str, str]:
    """The verdict as a terminal shows it, with its reason."""
    match verdict:
        case Holds(exercised=exercised):
            return "holds", f"exercised {count_in_words(exercised, 'time')}"
        case Violated(difference=difference):
            return "VIOLATED", difference
        case Unknown(reason=reason, detail=detail):
            return "unknown", f"{reason}: {detail}" if detail else reason


def _message(fault: plan.MessageFault) -> str:
    return f"{fault.message} message{f' from or to {fault.task}' if fault.task else ''}"


def _tasks(number: int) -> str:
    return count_in_words(number, "task")


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
