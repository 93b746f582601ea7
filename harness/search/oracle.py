"""PySpark's check of the quick checker's results, scenario by scenario.

Workers encode the questions (`question_of`): the workload, the cuts, and the rows and state that the quick checker
expects.  One scenario may give several questions.  The process that has the Spark session asks the questions of many
scenarios at once and compares rows, never verdicts.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
from msgspec.structs import replace

from ...properties.model.verdict import Verdict
from ...properties.model.words import row_in_words
from ...properties.model.workload import Row
from ...properties.reconstruct.lineage import INFINITE
from ...properties.semantics.user_functions import CounterpartFailed, user_nodes
from ...properties.spark.questions import Question, decode, encode, questions_with_forks
from ...properties.spark.tables import Difference, OracleAnswer
from ...properties.spark.unasked import ASKED, Unasked, one_judge
from ..runtime.exit_codes import HarnessFailed, UsageError
from ..subject.run import Result
from ..workloads.user_functions import RESERVED

if TYPE_CHECKING:
    from ...properties.spark.oracle import Oracle as SparkOracle


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """An oracle's answer to a batch of questions."""

    engine: str = ""
    workloads: int = 0
    """computed, not taken from the cache"""
    expected_rows: int = 0
    queries: int = 0
    disagreements: tuple[tuple[int, str], ...] = ()
    """(position in the batch, the difference in words)"""
    seconds: float = 0.0


class Oracle(Protocol):
    """A second judge that works on many scenarios at once."""

    def start(self) -> None:
        """Begin to start the session, in the background."""

    def wait(self) -> None:
        """Return once the session has started, or has failed to start; `examine` reports which."""

    def examine(self, questions: Sequence[bytes]) -> Examined:
        """Judge; raises HarnessFailed if that is not possible."""


class Put(msgspec.Struct, frozen=True, kw_only=True):
    """The questions about a result, and why some are not asked."""

    question: bytes
    unasked: Unasked


def put(result: Result) -> Put:
    """The questions about a result, whatever name it has in a batch."""
    questions, unasked = questions_with_forks(result.case, "case")
    return Put(question=encode(questions), unasked=unasked)


class SeenBy(msgspec.Struct, frozen=True, kw_only=True):
    """How many judges saw a violation.

    If only one did: why PySpark was not asked; empty if PySpark disagrees.
    """

    judges: int = 1
    not_asked: str = ""


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """PySpark's answer about one case."""

    unasked: Unasked = ASKED
    disagreements: tuple[str, ...] = ()
    """where it disagrees with the quick checker"""
    engine: str = ""

    def on(self, invariant: str, verdict: Verdict) -> SeenBy:
        """The judges behind a verdict that is not unknown."""
        not_asked = one_judge(invariant, verdict, self.unasked)
        return SeenBy(judges=1 if not_asked or self.disagreements else 2, not_asked=not_asked)


def word_on(oracle: Oracle, result: Result) -> Word:
    """Ask about one result; raises HarnessFailed if the oracle cannot judge."""
    asked = put(result)
    examined = oracle.examine([asked.question])
    words = tuple(words for _, words in examined.disagreements)
    return Word(unasked=asked.unasked, disagreements=words, engine=examined.engine)


def question_of(result: Result) -> bytes:
    """Only the questions of a result."""
    return put(result).question


class PySpark:
    """The oracle on this process's Spark session, which starts while scenarios run.

    `oracle` replaces the one with the true meanings of operators: tests plant errors in it.
    """

    def __init__(self, oracle: SparkOracle | None = None) -> None:
        self._given = oracle

    def start(self) -> None:
        self._session()

    def wait(self) -> None:
        self._session().exception()

    def examine(self, questions: Sequence[bytes]) -> Examined:
        from ...properties.spark.session.errors import SparkUnavailable
        from ...properties.spark.session.session import lost

        try:
            self.wait()
            return self._examine(questions)
        except SparkUnavailable as error:
            raise HarnessFailed(str(error)) from None
        except CounterpartFailed as error:
            raise UsageError(" ".join(str(error).split())) from None
        except Exception as error:  # any exception of Java or Spark: nothing of the batch is judged
            if reason := lost():
                raise HarnessFailed(reason) from None
            first = next(iter(str(error).strip().splitlines()), "")
            kind = type(error).__name__
            batch = f"a batch of {len(questions)}{_with_functions(questions)}"
            raise HarnessFailed(f"PySpark failed in {batch}: {kind}: {first}") from error

    def _examine(self, questions: Sequence[bytes]) -> Examined:
        asked = [
            (position, _named(question, f"{position} {part}"))
            for position, data in enumerate(questions)
            for part, question in enumerate(decode(data))
        ]
        oracle = self._oracle
        began, computed, queries = time.perf_counter(), oracle.computed, oracle.queries
        answers = oracle.judge_batch([one.job for _, one in asked], {one.job.id: one.quick for _, one in asked})
        words: dict[int, str] = {}
        for (position, _), answer in zip(asked, answers, strict=True):
            problem = answer.problem or (in_words(answer.disagreements) if answer.disagreements else "")
            if problem:
                words.setdefault(position, problem)
        return Examined(
            engine=_engine(),
            workloads=oracle.computed - computed,
            queries=oracle.queries - queries,
            expected_rows=sum(_rows(question, answer) for (_, question), answer in zip(asked, answers, strict=True)),
            disagreements=tuple(sorted(words.items())),
            seconds=time.perf_counter() - began,
        )

    def _session(self) -> Future[Any]:
        from ...properties.spark.oracle import warm_up
        from ...properties.spark.session.session import start_in_background

        return start_in_background(then=warm_up)

    @functools.cached_property
    def _oracle(self) -> SparkOracle:
        from ...properties.spark.oracle import Oracle

        return self._given or Oracle()


def _with_functions(questions: Sequence[bytes]) -> str:
    """The users' functions whose `spark` was in a batch: Spark finds an error of such a plan only when it executes
    it."""
    asked = (name for data in questions for one in decode(data) for name in user_nodes(one.job.workload).values())
    names = sorted(name for name in dict.fromkeys(asked) if not name.startswith(RESERVED))
    return f", in it `spark` of {', '.join(names)}" if names else ""


def _named(question: Question, name: str) -> Question:
    return replace(question, job=replace(question.job, id=name))


def _rows(question: Question, answer: OracleAnswer) -> int:
    """The rows of an answer that were compared: a question about state alone has none."""
    return len(answer.expected.rows) if answer.expected and question.quick.rows else 0


def in_words(differences: Sequence[Difference]) -> str:
    """The first of the differences, and how many there are."""
    first = differences[0]
    what = f"state entry {first.row} of {first.node}" if first.node else f"row ({row_in_words(cast(Row, first.row))})"
    cut = "the end" if first.cut == INFINITE else f"checkpoint {first.cut}"
    times = f"{abs(first.count)} times {'more' if first.count > 0 else 'less'} often"
    others = f"; {len(differences) - 1} more differences" if len(differences) > 1 else ""
    return f"at {cut} the quick checker has {what} {times} than PySpark{others}"


@functools.cache
def _engine() -> str:
    from importlib.metadata import version

    return f"pyspark {version('pyspark')}"
