"""A whole verification: search, describe the findings, count, write the run folder."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ...properties.spark.unasked import by_both
from ...reports.model import ReportView, Seconds, ShownRun, Summary, ViolatedScenario
from ...reports.overview import why_short
from ..counterexamples.companion_findings import companion_findings
from ..counterexamples.findings import Finding, FindingBuilder, Keeping
from ..counterexamples.store import RunFolder
from ..runtime.exit_codes import CutproofError, ExitCode, one_line
from ..runtime.interruption import Interruption
from ..runtime.progress import Progress, Silent
from ..scenario.by_number import place_of
from ..spread.pool import SparkPool, demand_spreadable
from ..subject.names import check_capabilities, subject_called
from ..subject.not_run import in_sentences, with_commands
from ..subject.not_tried import not_tried
from ..subject.port import Capabilities, Subject, asks_pyspark, close
from . import known_failures
from .coverage import not_hit
from .known_failures import KnownFailures
from .oracle import Oracle, PySpark
from .outcome import ScenarioOutcome
from .pool import Here, Pool, Processes
from .profiles import Profile, shortfalls, unjudged
from .search import CHUNK, Budget, Found, Search
from .stops import never_hit
from .summary import Tally
from .worker import Plan, check_given

CORES = os.cpu_count() or 1
WORKERS = max(1, min(8, CORES))
REAL_TIME_WORKERS = 2 if CORES <= 2 else 3
"""on one machine: a worker mostly waits, but when the processes of its run work, they need a core"""

CHUNK_OF_A_TASK = 100
"""scenarios of a task on a cluster: about two seconds of work, twenty times what a task costs by itself"""


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be verified, for how long, and what the run has to show."""

    plan: Plan
    budget: Budget
    profile: Profile
    version: str = ""
    workers: int | None = None
    """worker processes; None: the number that suits the subject"""
    master: str | None = None
    """the master of a Spark cluster whose executors run the scenarios; None: worker processes of this machine do"""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a campaign."""

    view: ReportView
    findings: tuple[Finding, ...]
    exit_code: ExitCode

    @property
    def summary(self) -> Summary:
        return self.view.summary


def verify_campaign(
    campaign: Campaign,
    *,
    subject: Subject | None = None,
    folder: RunFolder | None = None,
    known: KnownFailures | None = None,
    progress: Progress | None = None,
    oracle: Oracle | None = None,
    on_outcome: Callable[[ScenarioOutcome], None] | None = None,
) -> Verified:
    """Verify.  A subject that is given as an object runs in this process, one that is given by name in workers.

    Raises UsageError for a subject that cannot run on the executors of the campaign's cluster.
    """
    work = _Work(campaign, subject, folder, known, progress or Silent(), oracle or PySpark())
    with Interruption() as interruption:
        return work.verified(interruption, on_outcome)


class _Work:
    """One verification: a search, its findings, and the run folder."""

    def __init__(
        self,
        campaign: Campaign,
        subject: Subject | None,
        folder: RunFolder | None,
        known: KnownFailures | None,
        progress: Progress,
        oracle: Oracle,
    ) -> None:
        plan = campaign.plan
        self._began = time.perf_counter()
        self._campaign = campaign
        self._folder = folder
        self._known = known or known_failures.read(None)
        self._progress = progress
        self._oracle = oracle
        self._own = subject is None
        self._subject = subject or subject_called(plan.subject, plan.defect)
        check_capabilities(self._subject, plan.subject)
        check_given(plan, self._subject.capabilities)
        self._real_time = self._subject.capabilities.real_time
        workers = campaign.workers or (REAL_TIME_WORKERS if self._real_time else WORKERS)
        self._pool = self._pool_of(campaign.master, workers)

    def _pool_of(self, master: str | None, workers: int) -> Pool:
        plan = self._campaign.plan
        if master is not None:
            demand_spreadable(self._subject, plan.subject if self._own else None)
            return SparkPool(plan, master)
        here = self._subject if not self._own or asks_pyspark(self._subject) else None
        return Processes(plan, workers) if here is None else Here(plan, here)

    def verified(self, interruption: Interruption, on_outcome: Callable[[ScenarioOutcome], None] | None) -> Verified:
        """Everything; or after an interruption what was done by then.  Both are written and reported."""
        search = Search(
            self._pool,
            self._oracle,
            self._campaign.budget,
            folder=self._folder,
            progress=self._progress,
            on_outcome=on_outcome,
            interruption=interruption,
            chunk=self._chunk,
        )
        try:
            found = search.run()
            if interruption.came:  # the workers end while the findings are described
                self._pool.stop()
            return self._reported(found, self._findings(found, interruption), interruption)
        except BaseException:
            self._pool.stop()
            raise
        finally:
            self._close(interruption)

    @property
    def _chunk(self) -> int:
        if self._campaign.master is not None:
            return CHUNK_OF_A_TASK
        return 1 if self._real_time else CHUNK

    def _close(self, interruption: Interruption) -> None:
        """End the workers, and close the subject if it was made here; the caller closes one that it has given."""
        if interruption.came:
            self._pool.stop()
        try:
            self._pool.close()
        finally:
            if self._own:
                close(self._subject)

    def _findings(self, found: Found, interruption: Interruption) -> list[Finding]:
        if not found.failing:
            return []
        limit = f", for {self._campaign.plan.shrink_s:g} s at most for each cause" if self._real_time else ""
        self._progress.step(f"shrinking{limit}", None)
        return [*self._companions(found), *self._of_scenarios(found, interruption)]

    def _companions(self, found: Found) -> Iterator[Finding]:
        """The findings of companion runs."""

        def keeping_with(options: tuple[str, ...]) -> Keeping:
            return self._keeping(found, lambda path: replay_companion_command(self._where, path, options))

        yield from companion_findings(found.failing, keeping_with, found.failures)

    def _of_scenarios(self, found: Found, interruption: Interruption) -> list[Finding]:
        if not found.failing_scenarios:
            return []
        plan = self._campaign.plan
        builder = FindingBuilder(
            self._pool,
            self._subject,
            self._oracle,
            found,
            known=self._known,
            keeping=self._keeping(found, lambda path: replay_command(plan, self._where, path)),
            subject_name=plan.subject,
            interruption=interruption,
            first=promised_by(plan.defect),
            shrink_s=plan.shrink_s,
        )
        return builder.findings()

    def _violated(self, outcome: ScenarioOutcome, found: Found) -> ViolatedScenario:
        unconfirmed = outcome.index in found.unconfirmed
        both = () if unconfirmed else by_both(outcome.verdicts, outcome.not_asked)
        return ViolatedScenario(
            index=outcome.index,
            name=outcome.scenario.name,
            violated={name: verdict.difference for name, verdict in outcome.violations},
            judges={name: 2 if name in both else 1 for name, _ in outcome.violations},
            replay=replay_command(self._campaign.plan, self._where, place_of(outcome.index)),
        )

    def _shown(self, found: Found) -> ShownRun | None:
        if found.shown is None:
            return None
        command = replay_command(self._campaign.plan, self._where, place_of(found.shown.index))
        return msgspec.structs.replace(found.shown, replay=command)

    @property
    def _where(self) -> Path:
        return self._folder.path if self._folder else Path()

    def _keeping(self, found: Found, command: Callable[[str], str]) -> Keeping:
        keep = self._folder.add_counterexample if self._folder else lambda name, _: f"{name}.json"
        return Keeping(keep=keep, replay_command=command, found_s=found.first_failure_s)

    def _reported(self, found: Found, findings: list[Finding], interruption: Interruption) -> Verified:
        """Count and write everything; an interruption at this point still leaves the report."""
        self._progress.step("writing the report")
        total_s = time.perf_counter() - self._began
        found.interrupted = found.interrupted or interruption.came
        plan = self._campaign.plan
        found.not_run = with_commands(found.not_run, lambda path: replay_command(plan, self._where, path))
        summary = _summary(self._campaign, self._subject, found, findings, self._pool.workers, total_s)
        view = ReportView(
            summary=summary,
            counterexamples=tuple(finding.view for finding in findings),
            violated=tuple(self._violated(outcome, found) for outcome in found.failing_scenarios),
            shown=self._shown(found),
            samples=found.tally.samples(),
        )
        if self._folder is not None:
            view = _written(self._folder, view)
        if interruption.came and not found.interrupted:
            view = msgspec.structs.replace(view, summary=_cut_off(view.summary, self._campaign.profile))
            view = _written(self._folder, view) if self._folder is not None else view
        confirmed = any(finding.confirmed and not finding.counterexample.known for finding in findings)
        code = exit_code_of(view.summary, confirmed=confirmed)
        return Verified(view=view, findings=tuple(findings), exit_code=code)


def promised_by(defect: str | None) -> str:
    """The invariant that a planted defect must violate; empty without one."""
    from ..reference_engine.defects import DEFECTS

    return DEFECTS[defect].invariant if defect else ""


def _cut_off(summary: Summary, profile: Profile) -> Summary:
    """The summary of a run that was interrupted while it was written."""
    why = unjudged(profile, summary.scenarios.run, interrupted=True)
    return msgspec.structs.replace(summary, interrupted=True, shortfalls=[], not_judged_by_shares=why)


def exit_code_of(summary: Summary, *, confirmed: bool) -> ExitCode:
    """`confirmed`: there is an unexpected violation that both judges saw, or about which PySpark is not asked; it
    has precedence over whatever came later."""
    if confirmed:
        return ExitCode.VIOLATED
    if summary.interrupted:
        return ExitCode.INTERRUPTED
    if summary.failures:
        return ExitCode.HARNESS_FAILED
    counts = summary.scenarios
    nothing_judged = counts.run > 0 and not (counts.held or counts.violated)
    return ExitCode.FELL_SHORT if summary.shortfalls or nothing_judged else ExitCode.HELD


def replay_command(plan: Plan, folder: Path, relative: str) -> str:
    """The one command that runs a counterexample again."""
    words = ["cutproof", "replay", str(folder / relative)]
    if plan.subject != "simulated":
        words += ["--subject", plan.subject]
    if plan.defect:
        words += ["--defect", plan.defect]
    for function in plan.functions:
        words += ["--function", function]
    return shlex.join(words)


def replay_companion_command(folder: Path, relative: str, options: tuple[str, ...]) -> str:
    """The same for a companion run, which is on the reference engine whatever the subject is."""
    return shlex.join(["cutproof", "replay", str(folder / relative), *options])


def _summary(
    campaign: Campaign, subject: Subject, found: Found, findings: list[Finding], workers: int, total_s: float
) -> Summary:
    tally: Tally = found.tally
    busy_s = max(1e-9, found.search_s - found.start_s)
    capabilities = subject.capabilities
    # a planted defect may do what a rule calls impossible: that is no contradiction
    contradictions = tally.coverage.contradictions() if campaign.plan.defect is None else []
    why_unjudged = unjudged(
        campaign.profile, tally.run + tally.undriven, stopped=found.stopped, interrupted=found.interrupted
    )
    return msgspec.structs.replace(
        tally.summary(),
        version=campaign.version,
        subject=subject.name,
        profile=campaign.profile.name,
        seed=campaign.plan.seed,
        oracle=tally.with_words(found.oracle),
        seconds=Seconds(
            total=round(total_s, 3),
            start=round(found.start_s, 3),
            draw=round(tally.seconds["draw"] / workers, 3),
            run=round(tally.seconds["run"] / workers, 3),
            judge=round(tally.seconds["judge"] / workers, 3),
            oracle=round(found.oracle_s, 3),
        ),
        scenarios_per_second=round(tally.run / busy_s, 3),
        counterexamples=[finding.counterexample for finding in findings],
        coverage=tally.coverage.coverage(capabilities),
        shortfalls=[] if why_unjudged else _shortfalls(campaign, tally, capabilities),
        not_judged_by_shares=why_unjudged,
        interrupted=found.interrupted,
        not_tried=not_tried(subject),
        not_run=found.not_run,
        failures=[*in_sentences(found.not_run), *found.failures, *contradictions],
    )


def _shortfalls(campaign: Campaign, tally: Tally, capabilities: Capabilities) -> list[str]:
    """What the run should have shown and did not."""
    return [
        *shortfalls(campaign.profile, tally.shares(), tally.fired(), capabilities, why_short(tally.summary())),
        *(_unreached(campaign.profile, tally, capabilities) if _is_free(campaign.plan) else ()),
    ]


def _is_free(plan: Plan) -> bool:
    """Whether nothing restricts the drawing, so that every target and every stop can be drawn."""
    return plan.loaded is None and plan.drawing.workload is None


def _unreached(profile: Profile, tally: Tally, capabilities: Capabilities) -> list[str]:
    """The targets and stops that the profile demands and that were not hit."""
    targets = _targets_not_hit(tally, capabilities) if profile.every_target else []
    return [*targets, *(never_hit(tally.stops(), capabilities) if profile.every_stop else ())]


def _targets_not_hit(tally: Tally, capabilities: Capabilities) -> list[str]:
    return not_hit(tally.coverage.empty(capabilities), capabilities, "no scenario hit")


def _written(folder: RunFolder, view: ReportView) -> ReportView:
    """The view when its files are written: with the seconds that this took, or the reason why it failed."""
    began = time.perf_counter()
    try:
        folder.finish(view)
        summary = view.summary
        spent = msgspec.structs.replace(summary.seconds, report=round(time.perf_counter() - began, 3))
        summary = msgspec.structs.replace(summary, seconds=spent)
        folder.write_summary(summary)
    except Exception as error:  # a full disk, or a report that cannot be drawn: the numbers are printed nevertheless
        message = one_line(error) if isinstance(error, CutproofError) else f"the report failed: {one_line(error)}"
        summary = msgspec.structs.replace(view.summary, failures=[*view.summary.failures, message])
    return msgspec.structs.replace(view, summary=summary)
