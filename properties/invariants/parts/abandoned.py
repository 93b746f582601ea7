"""Snapshots that a user left behind, by beginning a job from an older one.

That job takes the input again from the older snapshot on.  So its sinks abort the transactions that were sealed for the
newer ones and are not committed yet: otherwise their rows would be there twice.  From then on no job can begin from
such a newer snapshot, since the external store refuses to commit its transaction.
"""

from __future__ import annotations

from ...model.history import JobEnded, TaskFailed, Transaction
from ...quick_checker.case import Case


def is_refused_since_abandoned(case: Case, failed: TaskFailed) -> bool:
    """Whether a task failed because the store refused a transaction of a snapshot that a user had left behind.

    Its attempt has to have begun from that snapshot, or from a newer one: no other may ask for this transaction.
    """
    start = case.lineages.starts.get(failed.attempt)
    if not failed.why.is_lost_transaction or start is None or start.restores is None:
        return False
    begun_from = start.restores
    stored = (*case.history.transactions, *case.history.passing)
    asked = (one for one in stored if failed.why.names(one.name))
    return any((one.checkpoint or 0) <= begun_from and _was_abandoned(case, one) for one in asked)


def began_from_abandoned(case: Case, ended: JobEnded) -> bool:
    """Whether a task of this job failed for that reason."""
    before = max((end.order for end in case.commands.ends if end.order < ended.order), default=0)
    failures = (one for one in case.history.journal if isinstance(one, TaskFailed))
    return any(before < one.order < ended.order and is_refused_since_abandoned(case, one) for one in failures)


def _was_abandoned(case: Case, transaction: Transaction) -> bool:
    """Whether a transaction was sealed before a user began a job from an older snapshot, and aborted since."""
    checkpoint, sealed, aborted = transaction.checkpoint, transaction.prepared, transaction.aborted
    if checkpoint is None or sealed is None or aborted is None:
        return False
    return any(
        one.issued.kind == "resume"
        and one.answer is not None
        and one.answer.checkpoint is not None
        and one.answer.checkpoint < checkpoint
        and sealed < one.issued.order < aborted
        for one in case.commands.asked
    )
