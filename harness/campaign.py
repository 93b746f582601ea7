"""A whole verification: search, tell what was found, count it up, write the run folder."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..faults.plan import KINDS
from ..reports.model import ReportView, Seconds, Summary
from . import known_failures
from .exit_codes import CutproofError, ExitCode, one_line
from .findings import Finding, Teller
from .known_failures import KnownFailures
from .oracle import Oracle, PySpark
from .outcome import Outcome
from .pool import Here, Pool, Processes
from .profiles import Profile, falls_short, shortfalls
from .progress import Progress, Silent
from .scenario import COMMANDS, Scenario
from .search import Budget, Found, Search
from .store import RunFolder
from .subject import Subject
from .subject_names import subject_called
from .summary import Tally
from .worker import Plan

WORKERS = max(1, min(8, os.cpu_count() or 1))


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be verified, how long, and what it has to show."""

    plan: Plan
    budget: Budget
    profile: Profile
    version: str = ""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a campaign."""

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
    on_outcome: Callable[[Outcome], None] | None = None,
) -> Verified:
    """Verify.  A `subject` that is given runs in this process; one that is named, in workers."""
    began = time.perf_counter()
    plan = campaign.plan
    oracle = oracle or PySpark()
    here = subject or subject_called(plan.subject, plan.defect)
    pool: Pool = Processes(plan, WORKERS) if subject is None else Here(plan, subject)
    try:
        search = Search(pool, oracle, campaign.budget, folder=folder, progress=progress, on_outcome=on_outcome)
        found = search.run()
        try:
            findings = _findings(campaign, pool, here, oracle, found, folder, known, progress or Silent())
        except KeyboardInterrupt:
            found.interrupted, findings = True, []
    finally:
        pool.close()
    summary = _summary(campaign, here, found, findings, pool.workers, time.perf_counter() - began)
    view = ReportView(
        summary=summary, counterexamples=tuple(finding.view for finding in findings), samples=found.tally.samples()
    )
    failed = _write(folder, view) if folder is not None else ""
    if failed:
        summary = msgspec.structs.replace(summary, failures=[*summary.failures, failed])
        view = msgspec.structs.replace(view, summary=summary)
    confirmed = any(finding.confirmed and not finding.counterexample.known for finding in findings)
    return Verified(
        view=view, findings=tuple(findings), exit_code=exit_code_of(summary, campaign.profile, confirmed=confirmed)
    )


def exit_code_of(summary: Summary, profile: Profile, *, confirmed: bool) -> ExitCode:
    """`confirmed`: an unexpected violation that both judges saw; it outweighs all else."""
    if confirmed:
        return ExitCode.VIOLATED
    if summary.interrupted:
        return ExitCode.INTERRUPTED
    if summary.failures:
        return ExitCode.HARNESS_FAILED
    return ExitCode.FELL_SHORT if falls_short(profile, summary) else ExitCode.HELD


def _findings(
    campaign: Campaign,
    pool: Pool,
    subject: Subject,
    oracle: Oracle,
    found: Found,
    folder: RunFolder | None,
    known: KnownFailures | None,
    progress: Progress,
) -> list[Finding]:
    if not found.failing:
        return []
    progress.step("shrinking", None)

    def keep(name: str, scenario: Scenario) -> str:
        return folder.add_counterexample(name, scenario) if folder else f"{name}.json"

    teller = Teller(
        pool,
        subject,
        oracle,
        found,
        known=known or known_failures.read(None),
        keep=keep,
        replay_command=lambda path: replay_command(campaign.plan, folder.path if folder else Path(), path),
        subject_name=campaign.plan.subject,
    )
    return teller.findings()


def replay_command(plan: Plan, folder: Path, relative: str) -> str:
    """The one command that runs a counterexample again."""
    words = ["cutproof", "replay", str(folder / relative)]
    if plan.subject != "simulated":
        words += ["--subject", plan.subject]
    if plan.defect:
        words += ["--defect", plan.defect]
    return shlex.join(words)


def _summary(
    campaign: Campaign, subject: Subject, found: Found, findings: list[Finding], workers: int, total_s: float
) -> Summary:
    tally: Tally = found.tally
    busy_s = max(1e-9, found.search_s - found.start_s)
    capabilities = subject.capabilities
    return msgspec.structs.replace(
        tally.summary(),
        version=campaign.version,
        subject=subject.name,
        profile=campaign.profile.name,
        seed=campaign.plan.seed,
        oracle=found.oracle,
        seconds=Seconds(
            total=round(total_s, 3),
            start=round(found.start_s, 3),
            draw=round(tally.seconds["draw"] / workers, 3),
            run=round(tally.seconds["run"] / workers, 3),
            judge=round(tally.seconds["judge"] / workers, 3),
            oracle=round(found.oracle_s, 3),
        ),
        scenarios_per_second=round(tally.run / busy_s, 1),
        counterexamples=[finding.counterexample for finding in findings],
        shortfalls=shortfalls(campaign.profile, tally.shares(), tally.fired(), capabilities),
        interrupted=found.interrupted,
        not_tried=not_tried(subject),
        failures=found.failures,
    )


def not_tried(subject: Subject) -> list[str]:
    """What the subject cannot do, so that it was not asked of it."""
    capabilities = subject.capabilities
    return [
        *(f"fault {kind}" for kind in KINDS if kind not in capabilities.faults),
        *(f"command {kind}" for kind in COMMANDS if kind not in capabilities.commands),
    ]


def _write(folder: RunFolder, view: ReportView) -> str:
    """Write the folder's reports; why that failed, when it did."""
    began = time.perf_counter()
    try:
        folder.finish(view)
        spent = msgspec.structs.replace(view.summary.seconds, report=round(time.perf_counter() - began, 3))
        folder.write_summary(msgspec.structs.replace(view.summary, seconds=spent))
    except CutproofError as error:
        return one_line(error)
    return ""
