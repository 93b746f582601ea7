"""The story of a run: the job, the faults and what they hit, the closing cut, and the output.

The story is made only from the scenario and the history, in the order of the events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from ...properties.model.history import (
    AttemptStarted,
    CommandIssued,
    CommandReturned,
    Completed,
    CoordinatorDown,
    FaultFired,
    History,
    JobEnded,
    TaskFailed,
)
from ...properties.model.verdict import Verdict, Violated
from ...properties.model.words import change_in_words, columns_of
from ...properties.model.workload import Row
from ...properties.quick_checker.case import Case
from ...properties.quick_checker.compare import changed_rows, is_by_key
from ...properties.quick_checker.from_outside import OutsideView
from ...properties.quick_checker.idempotent_table import expected_table
from ...reports.model import RowPair
from ...reports.rows import side_by_side
from ..scenario.model import Scenario
from ..shrink.reductions import replace, with_fault
from .not_done import not_done, requested
from .words import (
    command_in_words,
    count_in_words,
    engine_in_words,
    fault_in_words,
    never_unaligned_in_words,
    perturbation_in_words,
    time_in_words,
    trigger_in_words,
    workload_in_words,
)

ROWS_AT_MOST = 6
EVENTS_AT_MOST = 24


class Story(msgspec.Struct, frozen=True, kw_only=True):
    sentence: str
    """the story in one sentence"""
    paragraphs: tuple[str, ...]


def story_of(scenario: Scenario, history: History, verdicts: dict[str, Verdict]) -> Story:
    return story_of_case(scenario, Case(scenario.workload, scenario.topology, history), verdicts)


def story_of_case(scenario: Scenario, case: Case, verdicts: dict[str, Verdict], *, invariant: str = "") -> Story:
    """The story of a case whose expected rows are already computed; of the violation of `invariant`, if it is given."""
    history = case.history
    left = not_done(scenario, history)
    paragraphs = (
        *what_ran(replace(scenario, commands=requested(scenario, history))),
        f"What happened: {_joined(_events(scenario, history))}",
        f"What did not happen: {_joined(left)}" if left else "",
        "" if scenario.pipeline else f"Where the closing cut was: {_cut(case)}",
        *_rows(case),
        *_violations(verdicts),
    )
    return Story(
        sentence=sentence(scenario, history, verdicts, invariant=invariant), paragraphs=tuple(filter(None, paragraphs))
    )


def what_ran(scenario: Scenario) -> tuple[str, ...]:
    """The job and its engine; if its barriers may overtake, also the edges that are never unaligned.

    A pipeline that is run from outside has a name, and was fed.
    """
    if scenario.pipeline:
        fed = count_in_words(scenario.workload.records(), "record")
        return (f"What ran: the pipeline {scenario.pipeline}, which was fed with {fed}.",)
    ran = f"What ran: {workload_in_words(scenario)}. The engine: {engine_in_words(scenario)}."
    return tuple(filter(None, (ran, never_unaligned_in_words(scenario))))


def sentence(scenario: Scenario, history: History, verdicts: dict[str, Verdict], *, invariant: str = "") -> str:
    """The story in one sentence: what was hit, and the consequence (for one invariant, or the first)."""
    fired = {entry.fault for entry in history.journal if isinstance(entry, FaultFired)}
    hits = [
        f"{fault_in_words(fault)} {_brief(trigger_in_words(fault.trigger))}"
        for number, fault in enumerate(scenario.faults)
        if number in fired
    ]
    hits.extend(perturbation_in_words(perturbation) for perturbation in scenario.deviations)
    cause = " and ".join(hits)
    without = "no fault fired, and" if scenario.faults else "without any fault,"
    violated = [(name, verdict) for name, verdict in verdicts.items() if isinstance(verdict, Violated)]
    violated.sort(key=lambda named: named[0] != invariant)
    if not violated:
        return _capital(f"{f'{cause}, and' if cause else without} everything that could be judged holds.")
    name, verdict = violated[0]
    sentences = f"{name} is violated: {verdict.difference} ({verdict.message.rstrip('.')})."
    return _capital(f"{cause}, and {sentences}" if cause else f"{without} {sentences}")


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that holds and differs from a failing one in one change, and that change."""

    sentence: str
    scenario: Scenario


def nearest_passing(scenario: Scenario, still_fails: Callable[[Scenario], bool]) -> Neighbour | None:
    """The nearest neighbour that does not fail in the same way."""
    for words, candidate in _neighbours(scenario):
        if not still_fails(candidate):
            return Neighbour(sentence=f"It holds {words}.", scenario=candidate)
    return None


def _neighbours(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Scenarios with one change: a perturbation left out, a trigger moved to the other side, a fault or a command
    left out."""
    for index, perturbation in enumerate(scenario.deviations):
        rest = scenario.deviations[:index] + scenario.deviations[index + 1 :]
        yield f"unless {perturbation_in_words(perturbation)}", replace(scenario, deviations=rest)
    for index, fault in enumerate(scenario.faults):
        trigger = fault.trigger
        side = getattr(trigger, "side", None)
        if side is not None:
            other = replace(trigger, side="before" if side == "after" else "after")
            words = f"if {fault_in_words(fault)} {_brief(trigger_in_words(other))}"
            yield words, with_fault(scenario, index, replace(fault, trigger=other))
    for index, fault in enumerate(scenario.faults):
        rest_ = scenario.faults[:index] + scenario.faults[index + 1 :]
        yield f"unless {fault_in_words(fault)}", replace(scenario, faults=rest_)
    for index, command in enumerate(scenario.commands):
        others = scenario.commands[:index] + scenario.commands[index + 1 :]
        yield f"unless {command_in_words(command)}", replace(scenario, commands=others)


def _events(scenario: Scenario, history: History) -> list[str]:
    sentences: list[str] = []
    completed = iter(sorted(history.completed, key=lambda done: done.order))
    pending = next(completed, None)
    for entry in sorted(history.journal, key=lambda item: item.order):
        while pending is not None and pending.order < entry.order:
            sentences.append(_completion(pending))
            pending = next(completed, None)
        words = _entry(scenario, entry)
        if words:
            sentences.append(f"at {time_in_words(entry.at_us)} {words}")
    while pending is not None:
        sentences.append(_completion(pending))
        pending = next(completed, None)
    if len(sentences) > EVENTS_AT_MOST:
        left_out = len(sentences) - EVENTS_AT_MOST
        sentences[EVENTS_AT_MOST // 2 : -EVENTS_AT_MOST // 2] = [f"({left_out} more events)"]
    return sentences


def _of_pipeline(entry: object) -> str:
    """An event of a pipeline that is run from outside; empty for one that is told as that of any job."""
    match entry:
        case FaultFired(kind=kind, phase=aim, detail=detail):
            if kind.endswith("-channel"):
                return f"its connections are disturbed ({kind}) at the aim {aim!r}: {detail}"
            return f"the pipeline is {'paused' if kind == 'pause-node' else 'killed'} at the aim {aim!r}: {detail}"
        case AttemptStarted(attempt=1):
            return "the pipeline is started"
        case AttemptStarted(restores=None, cause=cause):
            return f"it is started again ({cause}); nothing shows that it continued from something of its own"
        case AttemptStarted(cause=cause):
            return f"it is started again ({cause}), and continues from something of its own"
        case _:
            return ""


def _completion(completed: Completed) -> str:
    kind = "savepoint" if completed.savepoint else "checkpoint"
    return f"at {time_in_words(completed.at_us)} {kind} {completed.checkpoint} is complete"


def _entry(scenario: Scenario, entry: object) -> str:
    if scenario.pipeline and (words := _of_pipeline(entry)):
        return words
    match entry:
        case FaultFired(fault=number, phase=phase):
            known = 0 <= number < len(scenario.faults)
            words = fault_in_words(scenario.faults[number]) if known else f"fault {number} fires"
            return f"{words} (the job is {phase})"
        case AttemptStarted(attempt=attempt, restores=restores, cause=cause, tasks=tasks):
            origin = "from the very beginning" if restores is None else f"from checkpoint {restores}"
            part = f" of {', '.join(tasks)} alone" if tasks else ""
            return f"attempt {attempt}{part} starts {origin}" + (f" ({cause})" if cause else "")
        case TaskFailed(task=task, reason=reason):
            return f"{task} fails ({reason})"
        case CoordinatorDown(reason=reason):
            return "the coordinator dies" + (f" ({reason})" if reason else "")
        case CommandIssued(command=number) if 0 <= number < len(scenario.commands):
            return command_in_words(scenario.commands[number])
        case CommandReturned(error=error) if error:
            return f"the command fails ({error})"
        case JobEnded(status=status, reason=reason):
            return f"the job ends: {status}" + (f" ({reason})" if reason else "")
    return ""


def _cover(view: OutsideView) -> str:
    """What the output of a run that was seen from outside has to cover."""
    if view.cover is None:
        return "no witness says which records the output has to cover."
    if view.covers_all:
        return "all input ended, so every row is expected."
    _, positions = view.cuts[view.cover.epoch]
    records = ", ".join(f"split {split} before record {at}" for split, at in sorted(positions.items()))
    return f"the job was {'drained' if view.cover.drained else 'stopped with a savepoint'}: {records}."


def _cut(case: Case) -> str:
    if case.is_black_box:
        return _cover(case.from_outside)
    closing = case.closing
    if closing.checkpoint is None and closing.kind != "end":
        return "no checkpoint completed, so no row is expected."
    positions = ", ".join(f"split {split} before record {at}" for split, at in sorted(closing.positions.items()))
    why = {
        "end": "all input ended, so every row is expected",
        "drain": "the job was drained",
        "stop": "the job was stopped with a savepoint",
        "newest": "at the newest completed checkpoint",
    }[closing.kind]
    which = "" if closing.checkpoint is None else f" (checkpoint {closing.checkpoint})"
    return f"{why}{which}: {positions}."


def expected_rows(case: Case) -> Counter[Row]:
    """The rows that an independent reader should see at the closing cut, as the quick checker computes them, or as
    PySpark has computed them of a query."""
    if case.is_black_box and case.from_outside.follows_input:
        return case.from_outside.due
    if case.history.sink == "idempotent":
        return expected_table(case)
    return case.expected.rows_up_to(case.closing.epoch)


def rows_side_by_side(case: Case, *, prepared: bool = True) -> tuple[RowPair, ...]:
    """The rows that were expected and those that were committed; `prepared`: also expected are rows of transactions
    that were prepared and not committed."""
    expected, committed = expected_rows(case), Counter(case.history.committed)
    expected -= Counter() if prepared else case.pending
    changed = changed_rows(expected - committed, committed - expected) if is_by_key(case) else ()
    return side_by_side(expected.elements(), committed.elements(), changed)


def _rows(case: Case) -> Iterator[str]:
    expected, seen = expected_rows(case), case.committed + case.pending
    yield (
        f"What came out: {count_in_words(case.committed.total(), 'row')} committed"
        + (f" and {case.pending.total()} prepared" if case.pending else "")
        + f"; {count_in_words(expected.total(), 'row')} expected."
    )
    lost, extra, columns = expected - seen, seen - expected, columns_of(case.history)
    changed = changed_rows(lost, extra) if is_by_key(case) else ()
    if changed:
        some = "; ".join(change_in_words(*one, columns) for one in changed[:ROWS_AT_MOST])
        yield f"Wrong: {some}" + (f" and {len(changed) - ROWS_AT_MOST} more." if len(changed) > ROWS_AT_MOST else ".")
    for words, rows, side in (("Lost", lost, 0), ("Too many", extra, 1)):
        if rest := rows - Counter(pair[side] for pair in changed):
            yield f"{words}: {_listed(rest, columns)}."


def _violations(verdicts: dict[str, Verdict]) -> Iterator[str]:
    for name, verdict in verdicts.items():
        if isinstance(verdict, Violated):
            yield f"Violated: {name}, {verdict.difference}. {verdict.message}"


def _listed(rows: Counter[Row], columns: tuple[str, ...]) -> str:
    shown = [
        f"({columns[0]} {_null(key)}, {columns[1]} {_null(value)})" + (f" × {times}" if times > 1 else "")
        for (key, value, _, _), times in sorted(rows.items(), key=str)[:ROWS_AT_MOST]
    ]
    more = len(rows) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _null(value: int | None) -> str:
    return "NULL" if value is None else str(value)


def _joined(events: list[str]) -> str:
    return "; ".join(events) + "." if events else "nothing but the records."


def _brief(trigger: str) -> str:
    """A trigger in words, without the explanation in brackets."""
    return trigger.partition(" (")[0]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
