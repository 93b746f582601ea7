"""The search: draw scenarios, run and judge them, have PySpark judge them too.

Workers draw, run and judge by the quick checker.  Meanwhile Spark starts, and then judges the scenarios in batches.  If
the two judges disagree about a scenario, the harness has failed, and violations of that scenario are not confirmed.

Scenario i of a seed is the same whatever the budget, the order of the work or the number of workers.  If a search stops
at its first violated scenario, the scenarios that count are the same too: those up to it, in the order of drawing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Protocol

import msgspec

from ...properties.spark.unasked import ENDED, SPARK_FAILED, Unasked, by_both
from ...reports.model import NotRun, OracleCounts, ShownRun
from ..runtime.background import in_background
from ..runtime.cancellation import WorkCancelled
from ..runtime.exit_codes import CutproofError, UsageError, one_line
from ..runtime.interruption import Interruption
from ..runtime.progress import Progress, Silent
from ..scenario.files import text_of
from .kind import Ran
from .oracle import Examined, Oracle
from .outcome import RUN_KINDS, AnyOutcome, ScenarioOutcome, SystemOutcome
from .pool import Encoded, Pool, chunk_of
from .summary import Tally
from .worker import Chunk, Undriven

CHUNK = 20
"""scenarios that a worker takes at a time"""
CHUNKS_PER_WORKER = 2
"""how many chunks wait for each worker"""
BATCH = 4_000
"""scenarios in one question to PySpark: planning its queries takes 4 s of a core, and each scenario 2.5 ms"""
WORTHWHILE = 1_500
"""as soon as so many scenarios wait, PySpark is asked although others still run, if the search will soon be over"""
WAITING_AT_MOST = 40_000
"""scenarios that wait for PySpark, at 2 KB each, before no more are run: a cluster's cores can be faster than it"""


class Keeper(Protocol):
    """Where a search stores what it finds, while it goes on: a run folder, or a night of a bank."""

    def add(self, outcomes: Iterable[ScenarioOutcome]) -> None:
        """A chunk of judged scenarios."""

    def add_counterexample(self, name: str, text: str) -> str:
        """The text of a scenario's file; returns the file's path."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """How long a search goes on: until the first of these is reached."""

    scenarios: int
    seconds: float | None = None
    stop_at_first: bool = False
    """stop at the first violated scenario in the order of drawing; later ones that have run do not count"""


class Found(msgspec.Struct, kw_only=True):
    """What a search found, or has found so far."""

    tally: Tally
    oracle: OracleCounts = OracleCounts()
    failing: list[AnyOutcome] = []
    """violated by the quick checker, or as a companion, by index"""
    unconfirmed: dict[int, str] = {}
    """scenarios that PySpark did not confirm: by index the reason, empty if PySpark judged otherwise"""
    not_run: list[NotRun] = []
    """scenarios that the subject could not run, by number"""
    shown: ShownRun | None = None
    """the first run of a pipeline that recovered from a fault and held"""
    failures: list[str] = []
    """of the harness or its environment, each in one sentence"""
    interrupted: bool = False
    stopped: bool = False
    """the search stopped at the first violated scenario, as requested"""
    search_s: float = 0.0
    start_s: float = 0.0
    """how long the search only waited for interpreters and Spark to start"""
    oracle_s: float = 0.0
    first_failure_s: float = 0.0

    next_scenario: int = 0
    """the number of the first scenario that was not given to a worker"""

    @property
    def failing_scenarios(self) -> list[ScenarioOutcome]:
        return [one for one in self.failing if isinstance(one, ScenarioOutcome)]


class _Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that waits for PySpark's answer."""

    index: int
    question: bytes
    not_asked: Unasked
    by_both: tuple[str, ...]
    """the invariants whose verdicts PySpark confirms if it agrees"""


class Search:
    """One search; `run` once."""

    def __init__(
        self,
        pool: Pool,
        oracle: Oracle,
        budget: Budget,
        *,
        folder: Keeper | None = None,
        progress: Progress | None = None,
        on_outcome: Callable[[ScenarioOutcome], None] | None = None,
        interruption: Interruption | None = None,
        chunk: int = CHUNK,
        first: int = 0,
        tally: Tally | None = None,
    ) -> None:
        """`chunk`: how many scenarios a worker takes at a time; one, if each takes seconds.  `first`: the number of the
        first scenario, if a search before has run those below, and `tally` has counted them."""
        self._pool = pool
        self._chunk = chunk
        self._oracle = oracle
        self._budget = budget
        self._folder = folder
        self._progress = progress or Silent()
        self._on_outcome = on_outcome
        self._interruption = interruption or Interruption()
        self._found = Found(tally=tally or Tally(), failing=[], unconfirmed={}, not_run=[], failures=[])
        self._first = self._next = first
        self._end_at = first + budget.scenarios
        self._running: dict[Future[Encoded], int] = {}
        """chunks under way: the first scenario of each"""
        self._come: dict[int, Chunk] = {}
        """chunks that are done and not yet taken, by their first scenario"""
        self._waiting: list[_Waiting] = []
        self._examining: Future[Examined] | None = None
        self._asked: list[_Waiting] = []
        self._up: Future[None] = Future()
        """done once the oracle has started, or has failed to start"""
        self._began = 0.0
        self._ended = False
        """no more scenarios can be run: the environment failed"""

    def run(self) -> Found:
        """Search until the budget is spent; if something ends the search sooner, the results so far are kept.

        Raises UsageError for an error in the user's own code that makes judging impossible.
        """
        self._began = time.perf_counter()
        self._progress.step("running scenarios", self._budget.scenarios)
        try:
            self._feed()
            self._oracle.start()
            self._up = in_background(self._oracle.wait)
            self._work()
            self._judge_the_rest()
        except (KeyboardInterrupt, WorkCancelled):  # a signal to the whole process group reaches the workers too
            self._found.interrupted = self._interruption.came = True
            self._take_out_of_order()
            self._abandon()
        except UsageError:
            self._abandon()
            raise
        except BrokenExecutor:
            self._found.failures.append("a worker process died; its unfinished scenarios are lost")
            self._abandon()
        except Exception as error:  # an exception of a generator, or of the callback `on_outcome`
            self._found.failures.append(f"the search failed: {one_line(error)}")
            self._abandon()
        self._found.failing.sort(key=lambda one: (one.index, RUN_KINDS.index(one.kind)))
        self._found.not_run.sort(key=lambda one: one.number)
        self._found.search_s = time.perf_counter() - self._began
        self._found.next_scenario = self._next
        return self._found

    def _abandon(self) -> None:
        """Give up the work that is left; scenarios that PySpark has not judged are not confirmed."""
        self._unanswered([*self._asked, *self._waiting], ENDED)

    def _work(self) -> None:
        while self._running:
            with self._interruption.open():
                done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=self._running.__getitem__):
                self._come[self._running.pop(future)] = chunk_of(future.result())
            self._take_what_came()
            self._catch_up()
            if not self._over():
                self._feed()
            self._examine(least=self._worthwhile)

    def _catch_up(self) -> None:
        """Wait until fewer scenarios wait for PySpark, if there are too many."""
        while len(self._waiting) > WAITING_AT_MOST and not self._over():
            with self._interruption.open():
                if self._examining is None:
                    wait([self._up])
                else:
                    wait([self._examining])
            self._examine(least=self._worthwhile)

    @property
    def _worthwhile(self) -> int:
        """How many scenarios have to wait before PySpark is asked.

        A full batch costs least for each scenario.  Near the end a smaller one leaves less to do when all have run.
        """
        return WORTHWHILE if min(self._end_at - self._next, self._most_in_time) < BATCH else BATCH

    @property
    def _most_in_time(self) -> float:
        """How many scenarios can be run in the time that is left, at the speed so far."""
        if self._budget.seconds is None:
            return math.inf
        passed = time.perf_counter() - self._began
        return (self._next - self._first) * (self._budget.seconds - passed) / passed

    def _feed(self) -> None:
        while len(self._running) < CHUNKS_PER_WORKER * self._pool.workers and self._next < self._end_at:
            first, end = self._next, min(self._next + self._chunk, self._end_at)
            with self._interruption.open():
                future = self._pool.chunk(first, end)
            self._running[future] = first
            self._next = end

    def _over(self) -> bool:
        budget = self._budget
        late = budget.seconds is not None and time.perf_counter() - self._began >= budget.seconds
        return self._ended or late or self._found.stopped

    def _take_what_came(self) -> None:
        """Take all chunks that are done.

        If the first violated scenario ends the search, a chunk is taken only after all earlier ones.
        """
        for first in sorted(self._come):
            if self._budget.stop_at_first and any(other < first for other in self._running.values()):
                return
            chunk = self._come.pop(first)
            self._take(chunk.up_to_first_violation() if self._budget.stop_at_first else chunk)
            if self._budget.stop_at_first and self._found.failing:
                self._stop()
                return

    def _take_out_of_order(self) -> None:
        """Keep outcomes that waited for an earlier scenario which will not come."""
        while self._budget.stop_at_first and self._come:
            self._take(self._come.pop(min(self._come)))

    def _stop(self) -> None:
        """Drop the scenarios after the first violated one, whether they have run or not."""
        self._found.stopped = True
        for future in self._running:
            future.cancel()
        self._running.clear()
        self._come.clear()

    def _take(self, chunk: Chunk) -> None:
        found = self._found
        if chunk.wrong:
            raise UsageError(chunk.wrong)
        if self._pool.starts and not found.tally.run and not found.tally.undriven:
            found.start_s += time.perf_counter() - self._began
        scenarios = [one for one in chunk.undriven if one.kind == ScenarioOutcome.kind]
        found.tally.undriven += len(scenarios)
        found.failures.extend(
            f"{one.kind} {one.number} could not be run: {one.reason}" for one in chunk.undriven if one not in scenarios
        )
        if chunk.ended:
            self._end(chunk)
        self._store([one.outcome for one in chunk.ran], scenarios)
        for one in chunk.ran:
            self._take_outcome(one)
        self._progress.advance(found.tally.run, _note(found.tally))

    def _take_outcome(self, ran: Ran) -> None:
        found, outcome = self._found, ran.outcome
        found.tally.add(outcome)
        if isinstance(outcome, ScenarioOutcome) and outcome.shown is not None:
            found.shown = min(filter(None, (found.shown, outcome.shown)), key=lambda one: one.index)
        if outcome.violations:
            if not found.failing:
                found.first_failure_s = time.perf_counter() - self._began
            found.failing.append(outcome)
        if ran.question is not None and isinstance(outcome, ScenarioOutcome):
            why = outcome.not_asked
            both = by_both(outcome.verdicts, why)
            self._waiting.append(_Waiting(index=outcome.index, question=ran.question, not_asked=why, by_both=both))
        if self._on_outcome is not None and isinstance(outcome, ScenarioOutcome):
            self._on_outcome(outcome)

    def _end(self, chunk: Chunk) -> None:
        """Report why no more can be run, once, however many workers report it; and start no further chunk."""
        self._ended = True
        self._report(chunk.ended)
        for future in [future for future in self._running if future.cancel()]:
            del self._running[future]

    def _report(self, failure: str) -> None:
        """Report a failure of the harness or its environment, once."""
        if failure not in self._found.failures:
            self._found.failures.append(failure)

    def _store(self, outcomes: list[AnyOutcome], not_run: list[Undriven]) -> None:
        """Write a chunk into the run folder, as long as that is possible: its scenarios, and those that could not be
        run."""
        kept = dict.fromkeys((undriven.index for undriven in not_run), "")
        try:
            if self._folder is not None:
                self._folder.add(one for one in outcomes if isinstance(one, ScenarioOutcome))
                for undriven in not_run:
                    name = f"undriven-{undriven.index}"
                    kept[undriven.index] = self._folder.add_counterexample(name, text_of(undriven.scenario))
        except CutproofError as error:
            self._found.failures.append(one_line(error))
            self._folder = None
        self._found.not_run.extend(
            NotRun(number=undriven.index, reason=undriven.reason, scenario=kept[undriven.index]) for undriven in not_run
        )

    def _examine(self, *, least: int) -> None:
        """Give PySpark the next batch, if it has started and has none, and enough scenarios wait."""
        if self._examining is not None and self._examining.done():
            self._answered(self._examining)
        if self._examining is None and self._up.done() and len(self._waiting) >= max(1, least):
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            self._asked = batch
            self._examining = in_background(self._oracle.examine, [one.question for one in batch])

    def _answered(self, examining: Future[Examined]) -> None:
        found, asked = self._found, self._asked
        self._examining, self._asked = None, []
        try:
            examined = examining.result()
        except UsageError:
            raise
        except Exception as error:
            self._unanswered(asked, SPARK_FAILED)
            self._report(
                one_line(error) if isinstance(error, CutproofError) else f"the oracle failed: {one_line(error)}"
            )
            return
        found.oracle_s += examined.seconds
        found.oracle = msgspec.structs.replace(
            found.oracle,
            engine=examined.engine,
            workloads=found.oracle.workloads + examined.workloads,
            expected_rows=found.oracle.expected_rows + examined.expected_rows,
            queries=found.oracle.queries + examined.queries,
            disagreements=found.oracle.disagreements + len(examined.disagreements),
        )
        differing = dict(examined.disagreements)
        for position, one in enumerate(asked):
            found.tally.add_word(one.not_asked, one.by_both if position not in differing else ())
        for position, words in differing.items():
            index = asked[position].index
            found.unconfirmed[index] = ""
            found.failures.append(f"the two judges disagree about scenario {index}: {words}")

    def _unanswered(self, asked: list[_Waiting], why: str) -> None:
        """Scenarios for which PySpark gave no answer, although it was asked about some of them."""
        for one in asked:
            self._found.unconfirmed[one.index] = why
            left_out = one.not_asked
            unasked = Unasked(rows=left_out.rows or why, state=left_out.state or why, forks=left_out.forks or why)
            self._found.tally.add_word(unasked)

    def _judge_the_rest(self) -> None:
        if self._examining is None and not self._waiting:
            return
        self._progress.step("waiting for PySpark")
        idle = time.perf_counter()
        with self._interruption.open():
            wait([self._up])
        self._found.start_s += time.perf_counter() - idle
        self._progress.step("judging with PySpark", self._found.tally.run)
        while self._examining is not None or self._waiting:
            if self._examining is not None:
                with self._interruption.open():
                    wait([self._examining])
            self._examine(least=1)
            self._progress.advance(self._found.tally.run - len(self._waiting) - len(self._asked))


def _note(tally: Tally) -> str:
    """What stands next to the progress bar: the counts that the bar does not show."""
    violated = sum(counts["violated"] for counts in tally.ran.values())
    systems = tally.ran[SystemOutcome.kind].total()
    parts = (
        f"{systems:,} systems" if systems else "",
        f"{violated} violated" if violated else "",
        f"{tally.undriven:,} could not be run" if tally.undriven else "",
    )
    return ", ".join(filter(None, parts))
