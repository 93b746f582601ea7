"""From a judged case to what PySpark is asked about it.

A question carries the quick checker's own reckoning beside the job, so that the
two are compared row by row where Spark runs.  It is bytes on the way: cases are
judged in other processes than the one with the session.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..case import Case
from ..line import INFINITE
from .tables import Cut, OracleJob, Reckoned


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A job, and what the quick checker made of it."""

    job: OracleJob
    quick: Reckoned


def questions_of(case: Case, name: str) -> tuple[Question, ...]:
    """What to ask about a case: its line, and each completed checkpoint that lies off it.

    Rows and states that follow apply events are left out: what was applied is
    known of them, and worked through again, by the quick checker alone.
    """
    expected = case.expected
    on_line = case.line.checkpoints
    cuts = (*(_cut(case, number) for number in on_line), _end(case))
    rows = {} if expected.follows_applies else {cut.name: expected.rows().get(cut.name, []) for cut in cuts}
    line = Question(
        job=OracleJob(id=name, workload=case.workload, cuts=cuts),
        quick=Reckoned(rows=rows, states={number: _states(case, number) for number in on_line}),
    )
    off_line = [number for number in sorted(case.lines.completed) if number not in on_line]
    return (line, *(_off_line(case, name, number) for number in off_line))


def _off_line(case: Case, name: str, number: int) -> Question:
    job = OracleJob(id=f"{name}, checkpoint {number}", workload=case.workload, cuts=(_cut(case, number),))
    return Question(job=job, quick=Reckoned(states={number: _states(case, number)}))


def _states(case: Case, number: int) -> dict[str, list[tuple[int, int | None, int | None, int]]]:
    """The state by the quick checker of the nodes whose state the positions alone determine."""
    if case.expected.follows_applies and case.history.guarantee != "exactly-once":
        return {}
    states = case.expected.states(number)
    return {node: list(entries.elements()) for node, entries in states.items() if case.classes[node] != "H"}


def _cut(case: Case, number: int) -> Cut:
    return Cut(name=number, positions=tuple(case.positions(number)[split] for split, _, _ in case.workload.splits()))


def _end(case: Case) -> Cut:
    return Cut(name=INFINITE, positions=tuple(len(records) for _, _, records in case.workload.splits()))


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[Question, ...])


def encode(questions: Sequence[Question]) -> bytes:
    return _encoder.encode(questions)


def decode(data: bytes) -> tuple[Question, ...]:
    return _decoder.decode(data)
