"""One subject's part of a night: replays, then exploration and shrinking in turn until its time is over."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from ...properties.spark.unasked import SPARK_FAILED
from ...reports.model import Counterexample, NotRun, OracleCounts
from ...reports.nights.model import Failure, Origin, Replay, SubjectNight
from ..generate.aims import Learnt
from ..generate.swarm import Batches, Swarm, drawn_again, features_in
from ..runtime.exit_codes import CutproofError, UsageError, one_line
from ..runtime.interruption import Interruption
from ..runtime.progress import Progress
from ..scenario.model import Scenario
from ..scenario.slices import sliced
from ..search.campaign import CHUNK_OF_A_TASK, REAL_TIME_WORKERS, WORKERS, promised_by
from ..search.coverage import AnyTarget, every_target, in_a_table, in_words, not_hit
from ..search.known_failures import KnownFailures
from ..search.oracle import Oracle, put
from ..search.outcome import outcome_of
from ..search.pool import Here, Pool, Processes
from ..search.profiles import Profile, shortfalls, unjudged
from ..search.search import CHUNK, CHUNKS_PER_WORKER, Budget, Found, Search
from ..search.stops import never_hit
from ..search.summary import Tally
from ..search.worker import Plan, full_drawing
from ..spread.pool import SparkPool
from ..subject.not_run import in_sentences
from ..subject.port import DrawingItself, Subject, asks_pyspark
from . import plan as division
from .bank import Bank, BankFailed
from .durations import Durations
from .index import Index
from .night import NightLog
from .replays import Replayer, Seen
from .shrinking import CURRENT, Shrinking, counterexample_of, with_known
from .watch import Watch

T = TypeVar("T")

NOT_HIT_NAMED = 24
"""how many targets that no night has hit are in the record of a night"""
SHARE_OF_BATCHES = 85
"""the per cent of its shares that a profile wants of a night: a batch that leaves features out exercises less"""

BATCH, REAL_TIME_BATCH = 100, 10
"""scenarios in a batch"""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What one subject of a night is to do."""

    place: int
    """its number among the subjects of the night"""
    plan: Plan
    profile: Profile
    seconds: float
    scenarios: int | None = None
    workers: int | None = None
    master: str | None = None


class SubjectDone(msgspec.Struct, frozen=True, kw_only=True):
    """What one subject's part of a night counted, besides its record."""

    tally: Tally
    oracle: OracleCounts
    search_s: float
    oracle_s: float
    start_s: float
    counterexamples: list[Counterexample]
    not_run: list[NotRun]
    confirmed: set[str]
    """failures of the bank about whose replay, or whose scenario of this night, the judges agree"""
    confirmed_left: bool
    """a failing scenario is left to the next night that both judges saw, and that no failure of the bank explains"""
    unjudged: str
    """why it is not judged by its profile's shares, in one sentence; empty if it is"""


class SubjectPart:
    """One subject's part of a night; `run` once."""

    def __init__(
        self,
        share: Share,
        subject: Subject,
        bank: Bank,
        log: NightLog,
        index: Index,
        *,
        known: KnownFailures,
        oracle: Oracle,
        progress: Progress,
        interruption: Interruption,
    ) -> None:
        self._share, self._subject, self._bank, self._log, self._index = share, subject, bank, log, index
        self._known, self._oracle = known, oracle
        self._progress, self._interruption = progress, interruption
        self._began = time.monotonic()
        self._deadline = self._began + share.seconds
        self._real_time = subject.capabilities.real_time
        hits = index.hits.get(share.plan.subject, {})
        learnt = index.learnt.get(share.plan.subject, Learnt())
        shrink_s = min(share.plan.shrink_s, share.seconds / division.SHRINKING)
        self._plan = _with_swarm(replace(share.plan, shrink_s=shrink_s), subject, bank, hits, learnt)
        self._drawing = full_drawing(self._plan, subject.capabilities)
        self._batches = Batches(self._drawing, self._plan.swarm) if self._plan.swarm is not None else None
        self._tally = Tally()
        self._counts = OracleCounts()
        self._seconds = {"search": 0.0, "oracle": 0.0, "start": 0.0}
        self._failures: list[str] = []
        self._not_run: list[NotRun] = []
        self._next = 0
        self._confirmed: set[str] = set()
        """failures of the bank whose replay, or whose scenario of this night, both judges have judged alike"""
        self._confirmed_left = False
        self._counted = 0
        """batches of which `_left_out` has the features"""
        self._left_out = Counter[str]()
        self._checkpoints, self._recoveries = Durations(), Durations()
        self._seen: list[Counterexample] = []
        self._watch = Watch(
            bank,
            log.night.id,
            self._plan.subject,
            self._plan.defect or "",
            subject.capabilities,
            first=promised_by(self._plan.defect),
            before=hits,
            learnt=learnt,
            origin=self._origin,
            on_chunk=self._write,
        )

    def run(self) -> SubjectDone:
        """Everything, or after an interruption what was done by then; raises CutproofError if the bank or the
        environment failed, after what was done is written."""
        pool = self._pool()  # first: the oracle takes the session of the pool's cluster
        self._oracle.start()
        try:
            self._replay(pool)
            self._explore(pool)
        except KeyboardInterrupt:
            self._interruption.came = True
        except (BankFailed, UsageError):
            raise
        except CutproofError as error:  # of the environment: another subject may do without it
            self._failures.append(one_line(error))
        finally:
            if self._interruption.came:
                pool.stop()
            pool.close()
        return self._done()

    def _pool(self) -> Pool:
        if self._share.master is not None:
            return SparkPool(self._plan, self._share.master)
        workers = self._share.workers or (REAL_TIME_WORKERS if self._real_time else WORKERS)
        return Here(self._plan, self._subject) if asks_pyspark(self._subject) else Processes(self._plan, workers)

    # replays

    def _replay(self, pool: Pool) -> None:
        mine = [one for one in self._bank.failures.values() if one.subject == self._plan.subject]
        if not mine:
            return
        deadline = time.monotonic() + self._share.seconds / division.REPLAYS
        self._progress.step("replaying the bank", len(mine))
        replayer = Replayer(self._subject, self._plan.defect or "", self._redrawn, self._guarded)
        seen: dict[str, Seen] = {}
        order = self._by_need(mine)
        try:
            for failure in order:
                if time.monotonic() >= deadline and seen:
                    break
                scenario = self._bank.scenario(failure.id)
                one = replayer.replayed(failure, scenario, self._index.standings.get(failure.id))
                seen[failure.id] = one
                self._log.add_replay(with_known(one.replay, failure, self._known))
                self._progress.advance(len(seen))
        finally:
            late = [failure.id for failure in order if failure.id not in seen]
            self._log.change(not_replayed=[*self._log.night.not_replayed, *late])
        disputed = self._ask(list(seen.values()), pool)
        self._keep_others([one for one in seen.values() if one.replay.failure not in disputed])
        shown = (failure for failure in mine if failure.id in seen and seen[failure.id].replay.status in CURRENT)
        self._seen += [counterexample_of(failure, self._known) for failure in shown]

    def _by_need(self, failures: Sequence[Failure]) -> list[Failure]:
        """First those that no night has replayed for the longest time, whatever ended the nights since and whatever
        subjects they had; then by the day on which they were found."""
        last = {replay.failure: at for at, night in enumerate(self._bank.nights) for replay in night.replays}
        return sorted(failures, key=lambda one: (last.get(one.id, -1), one.found, one.id))

    def _keep_others(self, seen: Sequence[Seen]) -> None:
        """Keep the replays that fail in another way than their failure of the bank, to be shrunk."""
        others = [(one.replay.failure, one.other) for one in seen if one.other is not None]
        for number, (failure, result) in enumerate(others, start=1):
            outcome = outcome_of(
                -number,
                result.scenario,
                result.history,
                result.judgement.verdicts,
                not_asked=put(result).unasked,
                seconds=(0.0, result.run_s, result.judge_s),
            )
            self._watch.keep(outcome, self._bank.failures[failure].origin)

    def _ask(self, seen: Sequence[Seen], pool: Pool) -> set[str]:
        """Have PySpark judge the replays too, if it can; returns the failures about whose replays the judges
        disagree."""
        disputed: set[str] = set()
        asked = [(one, put(one.result)) for one in seen if one.result is not None]
        if not asked:
            return disputed
        self._progress.step("judging the replays with PySpark")
        with self._interruption.open():
            try:
                examined = self._oracle.examine([question.question for _, question in asked])
            except UsageError:
                raise
            except CutproofError as error:
                why = f"{one_line(error)}: the replays have one judge ({SPARK_FAILED})"
                self._failures.append(pool.lost or why)
                return disputed
        self._seconds["oracle"] += examined.seconds
        self._confirmed.update(one.replay.failure for one, _ in asked)
        for position, words in examined.disagreements:
            failure = asked[position][0].replay.failure
            self._confirmed.discard(failure)
            disputed.add(failure)
            self._failures.append(f"the two judges disagree about the replay of failure {failure}: {words}")
            self._log.add_replay(
                Replay(failure=failure, status="not_reached", words="the two judges disagree about its replay")
            )
        return disputed

    def _redrawn(self, failure: Failure) -> Scenario:
        """The scenario that was drawn for a failure, by the present generator."""
        origin = failure.origin
        if isinstance(self._subject, DrawingItself):
            drawing = self._plan.drawing
            return self._subject.draw(
                origin.seed, origin.index, max_records=drawing.max_records, max_faults=drawing.max_faults
            )

        def draw(seed: int, index: int) -> Scenario:
            return drawn_again(self._drawing, origin.left_out, origin.group, seed, index)

        whole = draw if self._plan.loaded is None else sliced(draw, self._plan.loaded)
        return whole(origin.seed, origin.index)

    def _guarded(self, work: Callable[[], T]) -> T:
        with self._interruption.open():
            return work()

    # exploration

    def _explore(self, pool: Pool) -> None:
        shrinking = Shrinking(
            self._bank,
            self._log,
            self._plan,
            self._subject,
            pool,
            self._oracle,
            known=self._known,
            interruption=self._interruption,
            progress=self._progress,
        )
        try:
            shrinking.work(time.monotonic() + self._left_s() / division.SHRINKING, {})
            while self._goes_on():
                before = self._tally.run + self._tally.undriven
                found = self._searched(pool, self._left_s() * (1 - 1 / division.SHRINKING))
                if found.interrupted:
                    return
                shrinking.work(self._deadline, found.unconfirmed)
                if found.tally.run + found.tally.undriven == before:
                    return  # nothing can be run any more
                if pool.lost:
                    self._failures.append(pool.lost)
                    break
            shrinking.drop_explained()
            self._confirmed_left = bool(shrinking.waiting())
        finally:
            self._confirmed |= shrinking.confirmed
            self._failures += shrinking.failures
            self._seen += shrinking.counterexamples
            if shrinking.dropped:
                alike = f"{shrinking.dropped:,} failing scenarios fail like failures of the bank, and were not shrunk"
                if self._watch.not_kept:
                    alike += f"; {self._watch.not_kept:,} more with the same differences were only counted"
                self._log.add_words([f"{self._plan.subject}: {alike}"])

    def _left_s(self) -> float:
        return self._deadline - time.monotonic()

    def _goes_on(self) -> bool:
        share = self._share
        if self._interruption.came:
            return False
        if share.scenarios is not None and self._next >= share.scenarios:
            return False
        return self._next == 0 or self._left_s() > division.LEAST_S

    def _searched(self, pool: Pool, seconds: float) -> Found:
        """Search on for so many seconds."""
        share = self._share
        counts = self._watch.counts
        chunk = self._chunk
        most = division.slice_after(counts.run, counts.violated, CHUNKS_PER_WORKER * pool.workers * chunk)
        if share.scenarios is not None:
            most = min(most, share.scenarios - self._next)
        self._watch.begin()
        search = Search(
            pool,
            self._oracle,
            Budget(scenarios=most, seconds=max(0.1, seconds)),
            folder=self._watch,
            progress=self._progress,
            interruption=self._interruption,
            chunk=chunk,
            first=self._next,
            tally=self._tally,
        )
        found = search.run()
        self._next = found.next_scenario
        self._not_run += found.not_run
        for name, spent in (("search", found.search_s), ("oracle", found.oracle_s), ("start", found.start_s)):
            self._seconds[name] += spent
        self._counts = sum_of(self._counts, found.oracle)
        if self._watch.error is not None:
            raise self._watch.error
        self._failures += found.failures
        return found

    @property
    def _chunk(self) -> int:
        if self._share.master is not None:
            return CHUNK_OF_A_TASK
        return 1 if self._real_time else CHUNK

    def _origin(self, index: int) -> Origin:
        seed, profile = self._plan.seed, self._share.profile.name
        if self._batches is None:
            return Origin(seed=seed, index=index, profile=profile)
        left_out = self._batches.left_out(seed, index // self._batches.size)
        group = self._batches.group_number(seed, index)
        return Origin(seed=seed, index=index, profile=profile, left_out=left_out, group=group)

    # the record

    def _write(self) -> None:
        self._log.set_subject(self._share.place, self._record())
        self._log.write()

    def _record(self, *, last: bool = False) -> SubjectNight:
        watch, capabilities = self._watch, self._subject.capabilities
        counts = watch.counts
        batches, left_out = self._batch_counts(counts.run)
        samples = self._tally.samples()
        busy_s = max(watch.seconds, self._seconds["search"]) - self._seconds["start"]
        return SubjectNight(
            subject=self._plan.subject,
            defect=self._plan.defect or "",
            seconds=round(time.monotonic() - self._began, 3),
            seed=self._plan.seed,
            scenarios=counts,
            scenarios_per_second=round(counts.run / busy_s, 1) if busy_s > 0 else 0.0,
            could_not_run=len(self._not_run),
            first_failure_s=watch.first_failure_s,
            targets=in_a_table(watch.hits),
            possible=len(every_target(capabilities)),
            not_hit=[in_words(one) for one in self._not_hit()[:NOT_HIT_NAMED]] if last else [],
            transitions=watch.transitions.scenarios,
            transitions_with=watch.transitions.with_features,
            growth=watch.curve,
            checkpoints_ms=self._checkpoints.of(samples.checkpoint_durations_us, exactly=last),
            recoveries_ms=self._recoveries.of(samples.recovery_times_us, exactly=last),
            batches=batches,
            left_out=left_out,
            failures=list(dict.fromkeys(self._failures)),
        )

    def _batch_counts(self, scenarios: int) -> tuple[int, dict[str, int]]:
        """The batches begun, and how many of them left each feature out."""
        if self._batches is None or not scenarios:
            return 0, {}
        number = -(-max(scenarios, self._next) // self._batches.size)
        for batch in range(self._counted, number):
            self._left_out.update(self._batches.left_out(self._plan.seed, batch))
        self._counted = max(self._counted, number)
        return self._counted, dict(sorted(self._left_out.items()))

    def _done(self) -> SubjectDone:
        contradictions = self._tally.coverage.contradictions() if self._plan.defect is None else []
        record = self._record(last=True)
        failures = list(dict.fromkeys([*in_sentences(self._not_run), *record.failures, *contradictions]))
        record = replace(record, shortfalls=self._shortfalls(), failures=failures)
        self._log.set_subject(self._share.place, record)
        self._log.write()
        return SubjectDone(
            tally=self._tally,
            oracle=self._counts,
            search_s=self._seconds["search"],
            oracle_s=self._seconds["oracle"],
            start_s=self._seconds["start"],
            counterexamples=self._seen,
            not_run=self._not_run,
            confirmed=self._confirmed,
            confirmed_left=self._confirmed_left,
            unjudged=unjudged(self._share.profile, self._tally.run),
        )

    def _shortfalls(self) -> list[str]:
        """What the part had to show and did not, if it was as long as its profile."""
        profile, run = self._share.profile, self._tally.run + self._tally.undriven
        counts = self._watch.counts
        if not (counts.held or counts.violated or self._not_run or self._failures or self._interruption.came):
            return [f"none of {counts.run:,} scenarios was judged" if counts.run else "no scenario was run"]
        if unjudged(profile, run, interrupted=self._interruption.came):
            return []
        capabilities = self._subject.capabilities
        wanted = profile
        if self._batches is not None:
            shares = {name: share * SHARE_OF_BATCHES // 100 for name, share in profile.shares.items()}
            wanted = replace(profile, shares=shares)
        found = shortfalls(wanted, self._tally.shares(), self._tally.fired(), capabilities)
        if self._plan.loaded is None:
            found += self._never_hit() if profile.every_target else []
            found += never_hit(self._tally.stops(), capabilities) if profile.every_stop else []
        return found

    def _never_hit(self) -> list[str]:
        return not_hit(self._not_hit(), self._subject.capabilities, "no night hit")

    def _not_hit(self) -> list[AnyTarget]:
        """The possible targets that no night of the bank has hit."""
        before, hit = self._index.hits.get(self._plan.subject, {}), self._watch.hits
        possible = every_target(self._subject.capabilities)
        return [one for one in possible if one not in hit and in_words(one) not in before]


def _with_swarm(plan: Plan, subject: Subject, bank: Bank, hits: dict[str, int], learnt: Learnt) -> Plan:
    """The plan with batches, weighted by what the bank knows; a subject that draws its scenarios itself has none."""
    if isinstance(subject, DrawingItself):
        return plan
    failures = [one for one in bank.failures.values() if one.subject == plan.subject]
    features = {name for one in failures for name in features_in(bank.scenario(one.id))}
    swarm = Swarm(
        batch=REAL_TIME_BATCH if subject.capabilities.real_time else BATCH,
        hits=hits,
        learnt=learnt,
        points=tuple(sorted({one.point for one in failures if one.point})),
        features=tuple(sorted(features)),
    )
    return replace(plan, swarm=swarm)


def sum_of(one: OracleCounts, other: OracleCounts) -> OracleCounts:
    return replace(
        one,
        engine=other.engine or one.engine,
        workloads=one.workloads + other.workloads,
        expected_rows=one.expected_rows + other.expected_rows,
        queries=one.queries + other.queries,
        disagreements=one.disagreements + other.disagreements,
    )
