"""`cutproof chaos`: one night of a bank.

A night replays the bank, explores from a seed of the day, and shrinks what is new.  Whatever ends it, the bank has all
that was judged by then.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ...reports.model import OracleCounts, Seconds, Summary
from ...reports.nights.files import PAGE
from ...reports.nights.lives import fixed_before
from ...reports.nights.model import Failure, Night
from ...reports.words import plural
from ..runtime.exit_codes import CutproofError, ExitCode, UsageError, one_line
from ..runtime.interruption import Interruption
from ..runtime.progress import Progress, Silent
from ..search import known_failures
from ..search.campaign import exit_code_of
from ..search.oracle import Oracle, PySpark
from ..search.profiles import profile_called
from ..search.summary import Tally
from ..search.verification import Request, plan_of
from ..search.worker import check_given
from ..spread.pool import demand_spreadable
from ..subject.names import check_capabilities, subject_called
from ..subject.not_tried import not_tried
from ..subject.port import Capabilities, Subject, check, closing, prepare
from ..workloads.inputs import LoadedWorkload
from . import plan as division
from .bank import Bank
from .index import write_index
from .night import NightLog
from .pages import write_pages
from .shrinking import CURRENT
from .subject_night import Share, SubjectDone, SubjectPart, sum_of


class ChaosRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a user requests of a night."""

    bank: Path
    seconds: float
    subjects: tuple[str, ...]
    seed: int
    profile: str = "nightly"
    scenarios: int | None = None
    """the most scenarios of each subject"""
    defect: str | None = None
    workload: LoadedWorkload | None = None
    functions: tuple[str, ...] = ()
    known: Path | None = None
    """a file of known failures"""
    out: Path | None = None
    """the folder of the page of the nights; None: the bank"""
    workers: int | None = None
    master: str | None = None
    """the master of a Spark cluster whose executors run and shrink the scenarios; None: worker processes do"""


class BankCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The failures of a bank by what the night saw of them."""

    new: int = 0
    still_failing: int = 0
    flaky: int = 0
    fixed: int = 0
    not_reached: int = 0
    again: int = 0
    """of those that fail still: how many an earlier night had found fixed"""
    known: int = 0
    """of those that fail: how many are expected"""
    not_replayed: int = 0
    """the night had no time for them"""
    unshrunk: int = 0
    """failing scenarios that the next night will shrink"""


class NightSummary(Summary, frozen=True, kw_only=True):
    """The summary of a night over all its subjects, as `chaos --json` prints it."""

    bank: BankCounts = BankCounts()
    night: str = ""
    """the night's id"""


class NightDone(msgspec.Struct, frozen=True, kw_only=True):
    """A night that has ended."""

    night: Night
    failures: dict[str, Failure]
    """those that the night saw, by id"""
    summary: NightSummary
    exit_code: ExitCode
    page: Path
    """the page of the nights"""
    page_failed: str = ""
    """why it could not be written, in one line"""
    fixed_before: frozenset[str] = frozenset()
    """the failures that an earlier night had found fixed, and that still are"""


def run_night(
    request: ChaosRequest,
    *,
    progress: Progress | None = None,
    oracle: Oracle | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> NightDone:
    """One night.  Raises CutproofError for bad input, and if the bank cannot be written.

    With a master, each subject must be able to run on executors; a cluster that fails ends the exploration, not the
    night.
    """
    from ..runtime.version import package_version

    began = time.monotonic()
    progress, oracle = progress or Silent(), oracle or PySpark()
    with contextlib.ExitStack() as stack:
        subjects = [stack.enter_context(_made(name, request, progress)) for name in request.subjects]
        bank = stack.enter_context(Bank(request.bank))
        index = write_index(bank)
        known_file = request.known
        known_failures.read(known_file)  # before the night begins: a mistake in it must not end one
        _make_folder(request.out)
        log = NightLog(bank, version=package_version(), budget_s=request.seconds, master=request.master)
        known = known_failures.read(known_file, log.today)
        log.add_words(_of_other_subjects(bank, request.subjects))
        for words in log.night.words:
            say(words)
        _write_page(request, bank)  # for the morning after a night that is killed
        interruption = stack.enter_context(Interruption())
        done: list[SubjectDone] = []
        try:
            for place, subject in enumerate(subjects):
                if interruption.came:
                    break
                left_s = request.seconds - (time.monotonic() - began)
                share = _share(request, place, subject, division.share_s(left_s, len(subjects) - place))
                part = SubjectPart(
                    share, subject, bank, log, index,
                    known=known, oracle=oracle, progress=progress, interruption=interruption,
                )  # fmt: skip
                done.append(part.run())
        except CutproofError as error:
            with contextlib.suppress(CutproofError):
                log.add_words([one_line(error)])
                log.end(error.exit_code, left=len(bank.unshrunk))
                _write_page(request, bank)
            raise
        progress.step("writing the bank")
        return _ended(request, bank, log, subjects, done, interruption, time.monotonic() - began)


@contextlib.contextmanager
def _made(name: str, request: ChaosRequest, progress: Progress) -> Iterator[Subject]:
    """A subject with all that it needs, checked before the night begins; it is closed at the end."""
    with closing(subject_called(name, request.defect)) as subject:
        check_capabilities(subject, name)
        check(subject)
        if request.master is not None:
            _demand_spreadable(subject, name, request)
        prepare(subject, progress)
        check_given(_share(request, request.subjects.index(name), subject, 0.0).plan, subject.capabilities)
        yield subject


def _demand_spreadable(subject: Subject, name: str, request: ChaosRequest) -> None:
    """Raise UsageError if one subject of a night on a cluster cannot run there: none of them is tested."""
    try:
        demand_spreadable(subject, name)
    except UsageError as error:
        if len(request.subjects) == 1:
            raise
        raise UsageError(f"{error}, or test {name} in a night of its own without it") from None


def _share(request: ChaosRequest, place: int, subject: Subject, seconds: float) -> Share:
    real_time = subject.capabilities.real_time
    asked = Request(
        subject=request.subjects[place],
        defect=request.defect,
        profile=request.profile,
        seed=request.seed,
        workload=request.workload,
        real_time=real_time,
        functions=request.functions,
    )
    return Share(
        place=place,
        plan=replace(plan_of(asked), companions=False),
        profile=profile_called(request.profile, real_time=real_time),
        seconds=seconds,
        scenarios=request.scenarios,
        workers=request.workers,
        master=request.master,
    )


def _of_other_subjects(bank: Bank, subjects: Sequence[str]) -> list[str]:
    """What is said about failures that the night does not replay, since their subjects are not its own."""
    others = sorted(one.subject for one in bank.failures.values() if one.subject not in subjects)
    if not others:
        return []
    named = ", ".join(dict.fromkeys(others))
    return [f"the night did not replay {plural(len(others), 'failure')} of subjects that it does not test: {named}"]


def _ended(
    request: ChaosRequest,
    bank: Bank,
    log: NightLog,
    subjects: Sequence[Subject],
    done: Sequence[SubjectDone],
    interruption: Interruption,
    total_s: float,
) -> NightDone:
    """End the night: its exit code, its last record and the index."""
    summary = _summary(request, bank, log, subjects[: len(done)], done, total_s)
    summary = replace(summary, interrupted=interruption.came)
    confirmed = {failure for one in done for failure in one.confirmed}
    violated = any(one.status in CURRENT and not one.known and one.failure in confirmed for one in log.night.replays)
    code = exit_code_of(summary, confirmed=violated or any(one.confirmed_left for one in done))
    if request.defect is not None:
        caught = any(one.scenarios.violated for one in log.night.subjects) or violated
        log.change(defects_caught=(int(caught), 1))
    log.change(unshrunk_elsewhere=_left_elsewhere(request, bank), unjudged=summary.not_judged_by_shares)
    log.end(int(code), left=len(bank.unshrunk))
    summary = replace(summary, bank=_counts(log.night))
    write_index(bank)
    failures = {one.failure: bank.failures[one.failure] for one in log.night.replays if one.failure in bank.failures}
    page_failed = _write_page(request, bank)
    if page_failed and code != ExitCode.VIOLATED:
        code = ExitCode.HARNESS_FAILED
    return NightDone(
        night=log.night,
        failures=failures,
        summary=summary,
        exit_code=code,
        page=(request.out or request.bank) / PAGE,
        page_failed=page_failed,
        fixed_before=fixed_before(bank.nights),
    )


def _left_elsewhere(request: ChaosRequest, bank: Bank) -> int:
    """The failing scenarios of subjects, or planted defects, that the night does not test."""
    tested = {(name, request.defect or "") for name in request.subjects}
    return sum((one.subject, one.defect) not in tested for one in bank.unshrunk.values())


def _make_folder(folder: Path | None) -> None:
    """Make the folder of the page before the night begins, which would else find out at its end that it cannot."""
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is no folder" if isinstance(error, FileExistsError) else error.strerror
        raise UsageError(f"the page of the nights cannot be written into {folder}: {why}") from error


def _write_page(request: ChaosRequest, bank: Bank) -> str:
    """Write the page of the nights; returns why it could not be written, in one line, or nothing."""
    folder = request.out or request.bank
    try:
        write_pages(bank.nights, bank.failures.values(), bank=request.bank, folder=folder)
    except OSError as error:
        return f"the page of the nights could not be written into {folder}: {error.strerror or one_line(error)}"
    return ""


def _summary(
    request: ChaosRequest,
    bank: Bank,
    log: NightLog,
    subjects: Sequence[Subject],
    done: Sequence[SubjectDone],
    total_s: float,
) -> NightSummary:
    tally = Tally()
    for one in done:
        tally.add_all(one.tally)
    records = log.night.subjects
    not_run = [missed for one in done for missed in one.not_run]
    busy_s = sum(one.search_s - one.start_s for one in done)
    counted = msgspec.structs.asdict(tally.summary())
    return replace(
        NightSummary(**counted),
        bank=_counts(log.night),
        night=log.night.id,
        version=log.night.version,
        subject=", ".join(one.name for one in subjects),
        profile=request.profile,
        seed=request.seed,
        oracle=tally.with_words(_oracle([one.oracle for one in done])),
        seconds=Seconds(
            total=round(total_s, 3),
            start=round(sum(one.start_s for one in done), 3),
            draw=round(tally.seconds["draw"], 3),
            run=round(tally.seconds["run"], 3),
            judge=round(tally.seconds["judge"], 3),
            oracle=round(sum(one.oracle_s for one in done), 3),
        ),
        scenarios_per_second=round(tally.run / busy_s, 1) if busy_s > 0 else 0.0,
        counterexamples=[shown for one in done for shown in one.counterexamples],
        coverage=tally.coverage.coverage(_united([one.capabilities for one in subjects])),
        shortfalls=[shortfall for one in records for shortfall in one.shortfalls],
        not_judged_by_shares=_unjudged(subjects, done),
        not_tried=[phrase for one in subjects[:1] for phrase in not_tried(one)] if len(subjects) == 1 else [],
        not_run=not_run,
        failures=list(dict.fromkeys(failure for one in records for failure in one.failures)),
    )


def _unjudged(subjects: Sequence[Subject], done: Sequence[SubjectDone]) -> str:
    """Which subjects are not judged by the shares of their profile, and why; empty if all are."""
    if len(done) == 1:
        return done[0].unjudged
    return " ".join(
        f"{subject.name}: {one.unjudged}" for subject, one in zip(subjects, done, strict=True) if one.unjudged
    )


def _counts(night: Night) -> BankCounts:
    def how_many(status: str) -> int:
        return sum(one.status == status for one in night.replays)

    return BankCounts(
        new=how_many("new"),
        still_failing=how_many("still_failing"),
        flaky=how_many("flaky"),
        fixed=how_many("fixed"),
        not_reached=how_many("not_reached"),
        again=sum(one.again for one in night.replays),
        known=sum(bool(one.known) and one.status in CURRENT for one in night.replays),
        not_replayed=len(night.not_replayed),
        unshrunk=night.unshrunk,
    )


def _oracle(counts: Sequence[OracleCounts]) -> OracleCounts:
    total = OracleCounts()
    for one in counts:
        total = sum_of(total, one)
    return total


def _united(capabilities: Sequence[Capabilities]) -> Capabilities:
    """What some subject of the night can do."""
    united: dict[str, object] = {}
    for name in Capabilities.__struct_fields__:
        values = [getattr(one, name) for one in capabilities]
        united[name] = any(values) if isinstance(values[0], bool) else frozenset().union(*values)
    return Capabilities(**united)  # type: ignore[arg-type]
