"""The verdicts on a run without the witnesses that an invariant's own checker needs.

A black box cannot say what its tasks took or what its snapshots hold.  Its output, what
readers saw on the way, how its jobs ended and what it left behind can still be judged.
What no witness saw is not observable, and never a violation.

Exercised means here: a fault had fired, and the attempt after it began with a snapshot
or a commit of the engine's own (`restores`).  A killed process that held no work, or an
engine that began again from nothing, exercises nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec.structs import replace

from ..model.history import AttemptStarted, CommandIssued, FaultFired, History, JobEnded, Read
from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ..model.words import LIMIT, columns_of, journal_until, plural, row_in_words, why_unapplied
from ..model.workload import STATEFUL, Row
from ..quick_checker.case import Case
from ..quick_checker.compare import violated_rows
from ..quick_checker.from_outside import OutsideView
from ..quick_checker.idempotent_table import identity_of
from ..reconstruct.commands import WELL
from ..semantics.classes import last_row_is_fixed, promised

NEEDED: dict[str, tuple[str, ...]] = {
    "exactly-once": ("tasks", "snapshots", "store", "reader", "journal"),
    "no-data-loss": ("tasks", "snapshots", "store", "reader", "journal"),
    "consistent-cut": ("tasks", "snapshots", "store", "journal"),
    "at-least-once": ("tasks", "snapshots", "store", "reader", "journal"),
    "at-most-once": ("tasks", "snapshots", "store", "reader", "journal"),
    "order": ("tasks", "network", "snapshots", "journal"),
    "restored-state": ("tasks", "snapshots", "store", "journal", "listing"),
    "restorable": ("tasks", "snapshots", "store", "reader", "journal", "listing"),
    "visibility": ("tasks", "snapshots", "store", "reader", "journal"),
    "drain": ("tasks", "snapshots", "journal"),
    "progress": ("tasks", "snapshots", "store", "journal"),
    "no-leaks": ("tasks", "snapshots", "store", "journal", "listing"),
}
"""By invariant, the witnesses that its own checker needs."""

ENOUGH: dict[str, tuple[str, ...]] = {
    "exactly-once": ("reader",),
    "no-data-loss": ("reader", "journal"),
    "at-least-once": ("reader", "journal"),
    "at-most-once": ("reader",),
    "visibility": ("reader",),
    "progress": ("journal",),
    "no-leaks": ("journal", "listing"),
}
"""By invariant, the witnesses with which it can be judged from outside."""


def unseen(case: Case, invariant: str) -> tuple[str, ...]:
    """The witnesses that an invariant's own checker needs, and the run did not have."""
    return case.history.lacks(NEEDED[invariant])


def check(case: Case, invariant: str) -> Verdict:
    """The verdict on an invariant whose own checker lacks a witness."""
    if not _is_promised(case, invariant):
        detail = f"{case.history.guarantee} mode with a {case.history.sink} sink"
        return Unknown(reason=Reason.NOT_PROMISED, detail=detail)
    lacking = case.history.lacks(ENOUGH.get(invariant, NEEDED[invariant]))
    if lacking:
        return _not_observable(f"the history has no witness of {_NAMES[lacking[0]]}")
    return _CHECKERS[invariant](case)


_NAMES = {
    "tasks": "what the tasks took",
    "network": "what the channels carried",
    "snapshots": "the snapshots",
    "store": "the transactions or writes of the sink",
    "reader": "the output",
    "journal": "attempts, faults and the end of the job",
    "listing": "what was left behind",
}


def _is_promised(case: Case, invariant: str) -> bool:
    return invariant in promised(case.history.guarantee, case.history.sink)


def _not_observable(detail: str) -> Unknown:
    return Unknown(reason=Reason.NOT_OBSERVABLE, detail=detail)


def recoveries(history: History) -> int:
    """How many attempts began with a snapshot or a commit of the engine's own after a fault had fired."""
    found, has_fired = 0, False
    for entry in history.journal:
        if isinstance(entry, FaultFired):
            has_fired = True
        elif isinstance(entry, AttemptStarted):
            found += has_fired and entry.restores is not None
            has_fired = False
    return found


# -- the output -----------------------------------------------------------------------


def _exactly_once(case: Case) -> Verdict:
    view = _view(case)
    if isinstance(view, Unknown):
        return view
    if case.history.sink == "idempotent":
        lost, extra = _table(case, view)
    else:
        lost, extra = _lost(case, view), _extra(case, view)
    if lost or extra:
        return _violated(case, view, lost, extra)
    return _unreadable(case) or _held(case, view)


def _no_data_loss(case: Case) -> Verdict:
    view = _view(case)
    if isinstance(view, Unknown):
        return view
    lost = _table(case, view)[0] if case.history.sink == "idempotent" else _lost(case, view)
    return _violated(case, view, lost, Counter()) if lost else _held(case, view)


def _at_least_once(case: Case) -> Verdict:
    view = _view(case)
    if isinstance(view, Unknown):
        return view
    invented: Counter[Row] = Counter()
    if view.everything is not None:
        invented = Counter(row for row in case.history.committed if row not in view.everything)
    lost = _table(case, view)[0] if case.history.sink == "idempotent" else _lost(case, view)
    return _violated(case, view, lost, invented) if lost or invented else _unreadable(case) or _held(case, view)


def _at_most_once(case: Case) -> Verdict:
    view = _view(case)
    if isinstance(view, Unknown):
        return view
    extra = _extra(case, view)
    if extra:
        return _violated(case, view, Counter(), extra)
    return _unreadable(case) or _exercised(case, "no row was committed" if not case.history.committed else None)


def _view(case: Case) -> OutsideView | Unknown:
    """The expected rows; unknown if the input alone does not determine them."""
    view = case.from_outside
    if not view.follows_input:
        return _not_observable(
            "its rows follow the order in which its operators took their records, and no witness saw this order"
        )
    repeats = case.history.guarantee != "exactly-once"
    if repeats and (view.replaces_rows or any(isinstance(node.operator, STATEFUL) for node in case.workload.nodes)):
        return _not_observable(
            f"in {case.history.guarantee} mode its state follows the records that its operators took, and no witness"
            " saw these"
        )
    resumes = (one for one in case.history.journal if isinstance(one, CommandIssued) and one.kind == "resume")
    if any(one.checkpoint is not None for one in resumes):
        return _not_observable("a job was resumed from a named snapshot, and no witness says which records it holds")
    if case.history.sink == "idempotent" and view.replaces_rows and not view.covers_all:
        return _not_observable("the table may be ahead of what the job covers, and more records replace rows of it")
    return view


def _lost(case: Case, view: OutsideView) -> Counter[Row]:
    return view.covered - case.committed if view.cover is not None else Counter()


def _extra(case: Case, view: OutsideView) -> Counter[Row]:
    """The rows that are too many: more often than the input can yield them, or beyond what the output covers."""
    if view.cover is not None:
        return case.committed - view.covered
    return case.committed - view.everything if view.everything is not None else Counter()


def _table(case: Case, view: OutsideView) -> tuple[Counter[Row], Counter[Row]]:
    """(lost, extra) of an idempotent sink's table, which may be ahead of what was committed."""
    table = case.history.committed
    extra: Counter[Row] = Counter()
    if view.everything is not None:
        extra = Counter(row for row in table if row not in view.everything)
    seen: set[tuple[int | None, ...]] = set()
    for row in table:
        extra[row] += identity_of(case, row) in seen
        seen.add(identity_of(case, row))
    lost: Counter[Row] = Counter()
    if view.cover is not None:
        absent = {identity_of(case, row): row for row in view.covered if identity_of(case, row) not in seen}
        lost = Counter(absent.values())
        if case.history.identity == "key" and view.covers_all and last_row_is_fixed(case.workload, case.jobs.topology):
            wrong = [row for row in table if view.last_rows.get(row[0], row) != row]
            extra, lost = extra | Counter(wrong), lost + Counter(view.last_rows[row[0]] for row in wrong)
    return lost, +extra


def _violated(case: Case, view: OutsideView, lost: Counter[Row], extra: Counter[Row]) -> Violated:
    where = "the table" if case.history.sink == "idempotent" else "the committed output"
    expected = view.covered if view.cover is not None else view.everything or Counter()
    rows = violated_rows(case, lost=lost, extra=extra, expected=expected, where=where, checkpoint=None)
    unreadable = _unreadable(case)
    return rows if unreadable is None else replace(rows, message=f"{rows.message}; {unreadable.message}")


def _unreadable(case: Case) -> Violated | None:
    """What a reader found in the place of rows: no promise of a sink allows that."""
    if not case.history.unreadable:
        return None
    first, *others = case.history.unreadable
    more = f", and {len(others):,} more" if others else ""
    return Violated(
        difference="no row",
        message=f"the committed output has what is no row: {first}{more}",
        events=journal_until(case.history, None),
    )


def _held(case: Case, view: OutsideView) -> Verdict:
    if view.cover is None:
        return _not_observable("no witness says which records the output has to cover: the job did not finish")
    return _exercised(case, "no row was committed" if not case.history.committed else None)


def _exercised(case: Case, otherwise: str | None) -> Verdict:
    if otherwise is not None:
        return Unknown(reason=Reason.NOT_EXERCISED, detail=otherwise)
    found = recoveries(case.history)
    return (
        Holds(exercised=found) if found else Unknown(reason=Reason.NOT_EXERCISED, detail=_why_no_recovery(case.history))
    )


def _why_no_recovery(history: History) -> str:
    """Why no attempt continued from something of the engine's own after a fault."""
    if any(isinstance(entry, FaultFired) for entry in history.journal):
        return (
            "a fault struck, but no attempt after it was seen to begin with a snapshot or a commit of the engine's own"
        )
    reasons = dict.fromkeys(filter(None, map(why_unapplied, history.unapplied)))
    return "no fault struck" + (f": {'; '.join(reasons)}" if reasons else "")


# -- reads on the way -----------------------------------------------------------------


def _visibility(case: Case) -> Verdict:
    if case.from_outside.replaces_rows:
        return _not_observable("more records may replace a row of its query, so a row may rightly vanish")
    vanished = _vanished(case)
    if vanished is not None:
        return vanished
    view = _view(case)
    marked = isinstance(view, OutsideView) and bool(view.commits)
    if isinstance(view, OutsideView) and marked:
        early = _too_early(case, view)
        if early is not None:
            return early
    exercised = _reads_before_a_recovery(case)
    if exercised:
        return Holds(exercised=exercised)
    if not case.history.reads:
        return _not_observable("no reader read on the way")
    return Unknown(
        reason=Reason.NOT_EXERCISED, detail="no row was read before an attempt began with a snapshot or a commit"
    )


def _rows_of(case: Case, read: Read) -> Counter[Row]:
    return Counter(case.history.committed[: read.rows] if read.seen is None else read.seen)


def _reads(case: Case) -> list[Read]:
    return sorted(case.history.reads, key=lambda read: (read.began, read.ended))


def _vanished(case: Case) -> Violated | None:
    """Rows that a reader saw, and that a later reader did not see."""
    before: Counter[Row] = Counter()
    committed = case.history.committed
    last = Read(began=0, ended=0, rows=len(committed), seen=list(committed))
    for read in [*_reads(case), last]:
        now = _rows_of(case, read)
        gone = before - now
        if gone or (read.seen is None and read.rows > len(case.history.committed)):
            return _seen(case, "rows vanished", "a reader no longer saw rows that had been visible", gone, read)
        before = now
    return None


def _too_early(case: Case, view: OutsideView) -> Violated | None:
    """Rows that a reader saw before the commit that makes them visible."""
    for read in _reads(case):
        done = [epoch for epoch, one in enumerate(view.commits) if one.order < read.ended]
        early = _rows_of(case, read) - (view.rows_until(done[-1]) if done else Counter())
        if early:
            return _seen(case, "rows seen too early", "a reader saw rows before their commit", early, read)
    return None


def _seen(case: Case, difference: str, message: str, rows: Counter[Row], read: Read) -> Violated:
    columns = columns_of(case.history)
    records = tuple(row_in_words(row, columns) for row in sorted(rows, key=lambda row: tuple(map(str, row)))[:LIMIT])
    return Violated(
        difference=difference,
        message=f"{message}: {plural(rows.total(), 'row')}",
        records=records,
        events=journal_until(case.history, read.ended or None),
    )


def _reads_before_a_recovery(case: Case) -> int:
    """How many reads saw rows before an attempt began with a snapshot or a commit of the engine's own."""
    restored = [
        one.order for one in case.history.journal if isinstance(one, AttemptStarted) and one.restores is not None
    ]
    last = max(restored, default=0)
    return sum(read.ended < last and bool(_rows_of(case, read)) for read in case.history.reads)


# -- the end --------------------------------------------------------------------------


def _progress(case: Case) -> Verdict:
    history, ended = case.history, case.from_outside.ended
    if ended is not None and ended.status == "failed":
        return _failed(case, ended)
    unmet = case.commands.outstanding()
    if unmet is not None:
        return unmet
    if ended is not None and ended.status in (*WELL, "cancelled"):
        return _exercised(case, None)
    if not all(source.bounded for source in case.workload.inputs):
        return _not_observable("its input does not end, and no witness says which records its snapshots cover")
    if history.cut_short or history.starved or history.lasting:
        return _not_observable("the run was cut off before the job came to rest")
    message = "the inputs ended, the faults had healed, and the job did not end"
    return Violated(difference="no rest", message=message, events=journal_until(history, None))


def _failed(case: Case, ended: JobEnded) -> Verdict:
    """An engine may run out of restarts; what failed though nothing had disturbed it has no such reason."""
    reason, events = ended.reason, journal_until(case.history, None)
    if not any(isinstance(entry, FaultFired) for entry in case.history.journal):
        message = f"the job failed without any fault: {reason or 'no reason'}"
        return Violated(difference="job failed", message=message, events=events)
    if not reason:
        return Violated(difference="job failed silently", message="the job failed and gave no reason", events=events)
    if ended.undisturbed:
        message = f"the job failed, and nothing had disturbed it since it was started again: {reason}"
        return Violated(difference="job failed", message=message, events=events)
    return Unknown(reason=Reason.ASSUMPTION_BROKEN, detail=f"the job failed and gave its reason: {reason}")


def _no_leaks(case: Case) -> Verdict:
    """Transactions, and what its owner says must not be there, that are left of a job that ended well.

    Files and logs of the store need the witness of the snapshots.
    """
    ended, residue = case.from_outside.ended, case.history.residue
    if ended is None or ended.status not in WELL:
        return _not_observable("the job did not end well, so what it left may still be needed")
    left = residue.open_transactions + residue.prepared_transactions
    if left:
        message = f"the job is {ended.status}, and {plural(len(left), 'transaction')} remained, among them {left[0]}"
        return Violated(difference="transaction left", message=message, events=journal_until(case.history, None))
    if residue.left:
        names = ", ".join(residue.left[:LIMIT]) + (" …" if len(residue.left) > LIMIT else "")
        message = f"the job is {ended.status}, and this remained, which must not: {names}"
        return Violated(difference="left behind", message=message, events=journal_until(case.history, None))
    return _exercised(case, None)


_CHECKERS: dict[str, Callable[[Case], Verdict]] = {
    "exactly-once": _exactly_once,
    "no-data-loss": _no_data_loss,
    "at-least-once": _at_least_once,
    "at-most-once": _at_most_once,
    "visibility": _visibility,
    "progress": _progress,
    "no-leaks": _no_leaks,
}
