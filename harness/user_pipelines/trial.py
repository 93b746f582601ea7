"""A pipeline is tried: each entry of its file by itself, and what is missing.  Only at the end it is killed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from ...faults.plan import AtAim, KillNode
from ...properties.model.history import AttemptStarted, History, JobEnded
from ...properties.model.words import plural, row_in_words
from ..scenario.model import Scenario
from ..subject.port import SubjectFailed
from .description import HALFWAY
from .run import PipelineRun
from .subject import PipelineSubject

RECORDS = 10
AMID_RECORDS = 60
"""of the run in which the pipeline is killed"""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the file: whether it does what it says, and what was seen."""

    entry: str
    ok: bool
    seen: str


def tried(subject: PipelineSubject, progress: Callable[[str], None] = lambda _: None) -> list[Check]:
    """Start the pipeline, feed it ten records, and read their rows, without any fault.

    If all is well, the pipeline is started again, and killed once.
    """
    scenario = subject.without_faults(RECORDS)
    progress("starting the pipeline")
    run = subject.new_run(scenario, watches_aims=True)
    try:
        history = run.history()
    except SubjectFailed as error:
        return [Check(entry=_entry_of(str(error)), ok=False, seen=str(error))]
    finally:
        run.close()
    checks = [*_course(subject, history), *_rows(scenario, run, history), *_aims(run)]
    return [*checks, _restored(subject, progress)] if all(check.ok for check in checks) else checks


def _entry_of(message: str) -> str:
    """The entry that an error is about: the one that its message begins with, or the command."""
    first = message.split(":")[0]
    return first if first.startswith(("run.", "read.", "feed.")) else "run"


def _course(subject: PipelineSubject, history: History) -> list[Check]:
    ends = [entry for entry in history.journal if isinstance(entry, JobEnded)]
    entry = "run.start"
    if not ends:
        timeout = subject.pipeline.file.run.timeout_s
        return [Check(entry=entry, ok=False, seen=f"the process did not end within {timeout:g} s (run.timeout_s)")]
    if ends[-1].status == "failed":
        return [Check(entry=entry, ok=False, seen=ends[-1].reason)]
    how = "it ended by itself" if subject.pipeline.file.run.ends else "it ran until its output was complete"
    return [Check(entry=entry, ok=True, seen=how)]


def _rows(scenario: Scenario, run: PipelineRun, history: History) -> list[Check]:
    given, found = plural(len(scenario.workload.inputs[0].splits[0]), "record"), Counter(history.committed)
    lost, extra = run.expected - found, found - run.expected
    checks = [Check(entry="feed, read", ok=bool(found), seen=f"{given} given, {plural(found.total(), 'row')} read")]
    if lost or extra:
        first = next(iter(extra or lost))
        missing = f"{plural(lost.total(), 'row')} missing, {plural(extra.total(), 'row')} not expected"
        other = next(iter(lost), None) if extra else None
        instead = f"; expected was ({row_in_words(other)})" if other is not None else ""
        word = "found" if extra else "missing"
        checks.append(Check(entry="computes", ok=False, seen=f"{missing}; {word}: ({row_in_words(first)}){instead}"))
    else:
        checks.append(Check(entry="computes", ok=True, seen="the rows are those that the steps yield"))
    return checks


def _restored(subject: PipelineSubject, progress: Callable[[str], None]) -> Check:
    """Whether `restored` is seen once the pipeline was killed."""
    entry = "restored"
    if subject.pipeline.file.restored is None:
        return Check(entry=entry, ok=False, seen="it is not in the file, so no kill will count as exercise")
    progress("killing the pipeline once")
    kill = KillNode(node=subject.killed[0], trigger=AtAim(aim=HALFWAY))
    scenario = msgspec.structs.replace(subject.without_faults(AMID_RECORDS), faults=(kill,))
    run = subject.new_run(scenario)
    try:
        starts = [entry for entry in run.history().journal if isinstance(entry, AttemptStarted)]
    except SubjectFailed as error:
        return Check(entry=entry, ok=False, seen=f"after a kill: {error}")
    finally:
        run.close()
    if len(starts) == 1:
        return Check(entry=entry, ok=False, seen="its output was complete before it could be killed: feed it slower")
    if all(start.restores is None for start in starts):
        return Check(entry=entry, ok=False, seen="it was not seen after a kill, so no kill will count as exercise")
    return Check(entry=entry, ok=True, seen="it was seen after a kill")


def _aims(run: PipelineRun) -> list[Check]:
    return [
        Check(entry=f"aims.{name}", ok=met, seen="it was met" if met else "it was never met while the pipeline ran")
        for name, met in run.aims_met.items()
    ]
