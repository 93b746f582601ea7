"""Why PySpark is not asked about some rows or state of a case, and how many judges decided a verdict.

There are two judges.  The quick checker judges every history.  PySpark computes the
expected rows and keyed state of a case if the history determines PySpark's input.  If
not, the quick checker is the only judge, and this is counted and reported.  The
questions themselves show what PySpark was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from ..invariants.parts.incompatible import undescribed
from ..model.history import TaskRun
from ..model.upgrade import SCALES
from ..model.verdict import Holds, Verdict, Violated
from ..model.workload import END_OF_TIME, User, is_clocked
from ..quick_checker.case import Case
from ..reconstruct.buffered_rows import batches
from ..semantics.broadcast import with_rules
from ..semantics.classes import FOLLOWING
from ..semantics.user_functions import user_nodes
from .bounds import beyond_64_bits
from .watermarks import watermarks

UNDESCRIBED = "a job began with operators that the workload does not describe"
GIVEN = "PySpark gave the expected rows, and the quick checker compared them"
TOO_LARGE = "its numbers may leave 64 bits"
UNSEEN = "no witness saw in which order its operators took their records"
OUT_OF_ORDER = "a task took its snapshots in another order than that of their numbers"
CLOCKED = "a user's function goes by processing time"
USERS = "a user's function took its records in an order of the run's own"
BATCHES = "which attempt made the rows that batches buffered is not followed"
RESCALED = "a job with windows or rules was rescaled"
LOCAL_RECOVERY = "a task recovered locally"
RETYPED = "a task that had finished kept a state of the type before"
NOT_RESTORED = "a channel was not restored with the in-flight data of its checkpoint"
BEHIND_THE_END = "an operator in processing time took records behind the end of its input"
HIDDEN = "the history does not show which row was applied at which subtask"
DRAINED = "windows continued after a drain"
OFF_LINEAGE = "a checkpoint with keyed state lies off the run's lineage"
LACKING = "a completed checkpoint lacks a snapshot"
NO_STATE = "no completed checkpoint held keyed state"
NEITHER = "the difference is not in rows or keyed state, all that PySpark computes"
SPARK_FAILED = "Spark failed"
ENDED = "the run ended before PySpark had answered"
QUICK = "only the quick checker was asked for"

REASONS = (
    UNDESCRIBED,
    GIVEN,
    TOO_LARGE,
    UNSEEN,
    OUT_OF_ORDER,
    CLOCKED,
    USERS,
    BATCHES,
    RESCALED,
    LOCAL_RECOVERY,
    RETYPED,
    NOT_RESTORED,
    BEHIND_THE_END,
    HIDDEN,
    DRAINED,
    OFF_LINEAGE,
    LACKING,
    NO_STATE,
    NEITHER,
    SPARK_FAILED,
    ENDED,
    QUICK,
)
"""All reasons.  Each completes "PySpark was not asked, because …", or is one of `WHOLE_SENTENCES`."""

WHOLE_SENTENCES = (GIVEN, NEITHER, SPARK_FAILED, ENDED)
"""Reasons that are whole sentences.  PySpark may have been asked: it did not answer, or its answer does not decide.  Or
it had been asked before the run."""


def in_words(reason: str) -> str:
    """Why PySpark did not decide a verdict, as a clause."""
    return reason if reason in WHOLE_SENTENCES else f"PySpark was not asked, because {reason}"


class Unasked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why PySpark does not compute everything that the verdicts on a case are compared with.

    `rows` are the expected rows up to the closing cut, `state` is all keyed state of completed checkpoints, `forks` are
    the expected rows of the jobs that were forked.  Each has one of `REASONS`, or is empty if PySpark is asked.
    """

    rows: str = ""
    state: str = ""
    forks: str = ""


ASKED = Unasked()
"""PySpark is asked for all rows and state."""


def nothing_asked(case: Case) -> str:
    """Why there is no question about a case at all; empty if there may be one."""
    if case.workload.query:
        return GIVEN
    scales = {name: max(SCALES.values()) for name in case.retyped}
    if any(beyond_64_bits(one, scales=scales) for one in case.jobs.workloads):
        return TOO_LARGE
    if case.is_black_box:
        return "" if case.from_outside.follows_input else UNSEEN
    if undescribed(case) is not None:
        return UNDESCRIBED
    if not _numbers_rise(case):
        return OUT_OF_ORDER
    if _finished_before_it_was_retyped(case):
        return RETYPED
    window = case.window
    return CLOCKED if window is not None and isinstance(window.operator, User) and window.operator.clocked else ""


def _finished_before_it_was_retyped(case: Case) -> bool:
    """Whether a task of a retyped sum had finished at some checkpoint: its last state stays as it was stored.

    PySpark scales all states of a checkpoint by the job that took it.
    """
    operator_of = case.lineages.operator_of
    finished = (task for entry in case.history.completed for task in entry.finished)
    return bool(case.retyped) and any(operator_of.get(task) in case.retyped for task in finished)


def _numbers_rise(case: Case) -> bool:
    """Whether the checkpoints of each task of the lineage are numbered in the order of its snapshots.

    PySpark is given one epoch for each record: the first checkpoint that covers it, by number.
    Where a broken engine gives a number away twice, or takes an older checkpoint's snapshot
    after a newer one's, a record can be in the older cut and not in the newer one.
    """
    for segments in case.lineage.segments.values():
        of_lineage = [mark.checkpoint for segment in segments for mark in segment.marks]
        of_runs = [[mark.checkpoint for mark in segment.run.marks] for segment in segments]
        if any(later <= earlier for numbers in (of_lineage, *of_runs) for earlier, later in pairwise(numbers)):
            return False
    return True


def applied_unasked(case: Case) -> str:
    """Why there is no question about rows and state that follow the applied records; empty if there may be one."""
    if user_nodes(case.workload):
        return USERS
    if batches(case.workload):
        return BATCHES
    if _is_rescaled(case):
        return RESCALED
    if case.lineages.persistent is not None:
        return LOCAL_RECOVERY
    if not _is_restored_in_flight(case):
        return NOT_RESTORED
    if _took_behind_the_end(case):
        return BEHIND_THE_END
    return "" if case.is_determined() else HIDDEN


def _is_restored_in_flight(case: Case) -> bool:
    """Whether each channel of the lineage went on with the in-flight data of the checkpoint that was restored.

    PySpark takes the n-th application of an origin for the n-th row of it that an attempt made.  If a broken engine
    loses a row in flight, the later ones move up, and it is not known which of them was lost.  If it stores a row for
    two channels, both put it back, and there are more applications than rows.
    """
    for attempt in case.lineage.attempts:
        start = case.lineages.starts.get(attempt)
        if start is None or start.restores is None or case.rescaled(attempt, start.restores):
            continue
        if _is_held_twice(case, start.restores):
            return False
        for name, held in case.lineages.snapshots.in_flight(start.restores).items():
            log = case.channels.get((name, attempt))
            both = zip(log.content, held.origins, strict=False) if log is not None else ()
            if any(came != kept for came, kept in both):
                return False
        if not all(_loaded_in_flight(case, run, start.restores) for run in case.history.runs if run.attempt == attempt):
            return False
    return True


def _is_held_twice(case: Case, checkpoint: int) -> bool:
    """Whether a checkpoint has in-flight rows of one origin in two channels of an edge by hash.

    The rows of an origin have one key, so one channel has them all.  But behind a broadcast edge each subtask may send
    rows of the same origin.
    """
    layout = case.jobs.layouts[case.lineages.completed[checkpoint].job]
    if any(edge.partitioning == "broadcast" for edge in layout.edges):
        return False
    by_hash = {(edge.sender, edge.receiver) for edge in layout.edges if edge.partitioning == "hash"}
    operator_of = case.lineages.operator_of
    places: dict[tuple[str, str, int], str] = {}
    for name, held in case.lineages.snapshots.in_flight(checkpoint).items():
        sender, _, receiver = name.partition(">")
        edge = operator_of.get(sender, ""), operator_of.get(receiver, "")
        if edge in by_hash and any(places.setdefault((*edge, origin), name) != name for origin in held.origins):
            return True
    return False


def _loaded_in_flight(case: Case, run: TaskRun, checkpoint: int) -> bool:
    """Whether a run that loaded a checkpoint's state found in its channels what was stored.  The origins of what the
    task then took do not tell the rows of one record apart."""
    stored = case.lineages.snapshots.states(checkpoint).get(run.task)
    if run.loaded is None or run.loaded.checkpoint != checkpoint or stored is None:
        return True
    loaded = case.lineages.snapshots.loaded(run)
    return loaded is not None and (loaded.queued, loaded.unsent) == (stored.queued, stored.unsent)


def _took_behind_the_end(case: Case) -> bool:
    """Whether an operator in processing time took a record after all time had passed for it on the lineage.

    A broken engine reads again, in a later attempt, what ended before the restored checkpoint.  The operator then goes
    by its clock again.  For PySpark the time on a lineage never goes back: the records have no moment.
    """
    window = case.window
    if window is None or not is_clocked(window.operator):
        return False
    return any(
        time >= END_OF_TIME - 1
        for attempt in case.lineage.attempts
        for times in watermarks(case, case.lineages.of_attempt(attempt), window.name).values()
        for time in times
    )


def _is_rescaled(case: Case) -> bool:
    """Whether a job was rescaled while subtasks had state of their own.

    A window's new subtask takes its watermark from several old subtasks.  A new subtask takes
    its copy of broadcast state from one old subtask.  The oracle's questions have neither.
    """
    return case.jobs.rescale and (case.window is not None or bool(with_rules(case.workload)))


def unasked(case: Case, rows: Sequence[int], states: Sequence[tuple[int, str]]) -> Unasked:
    """What the questions leave out; `rows` are the cuts, `states` the (checkpoint, node), that some question has."""
    if case.is_black_box:
        return Unasked(rows="" if rows else nothing_asked(case), state=NO_STATE)
    nothing = "" if rows or states else nothing_asked(case)
    return Unasked(rows=_rows_unasked(case, rows, nothing), state=_state_unasked(case, frozenset(states), nothing))


def _rows_unasked(case: Case, asked: Sequence[int], nothing: str) -> str:
    closing_epoch = case.closing.epoch
    if asked and (closing_epoch in asked or closing_epoch < 0):
        return ""
    if asked:
        return DRAINED
    return nothing or (applied_unasked(case) if case.expected.follows_applies else "") or HIDDEN


def _state_unasked(case: Case, asked: frozenset[tuple[int, str]], nothing: str) -> str:
    if nothing:
        return nothing
    expected = list(_keyed_state(case))
    if not expected:
        return NO_STATE
    return next((_why(case, checkpoint, node) for checkpoint, node in expected if (checkpoint, node) not in asked), "")


def _keyed_state(case: Case) -> Iterator[tuple[int, str]]:
    """(checkpoint, node) of all keyed state, except that of user functions: only the user knows its meaning."""
    users = user_nodes(case.workload)
    for checkpoint in sorted(case.lineages.completed):
        for node, entries in case.expected.states(checkpoint).items():
            if entries and node not in users:
                yield checkpoint, node


def _why(case: Case, checkpoint: int, node: str) -> str:
    if not case.by_applies and case.classes[node] not in FOLLOWING:
        return DRAINED
    unasked_reason = applied_unasked(case)
    if unasked_reason:
        return unasked_reason
    if checkpoint not in case.lineage.checkpoints:
        return OFF_LINEAGE
    return DRAINED if _is_behind_a_drain(case, checkpoint) else LACKING


def _is_behind_a_drain(case: Case, checkpoint: int) -> bool:
    return any(drain < checkpoint for drain in case.drained) and case.window is not None


ROWS_DIFFER = frozenset({"lost row", "repeated row", "wrong row", "unexpected row"})

IN_ROWS: dict[str, frozenset[str]] = {
    "exactly-once": ROWS_DIFFER,
    "no-data-loss": ROWS_DIFFER,
    "consistent-cut": ROWS_DIFFER,
    "at-least-once": frozenset({"lost row", "wrong row"}),
    "visibility": frozenset({"rows seen too early"}),
}
"""By invariant, the kinds of difference from the expected rows.  For at-least-once, the records that all attempts
applied decide which rows are too many, and PySpark is not given the attempts off the lineage."""

IN_FORKS: dict[str, frozenset[str]] = {"restorable": ROWS_DIFFER}
"""By invariant, the kinds of difference from the expected rows of a forked job."""

IN_STATE: dict[str, frozenset[str]] = {"consistent-cut": frozenset({"state differs"})}
"""By invariant, the kinds of difference from the expected keyed state."""


def one_judge(invariant: str, verdict: Verdict, why: Unasked) -> str:
    """Why only the quick checker decided a verdict; empty if PySpark computed the expected rows or state too."""
    if isinstance(verdict, Violated):
        in_rows = verdict.difference in IN_ROWS.get(invariant, ())
        in_state = verdict.difference in IN_STATE.get(invariant, ())
        in_forks = verdict.difference in IN_FORKS.get(invariant, ())
    else:
        in_rows, in_state, in_forks = invariant in IN_ROWS, invariant in IN_STATE, invariant in IN_FORKS
    if in_forks:
        return why.forks
    if not in_rows and not in_state:
        return NEITHER
    state = why.state if in_state else ""
    if state == NO_STATE:  # a batch's state is rows
        in_rows, state = True, ""
    return state or (why.rows if in_rows else "")


def by_both(verdicts: dict[str, Verdict], why: Unasked) -> tuple[str, ...]:
    """The invariants that both judges decided, once PySpark has answered."""
    decided = ((name, verdict) for name, verdict in verdicts.items() if isinstance(verdict, (Holds, Violated)))
    return tuple(name for name, verdict in decided if not one_judge(name, verdict, why))
