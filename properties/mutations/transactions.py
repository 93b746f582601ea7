"""Mutations of transactions, of reads and of what a job leaves behind (see `tampering`)."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from ..invariants.drain import keeps_back
from ..model.history import History, Read, Transaction
from ..model.workload import END_OF_TIME, Row, Window, window_of
from ..quick_checker.case import Case
from .cuts_and_records import Mutation, knows_rows_read, middle, show_one
from .event_time import killed_amid

ENDED = ("finished", "drained", "stopped")


def mix_epochs(case: Case) -> Mutation | None:
    """A row after a completed snapshot was written into the transaction that was sealed for the snapshot."""
    places = []
    before: dict[tuple[str, int], int] = {}
    for at, one in enumerate(case.history.transactions):
        earlier = before.get((one.task, one.attempt))
        if one.rows:
            before[one.task, one.attempt] = at
        if earlier is not None and one.rows and _is_between(case, case.history.transactions[earlier], one):
            places.append((earlier, at))
    chosen = middle(places)
    if chosen is None:
        return None

    def alter(history: History) -> None:
        earlier, later = (history.transactions[at] for at in chosen)
        earlier.rows.append(later.rows.pop(0))
        earlier.applied.append(later.applied.pop(0))

    return ("visibility",), alter


def _is_between(case: Case, earlier: Transaction, later: Transaction) -> bool:
    """Whether the checkpoint for which `earlier` was sealed is complete, and lies before the rows of `later`."""
    if earlier.checkpoint is None or earlier.checkpoint not in case.lineages.completed:
        return False
    mark = case.lineages.mark(earlier.task, earlier.attempt, earlier.checkpoint)
    return mark is not None and max(earlier.applied) <= mark.applies < min(later.applied)


def commit_unsealed(case: Case) -> Mutation | None:
    """A committed transaction had never been sealed."""
    sealed = (one.prepared is not None and one.committed is not None for one in case.history.transactions)
    at = middle([at for at, ready in enumerate(sealed) if ready and case.history.transactions[at].rows])
    if at is None:
        return None

    def alter(history: History) -> None:
        history.transactions[at].prepared = None

    return ("visibility",), alter


def read_before_completion(case: Case) -> Mutation | None:
    """A reader sees all rows that are ever committed before the last snapshot is complete."""
    ordered = sorted((entry.order, entry.checkpoint) for entry in case.history.completed)
    if len(ordered) < 2 or case.history.sink != "transactional" or not knows_rows_read(case):
        return None
    newest = list(accumulate((checkpoint for _, checkpoint in ordered), max))[-2]
    if newest not in case.lineage.checkpoints or not case.committed - case.expected.rows_up_to(newest):
        return None

    def alter(history: History) -> None:
        order = ordered[-1][0] - 1
        history.reads.append(Read(began=order, ended=order, rows=len(history.committed)))

    return ("visibility",), alter


def _is_abandoned(case: Case, one: Transaction) -> bool:
    """Whether another actor had to end a transaction: a later attempt, or the job at its end."""
    later = any(run.attempt > one.attempt and run.how == "finished" for run in case.history.runs)
    return later or (case.ended is not None and case.ended.status in ENDED)


def add_sealed_transaction(case: Case) -> Mutation | None:
    """A sealed transaction remains that no snapshot names."""
    first = middle([one for one in case.history.transactions[:1] if _is_abandoned(case, one)])
    if first is None:
        return None

    def alter(history: History) -> None:
        name = first.name + "-sealed"
        leftover = Transaction(name=name, task=first.task, attempt=first.attempt, begun=first.begun, status="prepared")
        history.transactions.append(leftover)
        history.residue.prepared_transactions.append(name)

    return ("no-leaks",), alter


def reopen_aborted_transaction(case: Case) -> Mutation | None:
    """A transaction that was aborted is still open."""
    aborted = [
        at for at, one in enumerate(case.history.transactions) if one.status == "aborted" and _is_abandoned(case, one)
    ]
    at = middle(aborted)
    if at is None:
        return None

    def alter(history: History) -> None:
        leftover = history.transactions[at]
        leftover.status, leftover.aborted = "open", None
        history.residue.open_transactions.append(leftover.name)

    return ("no-leaks",), alter


def reopen_pending_transaction(case: Case) -> Mutation | None:
    """A finished or drained job has a sealed transaction that is still to be committed."""
    jobs = {ended.job for ended in case.commands.ends if ended.status in ("finished", "drained")}
    attempts = {attempt for attempt, start in case.lineages.starts.items() if start.job in jobs}
    done = [
        at
        for at, one in enumerate(case.history.transactions)
        if one.status == "committed" and one.rows and one.attempt in attempts
    ]
    at = middle(done)
    if at is None:
        return None

    def alter(history: History) -> None:
        leftover = history.transactions[at]
        leftover.status, leftover.committed = "prepared", None

    return ("drain",), alter


def end_time_early(case: Case) -> Mutation | None:
    """A source that died before it had read all records had sent the greatest watermark, so that every window ends."""
    at = killed_amid(case)
    if at is None or window_of(case.workload) is None:
        return None

    def alter(history: History) -> None:
        run = history.runs[at]
        run.watermarks.append((len(run.reads), END_OF_TIME))

    return ("drain",), alter


def show_open_window(case: Case) -> Mutation | None:
    """The sink shows the row of a window that was still open when a job stopped."""
    window = window_of(case.workload)
    stops = [ended.checkpoint for ended in case.commands.ends if keeps_back(case, ended)]
    if window is None or window.name != case.workload.output or not case.rows_are_known:
        return None
    expected = case.expected.rows_up_to(case.closing.epoch)
    rows: list[Row] = []
    for checkpoint in stops:
        states = case.states(checkpoint) if checkpoint in case.lineages.completed and checkpoint is not None else {}
        for task, state in states.items():
            timers = Counter((key, start) for _, key, start in (*state.timers, *state.alarms))
            for start, key, value, tags in state.entries if task.rpartition("-")[0] == window.name else ():
                row = (key, value, tags, start)
                waits = timers[key, start] == 1 + bool(isinstance(window.operator, Window) and window.operator.lateness)
                if waits and case.committed[row] >= expected[row]:
                    rows.append(row)
    return show_one(rows)
