"""restorable: every retained snapshot can be restored, and nothing that is owed behind it is lost.

A fork is a job that was really started from a copy of all stores, as they would be if a
retained snapshot c were the last that completed.  Its lineage begins with that of c.
Nothing disturbs the fork.  So it restores c, at the same parallelism or at another; it
holds what the store has of c; no attempt fails; and it comes to rest.  What its sink
then shows is what an undisturbed run would show: exactly-once or at-least-once, as the
engine promises, and without loss.  The rows that are owed are computed as those of any
other run, since a fork has a history of its own.

A fork may fail, and give that reason, if the store had given up a transaction that c
needs (an injected fault let it expire).  It may also fail if hardly any failed
checkpoint is tolerated, since checkpoints are aborted without a fault too, for example
at the end of the input.  Then the verdict is unknown: assumption broken.

Exercised by each fork whose snapshot held something, if its state or its rows were compared.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..model.history import AttemptRunning, CheckpointAborted, CommandIssued, Forked, JobEnded, TaskFailed
from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated, merge
from ..model.words import journal_until
from ..quick_checker.case import Case
from . import at_least_once, exactly_once, no_data_loss, restored_state

FEW = (0, 1, 2)
"""tolerated failures of checkpoints, of which a correct engine may have more without a fault"""

OF_A_FORK: dict[str, Callable[[Case], Verdict]] = {
    "restored-state": restored_state.check,
    "exactly-once": exactly_once.check,
    "at-least-once": at_least_once.check,
    "no-data-loss": no_data_loss.check,
}
"""The invariants of any run that a forked job must keep; a fork that does not keep one violates this one."""


NOT_ASKED = (Reason.NOT_PROMISED, Reason.NOT_EXERCISED)
"""reasons for which one of them may be unknown while the others hold"""


def check(case: Case) -> Verdict:
    if "restorable" not in case.promised:
        return case.not_promised("restorable", f"{case.history.guarantee} mode restores no snapshot")
    if not case.forks:
        return Unknown(reason=Reason.NOT_EXERCISED, detail="no retained snapshot was forked")
    return merge([_of_fork(forked, fork) for forked, fork in case.forks])


def _of_fork(forked: Forked, fork: Case) -> Verdict:
    failed = _failure(forked, fork)
    if failed is not None:
        return failed
    found = {name: checker(fork) for name, checker in OF_A_FORK.items()}
    for verdict in found.values():
        if isinstance(verdict, Violated):
            return _said_of(forked, verdict)
    for verdict in found.values():
        if isinstance(verdict, Unknown) and verdict.reason not in NOT_ASKED:
            return verdict
    if not any(state.holds_something for state in fork.states(forked.checkpoint).values()):
        return Unknown(reason=Reason.NOT_EXERCISED, detail=f"checkpoint {forked.checkpoint} held nothing")
    if not any(isinstance(verdict, Holds) for verdict in found.values()):
        return Unknown(
            reason=Reason.NOT_EXERCISED, detail=f"nothing behind checkpoint {forked.checkpoint} was compared"
        )
    return Holds(exercised=1)


def _failure(forked: Forked, fork: Case) -> Verdict | None:
    """What kept the forked job from beginning, or from coming to rest."""
    runs, aborted = False, 0
    for entry in fork.history.journal[begun_at(forked, fork) :]:
        if isinstance(entry, TaskFailed) or (isinstance(entry, JobEnded) and entry.status == "failed"):
            if entry.why.is_lost_transaction:
                return Unknown(
                    reason=Reason.ASSUMPTION_BROKEN, detail=f"the forked job gave its reason: {entry.reason}"
                )
            if isinstance(entry, JobEnded) and aborted > fork.history.tolerated_failures in FEW:
                return Unknown(
                    reason=Reason.ASSUMPTION_BROKEN, detail=f"the forked job gave its reason: {entry.reason}"
                )
            return _violated(forked, fork, "not restored", f"failed: {entry.reason}", entry.order)
        aborted += isinstance(entry, CheckpointAborted) and entry.failed
        runs = runs or isinstance(entry, AttemptRunning | JobEnded)
    if not runs:
        return _violated(forked, fork, "not restored", "never ran", None)
    if not fork.history.quiet:
        return _violated(forked, fork, "no rest", "did not come to rest", None)
    return None


def begun_at(forked: Forked, fork: Case) -> int:
    """The place in the journal at which the forked job begins."""
    entries = enumerate(fork.history.journal)
    return max(at for at, one in entries if isinstance(one, CommandIssued) and one.command == forked.command)


def _said_of(forked: Forked, found: Violated) -> Violated:
    """What an invariant of any run found in the forked job."""
    message = f"a job that was forked from checkpoint {forked.checkpoint}: {found.message}"
    return msgspec.structs.replace(found, message=message)


def _violated(forked: Forked, fork: Case, difference: str, what: str, order: int | None) -> Violated:
    return Violated(
        difference=difference,
        message=f"a job that was forked from checkpoint {forked.checkpoint} {what}",
        checkpoint=forked.checkpoint,
        events=journal_until(fork.history, order),
    )
