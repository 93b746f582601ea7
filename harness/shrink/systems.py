"""A violated system made smaller: without a snapshot, an act, a channel or a process, as long as it fails in the
same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ...properties.model.verdict import Violated
from ..reference_engine.graphs.run import SystemRun, run_and_judge
from ..reference_engine.graphs.system import System, faults_of

Judge = Callable[[System], SystemRun]


def shrunk(system: System, difference: str, judge: Judge = run_and_judge) -> System:
    """The smallest system found that can run and whose snapshots are wrong in the same way; each step drops a part."""
    while True:
        smaller = next((one for one in _smaller(system) if _fails(one, difference, judge)), None)
        if smaller is None:
            return system
        system = smaller


def _fails(system: System, difference: str, judge: Judge) -> bool:
    if faults_of(system):
        return False
    verdict = judge(system).verdict
    return isinstance(verdict, Violated) and verdict.difference == difference


def _smaller(system: System) -> Iterator[System]:
    """The systems with one part less, the largest parts first; what depends on a part is dropped with it."""
    for process in system.processes:
        yield _without_process(system, process)
    for channel in system.channels:
        yield _without_channels(system, [channel.name])
    for number in range(len(system.beginnings)):
        yield replace(system, beginnings=system.beginnings[:number] + system.beginnings[number + 1 :])
    for number in range(len(system.acts)):
        yield replace(system, acts=system.acts[:number] + system.acts[number + 1 :])


def _without_process(system: System, process: str) -> System:
    ends = [one.name for one in system.channels if process in (one.sender, one.receiver)]
    return replace(
        _without_channels(system, ends),
        processes=tuple(name for name in system.processes if name != process),
        acts=tuple(act for act in system.acts if act.process != process and act.channel not in ends),
        beginnings=tuple(one for one in system.beginnings if one.process != process),
    )


def _without_channels(system: System, names: list[str]) -> System:
    return replace(
        system,
        channels=tuple(one for one in system.channels if one.name not in names),
        acts=tuple(act for act in system.acts if act.channel not in names),
    )
