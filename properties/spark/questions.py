"""The questions that PySpark is asked about a judged case.

A question carries the job and the quick checker's own result.  The process that runs
Spark compares this result with Spark's, row by row.  Questions are encoded as bytes,
since other processes judge the cases.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import msgspec

from ..model.workload import SINK, STATEFUL, is_clocked
from ..quick_checker.case import Case
from ..reconstruct.lineage import INFINITE
from ..semantics.broadcast import with_rules
from ..semantics.classes import FOLLOWING
from .senders import Senders
from .tables import Apply, Cut, OracleJob, Period, QuickResult, StateEntry
from .unasked import Unasked, applied_unasked, nothing_asked, unasked
from .watermarks import advances_of, by_attempt, watermarks


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A job, and the quick checker's result."""

    job: OracleJob
    quick: QuickResult


def questions_of(case: Case, name: str) -> tuple[Question, ...]:
    """The questions about a case: its run's lineage, and each completed checkpoint off the lineage.

    Rows that follow the applied records, among them those of windows whose records may be
    late, are a question of their own.  The state of the nodes that the positions alone
    determine is another question.  If data was in flight at some checkpoint, all rows and
    all state on the lineage follow the applied records.  Each row then comes with the
    attempt that made it, and there is no question about checkpoints off the lineage.

    There is no question about:

    - windows in a job that continued after a drain, since all later records are late; the
      rows expected up to the drain are asked;
    - user functions whose rows follow the applied records, since their counterparts know
      positions alone, or that use processing time, which positions do not determine;
    - batches whose rows follow the applied records, since it is not recorded which attempt
      made the buffered rows;
    - a run in which a job began with operators that the workload does not describe;
    - a run that was seen from outside, if its rows do not follow from its input alone.

    Rows that batches buffer are not subtracted from the rows that are compared.
    """
    if nothing_asked(case):
        return ()
    if case.is_black_box:
        return (_from_outside(case, name),)
    by_applies = case.expected.follows_applies
    questions = [_by_positions(case, name, rows=not by_applies)]
    if by_applies and not applied_unasked(case):
        questions.append(_by_applies(case, f"{name}, as applied", rows=_at_sink(case)))
    questions.extend(_off_lineage(case, name, number) for number in _checkpoints_off_lineage(case))
    return tuple(one for one in questions if one.quick.rows or any(one.quick.states.values()))


def _from_outside(case: Case, name: str) -> Question:
    view = case.from_outside
    ends = tuple(len(records) for _, _, records in case.workload.splits())
    cuts = [
        Cut(name=epoch, positions=tuple(positions.values()), drained=epoch in view.drained)
        for epoch, positions in view.cuts
    ]
    cuts += [] if view.drained else [Cut(name=INFINITE, positions=ends)]
    rows = {cut.name: view.rows.get(cut.name, []) for cut in cuts}
    return Question(
        job=OracleJob(id=name, workload=case.workload, cuts=tuple(cuts)), quick=QuickResult(rows=rows, states={})
    )


def questions_with_forks(case: Case, name: str) -> tuple[tuple[Question, ...], Unasked]:
    """The questions about a case and about each job that was forked from it, and what all of them leave out."""
    own = questions_of(case, name)
    left_out = unasked_by(case, own)
    asked, of_forks = [*own], ""
    for number, (_, fork) in enumerate(case.forks):
        about = questions_of(fork, f"{name}, fork {number}")
        asked += about
        of_forks = of_forks or unasked_by(fork, about).rows
    return tuple(asked), msgspec.structs.replace(left_out, forks=of_forks) if of_forks else left_out


def unasked_by(case: Case, questions: Sequence[Question]) -> Unasked:
    """The rows and state that all questions about a case leave out."""
    rows = [cut for one in questions for cut in one.quick.rows]
    states = [(cut, node) for one in questions for cut, nodes in one.quick.states.items() for node in nodes]
    return unasked(case, rows, states)


def _asked(case: Case) -> tuple[int, ...]:
    """The cuts of the run's lineage about which there are questions.

    With windows these are the cuts up to the first drain, at which all windows were emitted.
    """
    cuts = (*case.lineage.checkpoints, INFINITE)
    drained = case.drained if case.window is not None else ()
    return cuts[: next((index + 1 for index, cut in enumerate(cuts) if cut in drained), len(cuts))]


def _checkpoints_off_lineage(case: Case) -> tuple[int, ...]:
    """The completed checkpoints off the run's lineage; with windows, up to the job `Case.last_with_windows`."""
    found = [number for number in sorted(case.lineages.completed) if number not in case.lineage.checkpoints]
    last = case.last_with_windows if case.window is not None else None
    return tuple(number for number in found if last is None or case.lineages.completed[number].job <= last)


def _at_sink(case: Case) -> bool:
    """Whether it is known which of several rows of one origin each sink subtask took.

    If barriers do not keep the rows of one origin on the same side of each cut, the rows may have different epochs, and
    must be known one by one.  So it is with data in flight at a cut, and in the modes other than exactly-once.
    """
    return case.is_determined(every_attempt=case.by_applies)


def _by_positions(case: Case, name: str, *, rows: bool) -> Question:
    asked = _asked(case)
    cuts = tuple(cut for cut in _cuts(case) if cut.name in asked)
    found = {cut.name: case.expected.rows_through().get(cut.name, []) for cut in cuts} if rows else {}
    states = {number: _states(case, number, applied=False) for number in asked if number != INFINITE}
    return Question(
        job=OracleJob(id=name, workload=case.workload, cuts=cuts, periods=_periods(case, cuts)),
        quick=QuickResult(rows=found, states=states),
    )


def _by_applies(case: Case, name: str, *, rows: bool) -> Question:
    cuts = _cuts(case)
    numbers = {cut.name: index for index, cut in enumerate(cuts)}
    numbers_of = _periods_of_jobs(case, cuts)
    readers = [node.name for node in case.workload.nodes if isinstance(node.operator, STATEFUL)] + [SINK]
    senders = Senders(case)
    applies = {reader: tuple(_applies(case, reader, numbers, senders, numbers_of)) for reader in readers}
    window = case.window
    advances = {window.name: tuple(advances_of(case, window.name, numbers))} if window else {}
    job = OracleJob(
        id=name,
        workload=case.workload,
        cuts=cuts,
        applies=applies,
        tip=case.lineage.tip,
        advances=advances,
        scales={node: tuple(_scale(case, node, cut.name) for cut in cuts) for node in case.retyped},
        periods=_periods(case, cuts),
    )
    found = {number: case.expected.rows().get(number, []) for number in _asked(case)} if rows else {}
    states = {number: _states(case, number, applied=True) for number in _asked(case) if number != INFINITE}
    return Question(job=job, quick=QuickResult(rows=found, states=states))


def _applies(
    case: Case, reader: str, numbers: dict[int, int], senders: Senders, periods: dict[int, int]
) -> Iterator[Apply]:
    """The applications of a node or the sink, on the lineages of all attempts through which the run's lineage goes."""
    window = case.window
    for attempt in case.lineage.attempts:
        lineage = case.lineages.of_attempt(attempt)
        received = watermarks(case, lineage, reader) if window is not None and window.name == reader else {}
        by_subtask = bool(received) or reader in with_rules(case.workload)
        clocked = bool(received) and window is not None and is_clocked(window.operator)
        is_the_runs = lineage.tip == case.lineage.tip
        for segment in by_attempt(lineage, reader):
            run = segment.run
            times = received[run.task, run.attempt] if received and segment.applies else []
            lane = run.subtask if by_subtask else 0
            taken = zip(run.applies, segment.apply_epochs(), senders.of(run), strict=False)
            for count, ((_, origin), epoch, made_by) in enumerate(taken):
                yield Apply(
                    origin=origin,
                    epoch=numbers[epoch] if is_the_runs else 0,
                    attempt=run.attempt,
                    lineage=attempt,
                    lane=lane,
                    watermark=times[count] if received else 0,
                    moment=times[count] + 1 if clocked else None,
                    made_by=made_by if made_by != run.attempt else None,
                    scale=case.jobs.scale(reader, run.job) if reader in case.retyped else 1,
                    period=periods.get(run.job, 0),
                )


def _periods(case: Case, cuts: Sequence[Cut]) -> tuple[Period, ...]:
    """The periods in which the jobs of these cuts' epochs have the same nodes."""
    found: list[Period] = []
    for index, cut in enumerate(cuts):
        absent = case.jobs.absent.get(_job_of(case, cut.name), ())
        if not found or found[-1].absent != absent:
            found.append(Period(first=index, absent=absent))
    return tuple(found)


def _periods_of_jobs(case: Case, cuts: Sequence[Cut]) -> dict[int, int]:
    """By job that processed the records of some epoch, the number of its period."""
    firsts = [period.first for period in _periods(case, cuts)]
    return {_job_of(case, cut.name): bisect_right(firsts, index) - 1 for index, cut in enumerate(cuts)}


def _job_of(case: Case, cut: int) -> int:
    """The job that processed the records of an epoch: it took the checkpoint, or it is the last one."""
    completed = case.lineages.completed.get(cut)
    if completed is not None:
        return completed.job
    start = case.lineages.starts.get(case.lineages.last_attempt)
    return start.job if start is not None else 1


def _scale(case: Case, node: str, cut: int) -> int:
    """In how many parts of a whole a sum's state is at a cut: of the job that took the checkpoint, or of the last."""
    completed = case.lineages.completed.get(cut)
    job = completed.job if completed is not None else max(case.jobs.state_types)
    return case.jobs.scale(node, job)


def _off_lineage(case: Case, name: str, number: int) -> Question:
    before = case.lineages.of_checkpoint(number).checkpoints if case.jobs.any_absent else ()
    cuts = tuple(_cut(case, one) for one in (*(one for one in before if one < number), number))
    job = OracleJob(id=f"{name}, checkpoint {number}", workload=case.workload, cuts=cuts, periods=_periods(case, cuts))
    return Question(job=job, quick=QuickResult(states={number: _states(case, number, applied=False)}))


def _states(case: Case, number: int, *, applied: bool) -> dict[str, list[StateEntry]]:
    """The quick checker's state of the nodes that follow the applied records, or of those that do not."""
    follows = {node: case.by_applies or grade in FOLLOWING for node, grade in case.classes.items()}
    states = case.expected.states(number)
    whole = {node for node in states if not applied or _has_every_snapshot(case, node, number)}
    return {node: list(states[node].elements()) for node in states if follows[node] is applied and node in whole}


def _has_every_snapshot(case: Case, node: str, number: int) -> bool:
    """Whether a checkpoint has each subtask's snapshot: a broken engine may complete one that has not."""
    taken = case.states(number)
    wide = case.jobs.layouts[case.lineages.completed[number].job].parallelism.get(node, 0)
    return all(f"{node}-{subtask}" in taken for subtask in range(wide))


def _cuts(case: Case) -> tuple[Cut, ...]:
    """The completed checkpoints of the run's lineage, then the end of all input."""
    ends = tuple(len(records) for _, _, records in case.workload.splits())
    return (*(_cut(case, number) for number in case.lineage.checkpoints), Cut(name=INFINITE, positions=ends))


def _cut(case: Case, number: int) -> Cut:
    positions = tuple(case.positions(number).values())
    return Cut(name=number, positions=positions, drained=number in case.drained)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[Question, ...])


def encode(questions: Sequence[Question]) -> bytes:
    return _encoder.encode(questions)


def decode(data: bytes) -> tuple[Question, ...]:
    return _decoder.decode(data)
