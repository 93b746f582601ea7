"""The in-flight data of a completed checkpoint, compared with the records sent before it and taken after it."""

from __future__ import annotations

from collections import Counter

from ...model.history import TaskRun
from ...model.verdict import Violated
from ...model.words import LIMIT, record_in_words, row_in_words
from ...model.workload import Row
from ...quick_checker.case import Case
from ...reconstruct.in_flight import NOTHING, records


def wrongly_in_flight(case: Case, channel: str, run: TaskRun, checkpoint: int, received: int) -> Violated | None:
    """A channel whose in-flight records in a checkpoint are not those that its receiver had not taken.

    The order of the records, and the content that the sender sent, are compared too.
    """
    log = case.content(channel, run)
    held = case.lineages.snapshots.in_flight(checkpoint).get(channel, NOTHING)
    if log is None or not (held.queued or held.unsent):
        return None
    rows = records(held.queued) + records(held.unsent)
    stored = [origin for origin, _ in rows]
    expected = log.content[received : received + len(stored)]
    # If the sender's attempt failed, unsent records may never have been sent.
    if stored[: len(expected)] != expected or len(expected) < len(records(held.queued)):
        wrong = sorted((Counter(stored) - Counter(expected)) | (Counter(expected) - Counter(stored))) or stored
        return _differs(
            case, channel, checkpoint, wrong, "differ from those that were in flight, or are in another order"
        )
    if not case.is_determined(at_sink=False):
        return None  # several rows of one origin: which went where is unknown
    changed = [(origin, row) for origin, row in rows if not _was_emitted(case, channel, run, origin, row)]
    if changed:
        origin, row = changed[0]
        return _differs(
            case, channel, checkpoint, [origin], f"include the row {row_in_words(row)}, which was never sent"
        )
    return None


def _was_emitted(case: Case, channel: str, run: TaskRun, origin: int, row: Row) -> bool:
    """Whether the sender emitted a row in this attempt, or in the one from which the receiver was restored."""
    replay = case.expected.replay
    emitted = replay.stream(channel.partition(">")[0], run.attempt).by_origin.get(origin, [])
    return row in emitted or row in replay.restored_rows(run, channel).get(origin, [])


def _differs(case: Case, channel: str, checkpoint: int, origins: list[int], clause: str) -> Violated:
    sender, _, receiver = channel.partition(">")
    return Violated(
        difference="in-flight data differs",
        message=f"the records that checkpoint {checkpoint} holds of {channel} {clause}",
        records=tuple(record_in_words(case.workload, origin) for origin in origins[:LIMIT]),
        checkpoint=checkpoint,
        tasks=(sender, receiver),
        events=(f"in flight in {channel} at checkpoint {checkpoint}: {len(origins)} records differ",),
    )
