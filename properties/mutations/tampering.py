"""Mutations of a recorded run; some invariant must be violated by each.

A judge that never answers "violated" is worthless, and with a correct engine nobody would notice.  So a history is
changed for which an invariant held, and the verdict has to change.  A mutation may drop or repeat a committed row,
replace it by a row that differs in its tag only, move a cut, edit a state, put a commit before the checkpoint's
completion, and more.  A mutation is pure.  It keeps the rest of the history consistent, so that the history can still
be read, and violates the intended invariant.

The history alone determines which record, row or snapshot is changed: the middle one of all candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..model.history import History, Read, SnapshotDeleted, TaskFailed, Transaction
from ..model.workload import Row
from ..quick_checker.case import Case
from ..quick_checker.idempotent_table import identity_of
from . import forks
from .batches import hold_back, show_waiting_row
from .claims import CLAIM_MUTATIONS
from .commands import (
    announce_nothing,
    answer_with_nothing,
    begin_with_another,
    bring_incompatible_operator,
    drop_command,
    forget_a_move,
    lose_file,
    refuse_without_a_name,
    take_back_a_permission,
    take_no_checkpoint,
)
from .committers import (
    commit_two_phase_early,
    commit_two_phase_unsealed,
    publish_in_halves,
    reopen_two_phase_transaction,
)
from .copies import COPY_MUTATIONS
from .cuts_and_records import (
    Alteration,
    Mutation,
    drop_loaded_rule,
    drop_stored_rule,
    edit_loaded,
    edit_stored,
    input_first,
    knows_rows_read,
    middle,
    move_cut,
    out_of_range,
    repeat_apply,
    shift_epoch,
    skip_apply,
    swap_applies,
)
from .deletions import DELETION_MUTATIONS, LISTING_MUTATIONS
from .event_time import add_pending_timer, advance_early, end_early, shift_time
from .in_flight import change_in_flight, drop_in_flight, move_in_flight, swap_in_flight
from .persistent_logs import keep_deleted_log, trim_early
from .processing_time import end_clock_early, keep_timer
from .transactions import (
    add_sealed_transaction,
    commit_unsealed,
    end_time_early,
    mix_epochs,
    read_before_completion,
    reopen_aborted_transaction,
    reopen_pending_transaction,
    show_open_window,
)

FOREVER = ("alive", "finished", "drained", "stopped")
"""The statuses of a job that has to end its transactions."""


class Tampering(msgspec.Struct, frozen=True, kw_only=True):
    """One mutation: if one of `invariants` held, at least one of them must be violated afterwards."""

    name: str
    invariants: tuple[str, ...]
    alter: Alteration

    def apply(self, history: History) -> History:
        """A mutated copy of a history."""
        copy = msgspec.msgpack.decode(msgspec.msgpack.encode(history), type=History)
        self.alter(copy)
        return copy


def tamperings(case: Case) -> list[Tampering]:
    """The mutations for which this history has a place, and whose invariants are promised."""
    found = []
    for name, mutate in MUTATIONS.items():
        mutation = mutate(case)
        if mutation is None:
            continue
        touched = tuple(invariant for invariant in mutation[0] if invariant in case.promised)
        if touched:
            found.append(Tampering(name=name, invariants=touched, alter=mutation[1]))
    return found


# rows that a reader sees


def _expected_once(case: Case) -> list[int]:
    """The indices in `committed` of rows that do not show more often than expected; in at-most-once mode all rows."""
    if case.history.guarantee == "at-most-once":
        return list(range(len(case.history.committed)))
    if case.is_black_box:
        seen_from_outside = case.from_outside.due
        return [at for at, row in enumerate(case.history.committed) if case.committed[row] <= seen_from_outside[row]]
    if case.history.sink == "idempotent":
        due = {identity_of(case, row) for row in case.expected.rows_up_to(case.closing.epoch)}
        return [at for at, row in enumerate(case.history.committed) if identity_of(case, row) in due]
    expected = case.expected.rows_up_to(case.closing.epoch)
    return [at for at, row in enumerate(case.history.committed) if case.committed[row] <= expected[row]]


def _drop_row(case: Case) -> Mutation | None:
    at = middle(_expected_once(case))
    if at is None:
        return None

    def alter(history: History) -> None:
        del history.committed[at]

    return ("exactly-once", "no-data-loss", "at-least-once"), alter


def _repeat_row(case: Case) -> Mutation | None:
    places: Sequence[int] = range(len(case.history.committed))
    if case.history.guarantee == "at-most-once":
        # Only a row that shows as often as it was made: a repeat of any other row could be a lost copy of it.
        made = case.expected.replay.yielded()
        places = [at for at in places if case.committed[case.history.committed[at]] >= made[case.history.committed[at]]]
    at = middle(places)
    if at is None:
        return None

    def alter(history: History) -> None:
        history.committed.insert(at, history.committed[at])

    return ("exactly-once", "at-most-once"), alter


def _copy_twin(case: Case) -> Mutation | None:
    rows = case.history.committed
    twins: dict[tuple[int | None, int | None], Row] = {}
    found = []
    for at in _expected_once(case):
        twin = twins.setdefault(rows[at][:2], rows[at])
        if twin != rows[at]:
            found.append((at, twin))
    chosen = middle(found)
    if chosen is None:
        return None

    def alter(history: History) -> None:
        history.committed[chosen[0]] = chosen[1]

    return ("exactly-once", "no-data-loss", "at-least-once", "at-most-once"), alter


def _alter_row(case: Case) -> Mutation | None:
    at = middle(_expected_once(case))
    if at is None:
        return None

    def alter(history: History) -> None:
        key, value, tag, tag2 = history.committed[at]
        history.committed[at] = (key, out_of_range(value), tag, tag2)

    return ("exactly-once", "at-least-once", "at-most-once"), alter


# transactions, reads and listings


def _commit_early(case: Case) -> Mutation | None:
    """A commit is requested before any snapshot is complete."""
    asked = [at for at, one in enumerate(case.history.transactions) if one.rows and one.commit_requested is not None]
    at = middle(asked)
    if at is None:
        return None

    def alter(history: History) -> None:
        transaction = history.transactions[at]
        transaction.commit_requested = min(entry.order for entry in history.completed) - 1

    return ("visibility",), alter


def _commit_dead(case: Case) -> Mutation | None:
    """A transaction that was open when its attempt died is committed."""
    dead = [at for at, one in enumerate(case.history.transactions) if one.rows and one.prepared is None and one.aborted]
    at = middle(dead)
    if at is None:
        return None

    def alter(history: History) -> None:
        transaction = history.transactions[at]
        transaction.commit_requested = transaction.committed = transaction.aborted
        transaction.status, transaction.aborted = "committed", None
        history.committed += transaction.rows

    return ("visibility", "exactly-once"), alter


def _read_early(case: Case) -> Mutation | None:
    """A reader sees a row before any snapshot is complete."""
    if not case.history.committed or not case.history.completed or case.history.sink != "transactional":
        return None
    if not knows_rows_read(case):
        return None

    def alter(history: History) -> None:
        order = min(entry.order for entry in history.completed) - 1
        history.reads.insert(0, Read(began=order, ended=order, rows=1))

    return ("visibility",), alter


def _status(case: Case) -> str:
    return case.ended.status if case.ended is not None else "alive"


def _forget_commit(case: Case) -> Mutation | None:
    """A sealed transaction of a completed snapshot is never committed."""
    held = {
        name
        for number in case.lineage.checkpoints
        for one in case.states(number).values()
        for name, _ in one.transactions
    }
    done = [at for at, one in enumerate(case.history.transactions) if one.status == "committed" and one.name in held]
    at = middle(done)
    if at is None or _status(case) not in FOREVER:
        return None

    def alter(history: History) -> None:
        transaction = history.transactions[at]
        transaction.status, transaction.committed = "prepared", None
        for row in transaction.rows:
            history.committed.remove(row)
        history.residue.prepared_transactions.append(transaction.name)

    return ("progress",), alter


def _add_open_transaction(case: Case) -> Mutation | None:
    """A sink subtask has one open transaction too many."""
    first = middle(case.history.transactions[:1])
    if first is None or _status(case) not in FOREVER:
        return None

    def alter(history: History) -> None:
        name = first.name + "-left"
        history.transactions.append(
            Transaction(name=name, task=first.task, attempt=first.attempt, begun=first.begun + 1)
        )
        history.residue.open_transactions.append(name)

    return ("no-leaks",), alter


def _add_deleted_file(case: Case) -> Mutation | None:
    """A deleted file is still in the store."""
    there = set(case.history.residue.files)
    deleted = [
        handle
        for entry in case.history.journal
        if isinstance(entry, SnapshotDeleted)
        for handle in entry.handles
        if handle not in there
    ]
    handle = middle(deleted) or "left-behind"

    def alter(history: History) -> None:
        history.residue.files.append(handle)

    return ("no-leaks",), alter


def _fail_unexplained(case: Case) -> Mutation | None:
    """A task failed without an injected fault."""
    run = middle(case.history.runs)
    if run is None:
        return None

    def alter(history: History) -> None:
        failed = TaskFailed(
            order=run.started + 1, at_us=0, task=run.task, attempt=run.attempt, reason="an exception in the engine"
        )
        later = [at for at, entry in enumerate(history.journal) if entry.order > failed.order]
        history.journal.insert(later[0] if later else len(history.journal), failed)

    return ("progress",), alter


EVENT_TIME_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "leave a window open at the end": add_pending_timer,
    "end an input early": end_early,
    "shift a stored time": shift_time,
    "advance a watermark early": advance_early,
    "end the time of an input early": end_time_early,
    "leave a transaction pending at the end": reopen_pending_transaction,
    "show a window that was open at a stop": show_open_window,
}
"""Mutations that need a history with windows."""

BATCH_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "hold a row back at the end": hold_back,
    "show a row that waited at a stop": show_waiting_row,
}
"""Mutations that need a history in which batches buffer rows."""

COMMITTER_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "publish a checkpoint in halves": publish_in_halves,
    "commit early what is passed on": commit_two_phase_early,
    "commit unsealed what is passed on": commit_two_phase_unsealed,
    "leave open what is passed on": reopen_two_phase_transaction,
}
"""Mutations that need a history with a global committer or with two-phase operators."""

RULE_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "drop a rule from a stored copy": drop_stored_rule,
    "drop a rule from a loaded copy": drop_loaded_rule,
}
"""Mutations that need a history with broadcast state."""

PROCESSING_TIME_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "end the clock of a task early": end_clock_early,
    "keep a timer that was never set": keep_timer,
}
"""Mutations that need a history with an operator in processing time."""

IN_FLIGHT_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "drop a record in flight": drop_in_flight,
    "swap two records in flight": swap_in_flight,
    "move a record in flight to another channel": move_in_flight,
    "change a row in flight": change_in_flight,
    "discard what a checkpoint refers to": trim_early,
    "leave a log": keep_deleted_log,
}
"""Mutations that need a history whose checkpoints hold in-flight data."""

FORK_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "let no attempt of a fork run": forks.never_run,
    "let a fork fail": forks.fail,
    "drop a committed row of a fork": forks.of_its_own(_drop_row),
    "alter a committed row of a fork": forks.of_its_own(_alter_row),
    "edit a state that a fork loaded": forks.of_its_own(edit_loaded),
}
"""Mutations that need a history with forks."""

COMPATIBILITY_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "begin what does not fit": bring_incompatible_operator,
    "refuse without a name": refuse_without_a_name,
}
"""Mutations that need a history whose job was resumed with new operators, or from a snapshot with finished ones."""

UPGRADE_MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "begin without a move": forget_a_move,
    "drop a state without a permission": take_back_a_permission,
    "begin empty unannounced": announce_nothing,
}
"""Mutations that need a history whose job was upgraded."""

MUTATIONS: dict[str, Callable[[Case], Mutation | None]] = {
    "drop a committed row": _drop_row,
    "repeat a committed row": _repeat_row,
    "replace a row by a copy of one equal but for its tag": _copy_twin,
    "alter a committed row": _alter_row,
    "move a cut": move_cut,
    "shift an epoch": shift_epoch,
    "edit a stored state": edit_stored,
    "edit a loaded state": edit_loaded,
    "take input before the state": input_first,
    "swap two records of a channel": swap_applies,
    "skip a record": skip_apply,
    "take a record twice": repeat_apply,
    "ask for a commit before completion": _commit_early,
    "commit what a dead attempt had open": _commit_dead,
    "read a row before completion": _read_early,
    "read all before the last completion": read_before_completion,
    "write a row into the transaction of an earlier epoch": mix_epochs,
    "commit what was not sealed": commit_unsealed,
    "forget a commit": _forget_commit,
    "leave a transaction open": _add_open_transaction,
    "leave a sealed transaction": add_sealed_transaction,
    "leave an aborted transaction open": reopen_aborted_transaction,
    "leave a file": _add_deleted_file,
    "fail without a fault": _fail_unexplained,
    "drop the command that ended a job": drop_command,
    "answer a command with a savepoint that is not there": answer_with_nothing,
    "begin with another snapshot": begin_with_another,
    "lose a retained file": lose_file,
    "take no checkpoint": take_no_checkpoint,
    **EVENT_TIME_MUTATIONS,
    **BATCH_MUTATIONS,
    **COMMITTER_MUTATIONS,
    **PROCESSING_TIME_MUTATIONS,
    **IN_FLIGHT_MUTATIONS,
    **RULE_MUTATIONS,
    **COMPATIBILITY_MUTATIONS,
    **FORK_MUTATIONS,
    **DELETION_MUTATIONS,
    **COPY_MUTATIONS,
    **LISTING_MUTATIONS,
    **CLAIM_MUTATIONS,
    **UPGRADE_MUTATIONS,
}
"""Every mutation by its name."""
