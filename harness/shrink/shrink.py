"""Shrinking: delta debugging on the scenario value, until it reads as a story.

Ever smaller scenarios are tried, and kept as long as they fail in the same way.  First the job gets smaller: whole
things are dropped (faults, commands, perturbations, operators, splits), parallelism falls, and large chunks of records
go.  Then single records are dropped, and the rest gets plainer (engine, operators, values, times).  Shrinking does not
need to know how the scenario was drawn, so it works on files and recorded failures too.  It is deterministic, and
bounded in runs, and in real time also in seconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import msgspec

from ...faults.plan import AnyTrigger, AtPoint, AtTime, InPhase
from ...properties.model.upgrade import Upgrade
from ...properties.model.workload import AnyOperator, InputRecord, Topology, User, Window
from ..scenario.checks import problems_of
from ..scenario.layout import layout_of
from ..scenario.model import Engine, Resume, Savepoint, Scenario, StopWithSavepoint, format_of
from ..scenario.upgrades import upgrade_of
from . import reductions
from .reductions import replace

StillFails = Callable[[Scenario], bool]
"""Whether a scenario fails in the same way: same invariant, same kind of difference, exercised."""

MAX_RUNS = 600
COARSE, FINER = 3, 8
"""While a job is still large a run is dear: until it has fewer tasks, no chunks of less than about a third of the
records are dropped, and until it takes less time, none of less than about an eighth."""
LEAST_US = 10_000
"""durations of a pipeline's faults are halved down to this: the machine's clock decides what they meet"""


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    scenario: Scenario
    runs: int
    """how many smaller scenarios were tried"""
    early: bool = False
    """a bound ended the shrinking: there may be smaller ones"""
    path: tuple[Scenario, ...] = ()
    """the smaller scenarios that failed, each smaller than the one before it; the last of them is `scenario`"""
    seconds: float = 0.0
    """how long it took; 0 if it was not bounded in seconds"""
    longest_s: float = 0.0
    """how long the longest run took, of a shrinking that was bounded in seconds"""


def size_of(scenario: Scenario) -> tuple[int, int, int]:
    """(tasks, records, faults)."""
    tasks = len(layout_of(scenario.workload, scenario.topology, scenario.engine.committing).tasks)
    return tasks, scenario.workload.records(), len(scenario.faults)


def shrink(
    scenario: Scenario,
    still_fails: StillFails,
    *,
    max_runs: int = MAX_RUNS,
    max_seconds: float | None = None,
    run_s: float = 0.0,
    left_s: float = 0.0,
) -> Shrunk:
    """The smallest scenario found that still fails; the given one if no smaller one does.

    `max_seconds` bounds the time of runs in real time; without it the result is a function of the scenario and of what
    fails.  No run begins that would end too late if it took as long as the longest so far, or `run_s`.  If `left_s`
    is given, so much time is left, and enough for one run.
    """
    began = time.monotonic()
    search = _Search(scenario, still_fails, max_runs, max_seconds, run_s, left_s)
    while search.round():
        pass
    return Shrunk(
        scenario=search.best,
        runs=search.runs,
        early=search.early,
        path=tuple(search.path),
        seconds=0.0 if max_seconds is None else time.monotonic() - began,
        longest_s=0.0 if max_seconds is None else search.longest_s,
    )


class _Search:
    """The best scenario so far, and the tries that are left."""

    def __init__(
        self,
        scenario: Scenario,
        still_fails: StillFails,
        max_runs: int,
        max_seconds: float | None,
        run_s: float,
        left_s: float,
    ) -> None:
        self.best = scenario
        self.path: list[Scenario] = []
        self.runs = 0
        self.longest_s = run_s
        self._left_s = left_s
        self.early = False
        self._deadline = math.inf if max_seconds is None else time.monotonic() + max_seconds
        self._still_fails = still_fails
        self._max_runs = max_runs
        self._tried: set[bytes] = set()

    def round(self) -> bool:
        """One pass over everything; returns whether the scenario got smaller."""
        before = self.best
        self._drop_sequence("faults")
        self._drop_sequence("commands")
        self._drop_sequence("deviations")
        self._try_each(_narrower)
        self._drop_records(most=COARSE)
        self._try_each(_fewer_nodes)
        self._try_each(_fewer_splits)
        self._drop_records(most=FINER)
        self._try_each(_squeezed)
        self._drop_records()
        self._try_each(_plainer_engine)
        self._reset_settings()
        self._try_each(_plainer_topology)
        self._try_each(_plainer_operators)
        self._try_each(_plainer_records)
        self._try_each(_plainer_triggers)
        self._try_each(_plainer_fields)
        if self.best == before:
            return False
        self.early = self.early or self._spent()
        return not self._spent()

    def _spent(self) -> bool:
        left_s = max(self._left_s, self.longest_s) if self._left_s else 0.0
        return self.runs >= self._max_runs or time.monotonic() + self.longest_s >= self._deadline - left_s

    def accept(self, candidate: Scenario | None) -> bool:
        """Keep the candidate if it is valid, new, and still fails."""
        if candidate is None:
            return False
        key = msgspec.msgpack.encode(candidate)
        if key in self._tried or next(problems_of(candidate), None) is not None:
            return False
        if self._spent():
            self.early = True
            return False
        self._tried.add(key)
        self.runs += 1
        began = time.monotonic()
        fails = self._still_fails(candidate)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        if fails:
            self.best = candidate
            self.path.append(candidate)
        return fails

    def _try_each(self, candidates: Callable[[Scenario], Iterator[Scenario | None]]) -> None:
        """Try each candidate; after each success the candidates are computed again."""
        progress = True
        while progress:
            progress = any(self.accept(candidate) for candidate in candidates(self.best))

    def _drop_sequence(self, field: str) -> None:
        self._drop_chunks(
            lambda: len(getattr(self.best, field)),
            lambda first, end: replace(
                self.best, **{field: getattr(self.best, field)[:first] + getattr(self.best, field)[end:]}
            ),
        )

    def _drop_records(self, most: int | None = None) -> None:
        """Drop ever smaller chunks of records: down to single ones, or to those of which `most` make up all records."""
        self._drop_chunks(
            lambda: self.best.workload.records(),
            lambda first, end: reductions.without_records(self.best, first, end),
            lambda first, end: _records_only(self.best, first, end),
            least=1 if most is None else max(1, self.best.workload.records() // most),
        )

    def _reset_settings(self) -> None:
        """Give the engine's settings their plain values: many at a time, then ever fewer, as most do not matter."""
        self._drop_chunks(
            lambda: len(_settings_to_reset(self.best.engine)),
            lambda first, end: _with_settings_reset(self.best, _settings_to_reset(self.best.engine)[first:end]),
        )

    def _drop_chunks(self, length: Callable[[], int], *without: Callable[[int, int], Scenario], least: int = 1) -> None:
        """Drop ever smaller chunks of a sequence, from its end to its start."""
        chunk = length()
        while chunk >= least:
            end = length()
            while end > 0:
                first = max(0, end - chunk)
                any(self.accept(drop(first, end)) for drop in without)
                end = min(first, length())
            chunk = min(chunk - 1, length()) if chunk <= 2 else chunk // 2


def _records_only(scenario: Scenario, first: int, end: int) -> Scenario:
    """Without these records; every trigger stays where it is."""
    fewer = reductions.without_records(scenario, first, end)
    return replace(fewer, faults=scenario.faults, commands=scenario.commands)


def _fewer_nodes(scenario: Scenario) -> Iterator[Scenario | None]:
    for node, kept in reductions.branches(scenario.workload):
        yield reductions.without_branch(scenario, node, kept)
        yield reductions.with_inputs_merged(scenario, node)
    for node_ in reversed(scenario.workload.nodes):
        yield reductions.without_node(scenario, node_.name)


def _fewer_splits(scenario: Scenario) -> Iterator[Scenario | None]:
    for split, source, _ in reversed(list(scenario.workload.splits())):
        if len(source.splits) > 1:
            yield reductions.without_split(scenario, split)


def _squeezed(scenario: Scenario) -> Iterator[Scenario | None]:
    if scenario.workload.records() > 2:
        for numerator, denominator in ((1, 4), (1, 2), (3, 4)):
            yield reductions.squeezed(scenario, numerator, denominator)
            interval_us = scenario.engine.checkpoint_interval_us * numerator // denominator
            if interval_us >= scenario.engine.read_interval_us:  # earlier checkpoints, so that fewer records are enough
                yield replace(scenario, engine=replace(scenario.engine, checkpoint_interval_us=interval_us))


def _narrower(scenario: Scenario) -> Iterator[Scenario | None]:
    current = scenario.topology.parallelism
    if any(number > 1 for number in current.values()):
        yield reductions.with_parallelism(scenario, dict.fromkeys(current, 1))
    for name, number in current.items():
        for smaller in sorted({1, number - 1} - {0, number}):
            yield reductions.with_parallelism(scenario, {**current, name: smaller})
    for index, command in enumerate(scenario.commands):
        if isinstance(command, Resume) and command.parallelism:
            for narrower in _less_rescaled(command.parallelism):
                yield reductions.with_command(scenario, index, replace(command, parallelism=narrower))
        if isinstance(command, Resume):
            for fewer in _fewer(command.inserted):
                yield reductions.with_command(scenario, index, replace(command, inserted=fewer))
            for less in _less_upgraded(command):
                yield reductions.with_command(scenario, index, replace(command, upgrade=less))


def _less_upgraded(command: Resume) -> Iterator[Upgrade | msgspec.UnsetType]:
    """No upgrade, or one with fewer changes or fewer moves."""
    upgrade = upgrade_of(command)
    if upgrade is None:
        return
    yield msgspec.UNSET
    for renamed in _fewer(upgrade.renamed):
        yield replace(upgrade, renamed=renamed)
    for moves in _fewer(upgrade.moves):
        yield replace(upgrade, moves=moves)
    for retyped in _fewer(upgrade.retyped):
        yield replace(upgrade, retyped=retyped)
    for converts in _fewer(upgrade.converts):
        yield replace(upgrade, converts=converts)
    for field in ("removed", "added", "begin_empty"):
        for names in _shorter(getattr(upgrade, field)):
            yield replace(upgrade, **{field: names})
    if upgrade.allow_non_restored_state:
        yield replace(upgrade, allow_non_restored_state=False)


def _shorter(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """One name fewer."""
    for number in range(len(names)):
        yield names[:number] + names[number + 1 :]


def _less_rescaled(parallelism: dict[str, int]) -> Iterator[dict[str, int]]:
    """A smaller change of parallelism: none, one operator less, or each change smaller."""
    yield {}
    for name, number in parallelism.items():
        yield {other: wide for other, wide in parallelism.items() if other != name}
        if number > 1:
            yield {**parallelism, name: number - 1}


def _fewer(entries: dict[str, str]) -> Iterator[dict[str, str]]:
    """None of the entries, or all but one."""
    if entries:
        yield {}
    for name in entries if len(entries) > 1 else ():
        yield {other: value for other, value in entries.items() if other != name}


def _plainer_engine(scenario: Scenario) -> Iterator[Scenario | None]:
    plain = _plain_engine(scenario.engine)
    if scenario.engine.committing != plain.committing:
        yield reductions.without_committers(scenario)
    for index, command in enumerate(scenario.commands):
        if isinstance(command, Savepoint | StopWithSavepoint) and format_of(command):
            yield reductions.with_command(scenario, index, replace(command, format=msgspec.UNSET))
    if scenario.engine != plain:
        yield replace(scenario, engine=plain)


def _plain_engine(engine: Engine) -> Engine:
    """It gives the same guarantee with the same sink."""
    return Engine(guarantee=engine.guarantee, sink=engine.sink)


def _settings_to_reset(engine: Engine) -> tuple[str, ...]:
    """The settings that are not plain.  The interval of checkpoints fits the records: it is not reset alone."""
    plain = _plain_engine(engine)
    differ = (name for name in Engine.__struct_fields__ if getattr(engine, name) != getattr(plain, name))
    return tuple(name for name in differ if name != "checkpoint_interval_us")


def _with_settings_reset(scenario: Scenario, settings: tuple[str, ...]) -> Scenario:
    plain = _plain_engine(scenario.engine)
    return replace(scenario, engine=replace(scenario.engine, **{name: getattr(plain, name) for name in settings}))


def _plainer_topology(scenario: Scenario) -> Iterator[Scenario | None]:
    topology = scenario.topology
    if topology.key_groups != 16:
        yield replace(scenario, topology=replace(topology, key_groups=16))
    for index, edge in enumerate(topology.edges):
        if edge.partitioning != "forward":
            edges = (*topology.edges[:index], replace(edge, partitioning="forward"), *topology.edges[index + 1 :])
            plainer = Topology(parallelism=topology.parallelism, edges=edges, key_groups=topology.key_groups)
            yield replace(scenario, topology=plainer)


def _plain_operator(operator: AnyOperator) -> AnyOperator:
    """The operator without its optional parts; a window keeps its size."""
    if isinstance(operator, Window):
        return replace(operator, of="count", lateness=0)
    if isinstance(operator, User):
        return operator
    return type(operator)()


def _plainer_operators(scenario: Scenario) -> Iterator[Scenario | None]:
    nodes = scenario.workload.nodes
    for index, node in enumerate(nodes):
        plain = _plain_operator(node.operator)
        if node.operator != plain:
            changed = (*nodes[:index], replace(node, operator=plain), *nodes[index + 1 :])
            yield replace(scenario, workload=replace(scenario.workload, nodes=changed))
        if node.later:
            changed = (*nodes[:index], replace(node, later=msgspec.UNSET), *nodes[index + 1 :])
            yield replace(scenario, workload=replace(scenario.workload, nodes=changed))
    for index, source in enumerate(scenario.workload.inputs):
        if not source.bounded:
            inputs = list(scenario.workload.inputs)
            inputs[index] = replace(source, bounded=True)
            yield replace(scenario, workload=replace(scenario.workload, inputs=tuple(inputs)))


def _plainer_records(scenario: Scenario) -> Iterator[Scenario | None]:
    yield reductions.with_records(scenario, _plain)
    order = reductions.record_order(scenario.workload)
    splits = [records for _, _, records in scenario.workload.splits()]
    for split, offset in order:
        key, value, _ = splits[split][offset]
        if (key, value) != (0, 1):
            yield reductions.with_record(scenario, (split, offset), _plain)
            yield reductions.with_record(scenario, (split, offset), lambda record: (record[0], 1, record[2]))
            yield reductions.with_record(scenario, (split, offset), lambda record: (0, record[1], record[2]))


def _plain(record: InputRecord) -> InputRecord:
    return 0, 1, record[2]


def _plainer_triggers(scenario: Scenario) -> Iterator[Scenario | None]:
    for index, fault in enumerate(scenario.faults):
        for trigger in _plainer_trigger(fault.trigger):
            yield reductions.with_fault(scenario, index, replace(fault, trigger=trigger))
    for index, command in enumerate(scenario.commands):
        for trigger in _plainer_trigger(command.trigger):
            yield reductions.with_command(scenario, index, replace(command, trigger=trigger))
    for index, perturbation in enumerate(scenario.deviations):
        for occurrence in _lower(perturbation.occurrence, 1):
            yield _with_perturbation(scenario, index, replace(perturbation, occurrence=occurrence))
        for by_us in _rounder(perturbation.by_us):
            yield _with_perturbation(scenario, index, replace(perturbation, by_us=by_us))


def _with_perturbation(scenario: Scenario, index: int, perturbation: msgspec.Struct) -> Scenario:
    deviations = (*scenario.deviations[:index], perturbation, *scenario.deviations[index + 1 :])
    return replace(scenario, deviations=deviations)


def _plainer_trigger(trigger: AnyTrigger) -> Iterator[AnyTrigger]:
    match trigger:
        case AtTime():
            yield from (replace(trigger, at_us=at_us) for at_us in _rounder(trigger.at_us))
        case AtPoint():
            if trigger.side != "after":
                yield replace(trigger, side="after")
            yield from (replace(trigger, occurrence=number) for number in _lower(trigger.occurrence, 1))
        case InPhase():
            yield from (replace(trigger, occurrence=number) for number in _lower(trigger.occurrence, 1))
            yield from (replace(trigger, after_us=after_us) for after_us in _rounder(trigger.after_us))


def _plainer_fields(scenario: Scenario) -> Iterator[Scenario | None]:
    for index, fault in enumerate(scenario.faults):
        for field in ("for_us", "by_us", "down_us", "after_us"):
            time_us = getattr(fault, field, 0)
            if scenario.pipeline and time_us >= 2 * LEAST_US:
                yield reductions.with_fault(scenario, index, replace(fault, **{field: time_us // 2}))
            for rounded_us in _rounder(time_us):
                yield reductions.with_fault(scenario, index, replace(fault, **{field: rounded_us}))
        for times in _lower(getattr(fault, "times", 1), 1):
            yield reductions.with_fault(scenario, index, replace(fault, times=times))
        if getattr(fault, "always", False):
            yield reductions.with_fault(scenario, index, replace(fault, always=False))


def _lower(number: int, least: int) -> Iterator[int]:
    """Smaller numbers, the smallest first."""
    if number > least:
        yield least
        if (number + least) // 2 not in (least, number):
            yield (number + least) // 2
        if number - 1 != least:
            yield number - 1


def _rounder(time_us: int) -> Iterator[int]:
    """The time rounded down to whole units: of 10 ms if possible, else of 1 ms, else of 100 µs; nothing if it is
    round."""
    for unit in (10_000, 1_000, 100):
        rounded = time_us // unit * unit
        if 0 < rounded < time_us:
            yield rounded
            return
