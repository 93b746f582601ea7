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
"""A busy machine stores late: a checkpoint that begins amid records is not given up before it is complete."""


def conforms(subject: Subject, asked: Scenario, *shown: str) -> Result:
    """Run and judged: nothing is violated, and these were exercised and hold.

    In real time nobody can promise that a checkpoint has events amid its snapshots, without which consistent-cut is
    not exercised: there it may be unknown for that reason alone.
    """
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


def committed(result: Result) -> Counter[Row]:
    return Counter(result.history.committed)


def statuses(result: Result) -> list[str]:
    return [entry.status for entry in result.history.journal if isinstance(entry, JobEnded)]
