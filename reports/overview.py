"""A run at a glance: the outcome, the invariants, what was tried and what was not."""

from __future__ import annotations

from collections.abc import Mapping

from ..faults.plan import KINDS
from ..properties.model.verdict import INVARIANTS, Reason
from ..properties.spark.unasked import GIVEN, IN_FORKS, IN_ROWS, IN_STATE
from .model import FaultCounts, InvariantCounts, NotRun, Summary, Value
from .words import PROMISES, foreign_in_words, plural

PHASES = ("deploying", "running", "aligning", "checkpointing", "committing", "recovering", "finishing")
"""the phases of a job, in the order of its life"""


class InvariantLine(Value, kw_only=True):
    """One invariant as it is shown."""

    name: str
    promise: str
    verdict: str
    """violated, known, holds or unknown"""
    counts: InvariantCounts
    by_both: int | None
    """None for an invariant for which PySpark computes nothing"""
    reasons: str
    can_show: int | None
    """None if nobody could tell before the runs whether they can show it"""


class HeatLine(Value, kw_only=True):
    """The faults of one kind: how many fired in each phase, and the heat of that number (0 … 1)."""

    kind: str
    counts: FaultCounts
    cells: tuple[tuple[int, float], ...]


class HeatMap(Value, kw_only=True):
    phases: tuple[str, ...]
    lines: tuple[HeatLine, ...]


def violated(summary: Summary) -> list[str]:
    """The violated invariants, without those with only known failures; those of companion runs are last."""
    names = [line.name for line in invariant_lines(summary) if line.verdict == "violated"]
    companions = {
        "consistent-cut of general snapshots": summary.systems.violated,
        "exactly-once of batches": summary.batches.violated,
    }
    return names + [name for name, wrong in companions.items() if wrong]


def _violated_in_replays(summary: Summary) -> list[str]:
    """The invariants of counterexamples that are not known: a night counts only the scenarios that it has drawn."""
    return list(dict.fromkeys(one.invariant for one in summary.counterexamples if not one.known))


def _were_violated(names: list[str]) -> str:
    return f"{_listed(names)} {'was' if len(names) == 1 else 'were'} violated."


def headline(summary: Summary) -> str:
    """The run in one sentence, the worst first."""
    if names := violated(summary):
        return _were_violated(names)
    if summary.oracle.disagreements or summary.failures:
        return "The harness failed, so nothing is certain."
    if names := _violated_in_replays(summary):
        return _were_violated(names)
    if summary.interrupted:
        return "Interrupted: nothing was violated until then."
    if not summary.scenarios.run:
        return "Nothing was run."
    if summary.shortfalls:
        return "Nothing was violated, but the run fell short of what it had to show."
    if not summary.scenarios.held:
        return "Nothing could be judged." if not summary.scenarios.violated else "Only known failures."
    return "Everything that was judged held."


def outcome(summary: Summary) -> str:
    """The mark of the headline: held, violated, short or failed."""
    if violated(summary):
        return "violated"
    if summary.oracle.disagreements or summary.failures:
        return "failed"
    if _violated_in_replays(summary):
        return "violated"
    short = summary.shortfalls or summary.interrupted or not summary.scenarios.held
    return "short" if short else "held"


def lead(summary: Summary) -> str:
    """The evidence for the headline."""
    counts = summary.scenarios
    seed = "" if summary.seed is None else f", seed {summary.seed}"
    subject = f" on the subject {summary.subject}" if summary.subject else ""
    return (
        f"{plural(counts.run, 'scenario')}{subject}{seed}: {counts.held:,} held, "
        f"{counts.violated:,} violated, {counts.unknown:,} unknown"
        f"{f'; {len(summary.not_run):,} could not be run' if summary.not_run else ''}."
    )


def by_reason(not_run: list[NotRun]) -> dict[str, list[NotRun]]:
    """Scenarios that could not be run, grouped by reason, in the order of the first of each group."""
    groups: dict[str, list[NotRun]] = {}
    for one in not_run:
        groups.setdefault(one.reason, []).append(one)
    return groups


def asked_lead(summary: Summary) -> str:
    """For how many scenarios PySpark computed the expected rows; empty if that was not counted."""
    asked, not_asked = summary.oracle.asked, summary.oracle.not_asked
    run, given = asked + sum(not_asked.values()), not_asked.get(GIVEN, 0)
    alone = ", and the quick checker only compared them" if given else ""
    return (
        f"PySpark computed the expected rows in {asked + given:,} of {plural(run, 'scenario')}{alone}." if run else ""
    )


def oracle_lead(summary: Summary) -> str:
    """The same, and why PySpark was not asked in the others."""
    sentence = asked_lead(summary)
    why = {reason: number for reason, number in summary.oracle.not_asked.items() if reason != GIVEN}
    return f"{sentence[:-1]}; it was not asked in the others: {reasons(why)}." if any(why.values()) else sentence


def reasons(counts: Mapping[str, int]) -> str:
    """Reasons with how often there were, the most frequent first."""
    often = sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))
    return "; ".join(f"{reason} ({number:,})" for reason, number in often)


def restarts_lead(summary: Summary) -> str:
    """How many recoveries were partial, and which tasks restarted; empty if there was none."""
    return " ".join(
        f"In {plural(counts.recoveries, 'recovery')} {_RESTARTED[failover]} and the others went on: "
        f"{plural(sum(counts.tasks.values()), 'task')}, most often {_most(counts.tasks)}."
        for failover, counts in summary.restarts.items()
    )


_RESTARTED = {"region": "a region restarted", "local": "only the lost tasks restarted (local recovery)"}


def _most(tasks: dict[str, int]) -> str:
    often = sorted(tasks.items(), key=lambda named: (-named[1], named[0]))[:3]
    return ", ".join(f"{name} ({number:,})" for name, number in often)


def companion_lead(summary: Summary) -> str:
    """The companion runs, and connections of other programs to the runs' ports; empty if there were neither."""
    foreign = foreign_in_words(summary.foreign_connections)
    return " ".join(filter(None, (_systems(summary), _batches(summary), foreign)))


def companions_in_short(summary: Summary) -> str:
    """The results of the scenarios' companions, in one sentence; empty if there were none."""
    fared = (("system", " of processes", summary.systems), ("job", " run as a batch too", summary.batches))
    counts = [
        f"{plural(counts.run, one)}{what} "
        f"({counts.held:,} held, {counts.violated:,} violated, {counts.unknown:,} unknown)"
        for one, what, counts in fared
        if counts.run
    ]
    return f"Companions: {', '.join(counts)}." if counts else ""


def _batches(summary: Summary) -> str:
    counts = summary.batches
    if not counts.run:
        return ""
    return (
        f"{plural(counts.run, 'job')} ran as a batch too: {counts.held:,} committed what the stream committed, "
        f"{counts.violated:,} did not, {counts.unknown:,} cannot be compared."
    )


def _systems(summary: Summary) -> str:
    counts = summary.systems
    if not counts.run:
        return ""
    return (
        f"Companion runs: {plural(counts.run, 'system')} of processes, with "
        f"{plural(counts.snapshots, 'general snapshot')}: {counts.held:,} held, {counts.violated:,} violated, "
        f"{counts.unknown:,} unknown; {plural(counts.under_way, 'message')} were in flight."
    )


def invariant_lines(summary: Summary) -> tuple[InvariantLine, ...]:
    """Every invariant of the summary, violated ones first, then in the order of their definition."""
    known = {one.invariant for one in summary.counterexamples if one.known}
    new = {one.invariant for one in summary.counterexamples if not one.known}
    order = {name: place for place, name in enumerate(INVARIANTS)}
    hidden = out_of_sight(summary)
    lines = [
        InvariantLine(
            name=name,
            promise=PROMISES.get(name, ""),
            verdict=_verdict(counts, name in known - new),
            counts=counts,
            by_both=counts.by_both if name in IN_ROWS | IN_STATE | IN_FORKS else None,
            reasons=", ".join(
                f"{reason} {number:,}{_in_brackets(counts.not_exercised) if reason == Reason.NOT_EXERCISED else ''}"
                for reason, number in sorted(counts.reasons.items())
            ),
            can_show=None if summary.pipeline and not counts.can_show else counts.can_show,
        )
        for name, counts in summary.invariants.items()
        if name not in hidden
    ]
    return tuple(
        sorted(lines, key=lambda line: (line.verdict != "violated", order.get(line.name, len(order)), line.name))
    )


OUT_OF_SIGHT = frozenset({Reason.NOT_OBSERVABLE, Reason.NOT_PROMISED})
"""the reasons of verdicts that no run of a pipeline can change"""


def out_of_sight(summary: Summary) -> tuple[str, ...]:
    """Of a pipeline: the invariants that no run could show, since they are not promised or not seen from outside."""
    return tuple(
        name
        for name, counts in summary.invariants.items()
        if summary.pipeline
        and not (counts.can_show or counts.holds or counts.violated)
        and OUT_OF_SIGHT.issuperset(counts.reasons)
    )


def out_of_sight_lead(summary: Summary) -> str:
    """The same in one sentence; empty if there is none."""
    names = out_of_sight(summary)
    return f"Not promised, or not seen from outside a pipeline: {', '.join(names)}." if names else ""


def why_short(summary: Summary) -> dict[str, str]:
    """Of a pipeline, by invariant and by kind of fault: why it was not exercised, or why the fault was not applied."""
    invariants = {name: counts.not_exercised for name, counts in summary.invariants.items()}
    both = {**invariants, **summary.why_unapplied}
    return {name: reasons(counts) for name, counts in both.items() if counts}


def not_exercised_lead(summary: Summary) -> str:
    """Why scenarios of a pipeline did not exercise the invariants, in one sentence; empty if each did."""
    by_reasons: dict[str, list[str]] = {}
    for name, counts in summary.invariants.items():
        if counts.not_exercised:
            by_reasons.setdefault(reasons(counts.not_exercised), []).append(name)
    return " ".join(f"Not exercised: {_listed(names)}: {why}." for why, names in by_reasons.items())


def _in_brackets(counts: Mapping[str, int]) -> str:
    return f" ({reasons(counts)})" if counts else ""


def _verdict(counts: InvariantCounts, known: bool) -> str:
    if counts.violated:
        return "known" if known else "violated"
    return "holds" if counts.holds else "unknown"


def heat_map(summary: Summary) -> HeatMap:
    """Fired faults by kind and phase; kinds in the order of their definition."""
    order = {kind: place for place, kind in enumerate(KINDS)}
    kinds = sorted(summary.faults, key=lambda kind: (order.get(kind, len(order)), kind))
    found = {phase for counts in summary.faults.values() for phase in counts.phases}
    # The faults of a pipeline strike at its aims, and nobody knows the phases of its job.
    known = not summary.pipeline and (found.intersection(PHASES) or not found)
    phases = (PHASES if known else ()) + tuple(sorted(found - set(PHASES)))
    most = max((number for counts in summary.faults.values() for number in counts.phases.values()), default=0)
    lines = []
    for kind in kinds:
        counts = summary.faults[kind]
        numbers = [counts.phases.get(phase, 0) for phase in phases]
        lines.append(HeatLine(kind=kind, counts=counts, cells=tuple((n, n / most if most else 0.0) for n in numbers)))
    return HeatMap(phases=phases, lines=tuple(lines))


def aims_lead(summary: Summary) -> str:
    """How often each aim of a pipeline was met, in one sentence; empty if nothing was aimed."""
    words = (
        f"{name} {counts.met:,} ({counts.planned:,} planned, {counts.fired:,} fired)"
        for name, counts in summary.aims.items()
    )
    return f"Aims met: {', '.join(words)}." if summary.aims else ""


def never(summary: Summary) -> tuple[str, ...]:
    """What the run did not reach, each in one sentence."""
    heat = heat_map(summary)
    unplanned = [kind for kind in KINDS if kind not in summary.faults and f"fault {kind}" not in summary.not_tried]
    unfired = [kind for kind, counts in sorted(summary.faults.items()) if counts.planned and not counts.fired]
    untouched = [
        phase for column, phase in enumerate(heat.phases) if not any(line.cells[column][0] for line in heat.lines)
    ]
    why = {kind: f": {reasons(counts)}" for kind, counts in summary.why_unapplied.items()}
    unapplied = [f"{kind} ({number:,}{why.get(kind, '')})" for kind, number in sorted(summary.unapplied.items())]
    found = [
        ("Planned, but never fired", unfired),
        ("Never planned", unplanned),
        ("No fault fired while the job was", untouched),
        ("The subject cannot do", [] if summary.pipeline else _at_most(summary.not_tried)),
        ("Planned, but never applied", unapplied),
    ]
    return tuple(f"{what}: {', '.join(names)}." for what, names in found if names)


NAMED_AT_MOST = 16
"""how many of the subject's missing capabilities are named; summary.json has all"""


def _at_most(names: list[str]) -> list[str]:
    return (
        names
        if len(names) <= NAMED_AT_MOST
        else [*names[: NAMED_AT_MOST - 1], f"and {len(names) - NAMED_AT_MOST + 1:,} more"]
    )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
