"""PySpark's word on what the quick checker reckoned, scenario by scenario.

Workers put what has to be asked into bytes (`question_of`): the workload, the
cuts, and the rows and state that the quick checker holds to be owed.  The
process that has the Spark session asks it for many scenarios at once and
compares rows, never verdicts.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from ..properties.case import Case
from ..properties.expected import reckon
from ..properties.line import INFINITE
from ..properties.spark.tables import Apply, Cut, Difference, OracleJob, Reckoned
from ..properties.words import row_in_words
from .exit_codes import HarnessFailed
from .run import Result

if TYPE_CHECKING:
    from ..properties.spark.oracle import Oracle as SparkOracle


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """An oracle's answer to a batch of questions."""

    engine: str = ""
    workloads: int = 0
    """computed, not known already"""
    expected_rows: int = 0
    queries: int = 0
    disagreements: tuple[tuple[int, str], ...] = ()
    """(position in the batch, what differs in words)"""
    seconds: float = 0.0


class Oracle(Protocol):
    """A second judge that works on many scenarios at once."""

    def start(self) -> None:
        """Begin to start it, in the background."""

    def wait(self) -> None:
        """Return once it is up, or has failed to come up; `examine` tells which."""

    def examine(self, questions: Sequence[bytes]) -> Examined:
        """Judge; a `HarnessFailed` when it cannot."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario's question, and the quick checker's answer to it."""

    job: OracleJob
    quick: Reckoned


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Question)


def question_of(result: Result, name: str = "") -> bytes:
    """What the oracle needs to know of a result; the name tells one question of a batch from another."""
    return _encoder.encode(_question(result.case, name or result.scenario.seed))


def _question(case: Case, name: str) -> Question:
    """Where output follows what was really applied, repeats and gaps included (the weaker
    modes), the two are asked about the same workload and cuts without them: that the rows
    follow from the applied records is the quick checker's word alone."""
    ends = tuple(len(records) for _, _, records in case.workload.splits())
    positions = {checkpoint: case.positions(checkpoint) for checkpoint in case.line.checkpoints}
    cuts = [
        Cut(name=checkpoint, positions=tuple(at[split] for split in range(len(ends))))
        for checkpoint, at in positions.items()
    ]
    cuts.append(Cut(name=INFINITE, positions=ends))
    if case.history.guarantee != "exactly-once":
        reckoned = reckon(case.workload, list(positions.items()))
        quick = Reckoned(rows=reckoned.rows, states=reckoned.states)
    else:
        quick = _expected(case)
    job = OracleJob(id=name, workload=case.workload, cuts=tuple(cuts), applies=_applies(case, cuts))
    return Question(job=job, quick=quick)


def _expected(case: Case) -> Reckoned:
    expected, checkpoints = case.expected, case.line.checkpoints
    return Reckoned(
        rows={name: expected.rows().get(name, []) for name in (*checkpoints, INFINITE)},
        states={
            checkpoint: {node: list(entries.elements()) for node, entries in expected.states(checkpoint).items()}
            for checkpoint in checkpoints
        },
    )


def _applies(case: Case, cuts: Sequence[Cut]) -> dict[str, tuple[Apply, ...]]:
    """For class H the order in which the run happened to merge its inputs."""
    if case.history.guarantee != "exactly-once" or not case.expected.follows_applies:
        return {}
    numbers = {cut.name: index for index, cut in enumerate(cuts)}
    return {
        node.name: tuple(Apply(one.origin, numbers[one.epoch]) for one in case.line.applied(node.name))
        for node in case.workload.nodes
    }


class PySpark:
    """The oracle on this process's Spark session, which starts while scenarios run."""

    def start(self) -> None:
        from ..properties.spark.session import start_in_background

        start_in_background()

    def wait(self) -> None:
        from ..properties.spark.session import start_in_background

        start_in_background().exception()

    def examine(self, questions: Sequence[bytes]) -> Examined:
        from ..properties.spark.errors import SparkUnavailable

        asked = [_decoder.decode(question) for question in questions]
        named = [
            msgspec.structs.replace(one, job=msgspec.structs.replace(one.job, id=str(position)))
            for position, one in enumerate(asked)
        ]
        try:
            self.start()
            self.wait()
            return self._examine(named)
        except SparkUnavailable as error:
            raise HarnessFailed(str(error)) from None
        except Exception as error:  # whatever Java or Spark throws: nothing of the batch is judged
            first = next(iter(str(error).strip().splitlines()), "")
            kind = type(error).__name__
            raise HarnessFailed(f"PySpark failed in a batch of {len(asked)}: {kind}: {first}") from error

    def _examine(self, asked: Sequence[Question]) -> Examined:
        oracle = self._oracle
        began, computed, queries = time.perf_counter(), oracle.computed, oracle.queries
        answers = oracle.judge_batch([one.job for one in asked], {one.job.id: one.quick for one in asked})
        return Examined(
            engine=_engine(),
            workloads=oracle.computed - computed,
            queries=oracle.queries - queries,
            expected_rows=sum(len(answer.expected.rows) for answer in answers if answer.expected),
            disagreements=tuple(
                (position, answer.problem or in_words(answer.disagreements))
                for position, answer in enumerate(answers)
                if answer.problem or answer.disagreements
            ),
            seconds=time.perf_counter() - began,
        )

    @functools.cached_property
    def _oracle(self) -> SparkOracle:
        from ..properties.spark.oracle import Oracle

        return Oracle()


def in_words(differences: Sequence[Difference]) -> str:
    """The first of the differences, and how many there are."""
    first = differences[0]
    what = f"state entry {first.row} of {first.node}" if first.node else f"row ({row_in_words(first.row)})"
    cut = "the end" if first.cut == INFINITE else f"checkpoint {first.cut}"
    times = f"{abs(first.count)} times {'more' if first.count > 0 else 'less'} often"
    others = f"; {len(differences) - 1} more differences" if len(differences) > 1 else ""
    return f"at {cut} the quick checker has {what} {times} than PySpark{others}"


@functools.cache
def _engine() -> str:
    from importlib.metadata import version

    return f"pyspark {version('pyspark')}"
