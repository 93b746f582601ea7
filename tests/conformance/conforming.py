"""How a subject's run is asked whether it conforms."""

from __future__ import annotations

from collections import Counter

from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.port import Subject
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import FaultFired, JobEnded
from cutproof.properties.model.verdict import Holds, Unknown
from cutproof.properties.model.workload import Row

EXACTLY = ("exactly-once", "no-data-loss", "consistent-cut", "restored-state", "visibility", "progress", "no-leaks")

PATIENTLY = {"checkpoint_timeout_us": 200_000}
"""A busy machine stores late: a checkpoint that begins amid records is not aborted before it is complete."""


RUNS = 5
"""of a scenario in real time at most: none is violated, and one of them exercises what is asked for"""


def conforms(subject: Subject, asked: Scenario, *shown: str) -> Result:
    """Run and judged: nothing is violated, and these were exercised and hold.

    In real time a busy machine decides what a fault hits: the scenario is run until it exercises what is asked for.
    Nobody can promise there that a checkpoint has events amid its snapshots, without which consistent-cut is not
    exercised: it may be unknown for that reason alone.
    """
    result = run(subject, asked)
    for _ in range(RUNS - 1 if subject.capabilities.real_time else 0):
        if result.judgement.violated or not any(_is_unexercised(result, name) for name in shown):
            break
        result = run(subject, asked)
    assert result.judgement.violated == {}
    for name in shown:
        verdict = result.judgement.verdicts[name]
        if name == "consistent-cut" and subject.capabilities.real_time and isinstance(verdict, Unknown):
            assert verdict.reason == "not exercised", verdict
        else:
            assert isinstance(verdict, Holds), (name, verdict)
    fired = {entry.fault for entry in result.history.journal if isinstance(entry, FaultFired)}
    assert fired == set(range(len(asked.faults)))
    return result


def _is_unexercised(result: Result, name: str) -> bool:
    verdict = result.judgement.verdicts[name]
    return name != "consistent-cut" and isinstance(verdict, Unknown) and verdict.reason == "not exercised"


def committed(result: Result) -> Counter[Row]:
    return Counter(result.history.committed)


def statuses(result: Result) -> list[str]:
    return [entry.status for entry in result.history.journal if isinstance(entry, JobEnded)]
