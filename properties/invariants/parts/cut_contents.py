"""The state, transactions and rows by epoch of a completed checkpoint, compared with those expected."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from ...model.history import StoredState, TaskRun, Transaction
from ...model.stages import COMMITTERS
from ...model.verdict import Violated
from ...model.words import LIMIT, plural, row_in_words
from ...model.workload import SINK, STATEFUL, AnyOperator, Batch, Row, Rules, Tally, User, Workload
from ...quick_checker.case import Case
from ...quick_checker.compare import same, transaction_in_words, violated_rows
from ...reconstruct.buffered_rows import batches, counts_in, still_to_come
from ...reconstruct.layouts import same_width
from ...reconstruct.lineage import INFINITE, Lineage
from ...semantics.broadcast import odd_one_out, rules_in, with_rules
from ...semantics.semantics import Entry


def missing_snapshots(case: Case, checkpoint: int) -> Violated | None:
    """A task with state whose snapshot is missing from a completed checkpoint, or cannot be read."""
    completed = case.lineages.completed[checkpoint]
    stored, states = case.lineages.snapshots.stored(checkpoint), case.states(checkpoint)
    operators = case.lineages.operators.get(completed.job, {}).items()
    going_on = {operator for task, operator in operators if task not in completed.finished}
    for run in case.lineages.serving_runs(completed.attempt):
        if run.task in states and run.task in completed.handles:
            continue
        if run.operator not in _keeping(case.workload) or run.operator not in going_on:
            continue
        if run.task not in completed.handles:
            phrases = f"checkpoint {checkpoint} was completed without a snapshot of {run.task}"
        elif run.task not in stored:
            phrases = f"checkpoint {checkpoint} points to {completed.handles[run.task]}, which was never stored"
        else:
            phrases = f"the snapshot of {run.task} in checkpoint {checkpoint} cannot be read"
        return Violated(
            difference="snapshot missing",
            message=phrases,
            checkpoint=checkpoint,
            tasks=(run.task,),
            events=(f"the store made checkpoint {checkpoint} complete at {completed.at_us} µs",),
        )
    return None


def _keeping(workload: Workload) -> set[str]:
    """The inputs, nodes and stages whose tasks always have a snapshot."""
    keeping = {source.name for source in workload.inputs} | {SINK, *COMMITTERS}
    return keeping | {node.name for node in workload.nodes if isinstance(node.operator, (Batch, *STATEFUL))}


def stored_state(case: Case, checkpoint: int) -> Violated | None:
    """Keyed state, decoded from the store, that differs from State(c)."""
    nodes = [node for node in case.workload.nodes if not isinstance(node.operator, User)]  # users know theirs
    keyed = [node for node in nodes if isinstance(node.operator, STATEFUL)]
    if not keyed or (case.follows_order and not case.is_determined(at_sink=False)):
        return None
    expected = case.expected.states(checkpoint)
    for node in keyed:
        stored = [
            entry
            for state in case.states_of(node.name, checkpoint).values()
            for entry in _entries_in(node.operator, state)
        ]
        wanted = expected[node.name]
        if (stored or wanted) and not same(Counter(stored), wanted):
            return _wrong_state(case, checkpoint, node.name, wanted, Counter(stored))
    return None


def _entries_in(operator: AnyOperator, state: StoredState) -> list[Entry]:
    if isinstance(operator, Tally):
        return counts_in(state)
    return rules_in(state) if isinstance(operator, Rules) else state.entries


def copies(case: Case, checkpoint: int) -> Violated | None:
    """Broadcast state that is not the same at all subtasks."""
    for name in with_rules(case.workload):
        held = case.states_of(name, checkpoint)
        odd = odd_one_out(held)
        if odd is None:
            continue
        one, other = (Counter(rules_in(held[task])) for task in odd)
        return Violated(
            difference="copies differ",
            message=f"in checkpoint {checkpoint} {odd[0]} and {odd[1]} hold different rules:"
            f" {_entries(one - other)} and {_entries(other - one)}",
            records=tuple(f"key {entry[1]}" for entry in list((one - other) + (other - one))[:LIMIT]),
            checkpoint=checkpoint,
            tasks=odd,
            events=(f"the checkpoint's positions: {case.positions(checkpoint)}",),
        )
    return None


def held_rows(case: Case) -> Violated | None:
    """Rows that a batch holds in a snapshot of the lineage, and that never reached it or had already been emitted."""
    if not batches(case.workload) or case.expected.follows_applies:
        return None
    came: Counter[Row] = Counter()
    through, out = case.expected.rows_through(), case.expected.rows()
    for checkpoint in case.lineage.checkpoints:
        came.update(through.get(checkpoint, ()))
        came.subtract(Counter(out.get(checkpoint, ())))
        held = still_to_come(case.workload, case.states(checkpoint))
        extra = held - came
        if extra:
            names = batches(case.workload)
            return Violated(
                difference="state differs",
                message=f"{', '.join(names)} held {plural(extra.total(), 'row')} in checkpoint {checkpoint}"
                " that had not"
                " reached the batch, or that it had already emitted",
                records=tuple(row_in_words(row) for row in list(extra)[:LIMIT]),
                checkpoint=checkpoint,
                tasks=tuple(names),
                events=(f"the checkpoint's positions: {case.positions(checkpoint)}",),
            )
    return None


def _wrong_state(case: Case, checkpoint: int, name: str, expected: Counter[Entry], held: Counter[Entry]) -> Violated:
    missing, extra = expected - held, held - expected
    keys = sorted({entry[1] for entry in (*missing, *extra)}, key=str)
    tasks = [
        task
        for task, state in case.states(checkpoint).items()
        if task.rpartition("-")[0] == name and any(entry in extra for entry in state.entries)
    ]
    return Violated(
        difference="state differs",
        message=f"{name} stored {_entries(extra)} in checkpoint {checkpoint} instead of {_entries(missing)}",
        records=tuple(f"key {key}" for key in keys[:LIMIT]),
        checkpoint=checkpoint,
        tasks=tuple(tasks) or (name,),
        events=(f"the checkpoint's positions: {case.positions(checkpoint)}",),
    )


def _entries(entries: Counter[Entry]) -> str:
    """The first few state entries, as text."""
    phrases = [f"key {key}: {a}" + (f", {b}" if b else "") for _, key, a, b in list(entries.elements())[:LIMIT]]
    return "; ".join(phrases) or "nothing"


def transactions(case: Case, lineage: Lineage, checkpoint: int) -> Violated | None:
    """A sealed transaction, named in a checkpoint, that does not match the sink's records up to its mark."""
    if case.history.sink != "transactional":
        return None
    listed = {name for state in case.states(checkpoint).values() for name, _ in state.transactions}
    committers = _tasks_of(COMMITTERS, case, checkpoint)
    for segment in lineage.of_operator(SINK):
        run = segment.run
        within = segment.applies_up_to(checkpoint)
        marked = _settled_until(case, run, checkpoint, committers)
        written = 0
        for one in case.transactions_of(run.task, run.attempt):
            inside = bisect_right(one.applied, within)
            written += inside
            if one.name in listed and inside < len(one.rows):
                return _wrong_transaction(checkpoint, one, one.rows[inside:], "holds rows from after the barrier")
            committed = one.committed is not None and (marked is None or one.committed <= marked)
            if inside and one.name not in listed and not committed:
                return _wrong_transaction(
                    checkpoint, one, one.rows[:inside], "is neither named in the checkpoint nor committed before it"
                )
        if written < within:
            return _unwritten(checkpoint, run.task, within, written)
    return None


def _tasks_of(operators: Sequence[str], case: Case, checkpoint: int) -> list[str]:
    """The tasks of some operators of which a checkpoint has a snapshot."""
    operator_of = case.lineages.operator_of
    return [task for task in case.lineages.snapshots.stored(checkpoint) if operator_of.get(task) in operators]


def _settled_until(case: Case, run: TaskRun, checkpoint: int, committers: list[str]) -> int | None:
    """The order until which a sink's rows were committed; rows that were not are in the checkpoint.

    It is the latest order of the marks of the task and of the committers.  If the job was rescaled since, the marks of
    all sink subtasks count, as another subtask may have the transaction now.
    """
    completed = case.lineages.completed[checkpoint]
    rescaled = run.job != completed.job and not same_width(case.jobs.layouts[run.job], case.jobs.layouts[completed.job])
    lineages, attempt = case.lineages, completed.attempt
    tasks = [*(_tasks_of((SINK,), case, checkpoint) if rescaled else [run.task]), *committers]
    marks = [lineages.mark(task, lineages.serving(task, attempt), checkpoint) for task in tasks]
    return max([mark.order for mark in marks if mark is not None], default=None)


def _wrong_transaction(checkpoint: int, one: Transaction, rows: list[Row], phrases: str) -> Violated:
    return Violated(
        difference="transaction differs",
        message=f"checkpoint {checkpoint}: transaction {one.name} {phrases}",
        records=tuple(row_in_words(row) for row in rows[:LIMIT]),
        checkpoint=checkpoint,
        tasks=(one.task,),
        events=(transaction_in_words(one),),
    )


def _unwritten(checkpoint: int, task: str, taken: int, written: int) -> Violated:
    return Violated(
        difference="transaction differs",
        message=f"{task} had taken {plural(taken, 'record')} at its snapshot of checkpoint {checkpoint},"
        f" and its transactions hold {written} rows",
        checkpoint=checkpoint,
        tasks=(task,),
        events=(),
    )


def rows_by_epoch(case: Case) -> Violated | None:
    """An epoch of the lineage in which the sinks wrote other rows than those expected."""
    if case.follows_order and not case.is_determined(every_attempt=case.by_applies):
        return None
    found: dict[int, list[Row]] = {}
    for task, attempt, applied, written in _written(case):
        for epoch, row in zip(case.lineage.epochs_of(task, attempt, applied), written, strict=True):
            if epoch is not None and epoch < INFINITE:
                found.setdefault(epoch, []).append(row)
    for checkpoint in case.lineage.checkpoints:
        due, there = case.expected.rows().get(checkpoint, []), found.get(checkpoint, [])
        if due == there:
            continue
        expected, rows = Counter(due), Counter(there)
        if not same(rows, expected):
            return violated_rows(
                case,
                lost=expected - rows,
                extra=rows - expected,
                expected=expected,
                where=f"the rows written in the epoch of checkpoint {checkpoint}",
                checkpoint=checkpoint,
            )
    return None


def _written(case: Case) -> Iterator[tuple[str, int, list[int], list[Row]]]:
    """(task, attempt, records applied by then, rows) of all rows that the sinks wrote."""
    for one in case.history.transactions:
        if one.rows or one.applied:
            yield one.task, one.attempt, one.applied, one.rows
    of_runs: dict[tuple[str, int], tuple[list[int], list[Row]]] = {}
    for written in case.history.written:
        applied, rows = of_runs.setdefault((written.task, written.attempt), ([], []))
        applied.append(written.applied)
        rows.append(written.row)
    for (task, attempt), (applied, rows) in of_runs.items():
        yield task, attempt, applied, rows
