"""drain: the end of all input flushes everything, and nothing is flushed before it.

A job that finished or was drained leaves nothing behind: none of its transactions is
pending, and its last snapshot holds no window, no timer and no buffered row.  Without
drain, only sources that have read all of their input send the end of data and the
greatest watermark.  The savepoint of a stop without drain holds the open windows and the
buffered rows, and the sink shows none of their rows.

Each task's program order has the end of data and the watermarks, the store has the
snapshot, and a reader has the visible rows.  Exercised by rows that only the end of the
data emitted, and by windows and rows that a savepoint held at a stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..model.history import JobEnded, TaskRun
from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ..model.words import LIMIT, journal_until, plural, row_in_words
from ..model.workload import END_OF_TIME, Batch, Input, Node, Row, Window, is_clocked
from ..quick_checker.case import Case
from ..reconstruct.buffered_rows import batches, still_to_come, waiting
from ..reconstruct.layouts import splits_of_task


def check(case: Case) -> Verdict:
    if "drain" not in case.promised:
        return case.not_promised("drain", f"{case.history.guarantee} mode, or resumed behind an end of data")
    found = next(_ended_early(case), None)
    for ended in case.commands.ends:
        found = found or _left_behind(case, ended) or _shown(case, ended)
    if found is not None:
        return found
    exercised = sum(map(partial(_exercised, case), case.commands.ends))
    if exercised:
        return Holds(exercised=exercised)
    detail = "no row needed the end of the data, and at a stop no window was open and no row waited"
    return Unknown(reason=Reason.NOT_EXERCISED, detail=detail)


# the end of data, sent too early


def _ended_early(case: Case) -> Iterator[Violated]:
    """Sources that sent the end of data or the greatest watermark although records were unread and no drain was
    requested."""
    drained = {
        one.job: one.issued.order
        for one in case.commands.asked
        if one.issued.kind == "stop-with-savepoint" and one.issued.drain
    }
    inputs = {source.name: source for source in case.workload.inputs}
    for run in case.history.runs:
        source = inputs.get(run.operator)
        ends = run.end_of_data or any(time >= END_OF_TIME for _, time in run.watermarks)
        if source is not None and ends and run.job not in drained and not _is_read(case, run, source):
            yield Violated(
                difference="end of data too early",
                message=f"{run.task} of attempt {run.attempt} reported the end of its data downstream, "
                "although it had records to read and no user had asked for a drain",
                tasks=(run.task,),
                events=journal_until(case.history, run.ended),
            )


def _is_read(case: Case, run: TaskRun, source: Input) -> bool:
    """Whether a source's splits are read to their end, counting the positions of the restored snapshot."""
    if not source.bounded:
        return False
    restored = case.lineages.restored(run.task, run.attempt)
    positions = (
        dict(case.lineages.snapshots.positions(restored)) if restored in case.lineages.completed and restored else {}
    )
    for split, offset in run.reads:
        positions[split] = offset + 1
    mine = splits_of_task(case.workload, case.layout_of(run), source.name, run.subtask)
    if source.is_enumerated:
        mine = tuple(split for _, split, _ in run.assigned)
    return all(positions.get(split, 0) >= case.ends[split] for split in mine)


# what remains although everything should be flushed


def _left_behind(case: Case, ended: JobEnded) -> Violated | None:
    """Windows, timers, rows or transactions that a finished or drained job left."""
    if ended.status not in ("finished", "drained"):
        return None
    prepared = [one for one in case.history.transactions if one.status == "prepared"]
    pending = [one for one in prepared if _job(case, one.attempt) == ended.job]
    if pending:
        return _violated(
            case, ended, "transaction pending", f"transaction {pending[0].name} is still to be committed", ()
        )
    window = case.window
    for task, timers, panes in _windows(case, ended, window) if window else ():
        if timers or panes:
            message = (
                f"{task} holds {plural(len(panes), 'window')} and {plural(len(timers), 'timer')} in its last snapshot"
            )
            records = tuple(f"window from {start} of key {key}" for start, key, _, _ in panes[:LIMIT])
            return _violated(case, ended, "window left", message, (task,), records)
    for task, rows in _waiting(case, ended):
        if rows:
            message = f"{task} holds {plural(len(rows), 'row')} in the buffer of its last snapshot"
            return _violated(case, ended, "buffer left", message, (task,), tuple(map(row_in_words, rows[:LIMIT])))
    return None


def _waiting(case: Case, ended: JobEnded) -> Iterator[tuple[str, list[Row]]]:
    """(task, rows) of each subtask of a batch in a job's last snapshot."""
    names = batches(case.workload)
    if names and ended.checkpoint in case.lineages.completed and ended.checkpoint is not None:
        for task, state in case.states(ended.checkpoint).items():
            if task.rpartition("-")[0] in names:
                yield task, [row for row, _ in waiting(state)]


def _windows(
    case: Case, ended: JobEnded, window: Node
) -> Iterator[tuple[str, list[tuple[int, int | None, int]], list[tuple[int, int | None, int | None, int]]]]:
    """(task, timers, panes) of each subtask of the window in a job's last snapshot."""
    if ended.checkpoint in case.lineages.completed and ended.checkpoint is not None:
        for task, state in case.states_of(window.name, ended.checkpoint).items():
            yield task, [*state.timers, *state.alarms], state.entries


def _shown(case: Case, ended: JobEnded) -> Violated | None:
    """A visible row that was still buffered, or whose window was still open, at a stop without drain."""
    if not keeps_back(case, ended):
        return None
    expected = case.expected.rows_up_to(case.closing.epoch)
    if case.rows_are_known and ended.checkpoint is not None and ended.checkpoint in case.lineages.completed:
        for row in still_to_come(case.workload, case.states(ended.checkpoint)):
            if case.committed[row] > expected[row]:
                return _violated(
                    case,
                    ended,
                    "waiting row shown",
                    f"the sink shows ({row_in_words(row)}), which a batch still buffers",
                    (),
                )
    window = case.window
    if window is None or window.name != case.workload.output:
        return None
    for task, timers, panes in _windows(case, ended, window):
        open_at = {(key, start) for time, key, start in timers if not _is_kept(window, timers, (time, key, start))}
        for start, key, value, tags in panes:
            row = (key, value, tags, start)
            if (key, start) in open_at and case.committed[row] > expected[row]:
                return _violated(
                    case,
                    ended,
                    "open window shown",
                    f"the sink shows ({row_in_words(row)}), whose window is still open",
                    (task,),
                )
    return None


def keeps_back(case: Case, ended: JobEnded) -> bool:
    """Whether no row of an open window or of a batch's buffer may show after a job's end.

    The job was stopped, and no later job continued it.  If the sink is not transactional, the run also had only one
    attempt, and no operator uses processing time.
    """
    if ended.status != "stopped" or any(start.job > ended.job for start in case.lineages.starts.values()):
        return False
    window = case.window
    clocked = window is not None and is_clocked(window.operator)
    return case.history.sink == "transactional" or (len(case.lineages.starts) == 1 and not clocked)


def _is_kept(window: Node, timers: list[tuple[int, int | None, int]], timer: tuple[int, int | None, int]) -> bool:
    """Whether a window was emitted, and is kept for late records only: its first timer has fired."""
    operator = window.operator
    if not isinstance(operator, Window) or not operator.lateness:
        return False
    return sum(other[1:] == timer[1:] for other in timers) == 1


# how often it was exercised


def _exercised(case: Case, ended: JobEnded) -> int:
    return _fired(case, ended) + _emitted_by_batches(case, ended) + _left_at_stop(case, ended)


def _emitted_by_batches(case: Case, ended: JobEnded) -> int:
    """How many rows batches buffered until the end of the data, computed from their sizes."""
    sizes = {node.name: node.operator.size for node in case.workload.nodes if isinstance(node.operator, Batch)}
    found = 0
    for run in case.history.runs if ended.status in ("finished", "drained") else ():
        if run.operator in sizes and run.job == ended.job and run.how == "finished":
            state = case.lineages.snapshots.loaded(run)
            held = sum(1 for _ in waiting(state)) if state is not None else 0
            found += (held + len(run.applies)) % sizes[run.operator]
    return found


def _fired(case: Case, ended: JobEnded) -> int:
    """How many rows of windows only the end of the data emitted."""
    window = case.window
    if ended.status not in ("finished", "drained") or window is None:
        return 0
    found = 0
    for run in case.history.runs:
        if run.operator == window.name and run.job == ended.job and run.how == "finished":
            moments = run.ticks if is_clocked(window.operator) else run.watermarks
            ends = [number for number, (_, time) in enumerate(moments, 1) if time >= END_OF_TIME]
            fired = case.expected.replay.run(run.task, run.attempt).fired
            found += sum(number in ends for number, _, _ in fired)
    return found


def _left_at_stop(case: Case, ended: JobEnded) -> int:
    """How many windows were open, and how many rows were buffered, at a stop."""
    if ended.status != "stopped":
        return 0
    window = case.window
    panes = sum(len(panes) for _, _, panes in _windows(case, ended, window)) if window is not None else 0
    return panes + sum(len(rows) for _, rows in _waiting(case, ended))


def _job(case: Case, attempt: int) -> int | None:
    start = case.lineages.starts.get(attempt)
    return start.job if start else None


def _violated(
    case: Case, ended: JobEnded, difference: str, message: str, tasks: tuple[str, ...], records: tuple[str, ...] = ()
) -> Violated:
    return Violated(
        difference=difference,
        message=f"job {ended.job} {ended.status}: {message}",
        records=records,
        checkpoint=ended.checkpoint,
        tasks=tasks,
        events=journal_until(case.history, ended.order),
    )
