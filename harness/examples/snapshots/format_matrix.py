"""What each format of snapshots can do: the matrix of FLIP-47 by format, each cell found in runs (SNAP-6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import accumulate

import msgspec

from ....faults.plan import AtRest, AtTime, KillTask
from ....properties.model.history import AttemptStarted, Completed, Forked, History
from ....properties.model.verdict import Holds
from ....properties.model.workload import Count, Input, Node, Row, Workload
from ....reports.example_report import Figures
from ...reference_engine.other_backend import forked_to
from ...scenario import topologies
from ...scenario.model import Engine, Fork, Savepoint, Scenario
from ..claims import Ran, numbered
from ..trials import Trials
from .shared_files import deleted

FORMATS = ("canonical", "native", "incremental")
BACKENDS = ("heap", "lsm")
_RECORDS = numbered(200, 40)
_SAVED_US, _KILLED_US = 27_000, 31_000
YES, NO = "yes", "no"


def _counted(format_name: str, backend: str) -> Scenario:
    """A count whose checkpoints have this format, and so has a savepoint amid them."""
    workload = Workload(
        name="formats",
        inputs=(Input(name="source", splits=(_RECORDS,)),),
        nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
    )
    return Scenario(
        name="formats",
        workload=workload,
        topology=topologies.lay_out(workload, {"source": 1, "count": 2, "sink": 2}),
        engine=Engine(
            checkpoint_interval_us=6_000,
            snapshot_format=format_name,
            state_backend=backend,
            compaction_files=100,
        ),
        commands=(Savepoint(trigger=AtTime(at_us=_SAVED_US), name="saved", format=format_name),),
    )


def _with(scenario: Scenario, *commands: Fork, killed: bool = False) -> Scenario:
    faults = (KillTask(task="count-0", trigger=AtTime(at_us=_KILLED_US)),) if killed else ()
    return msgspec.structs.replace(scenario, commands=(*scenario.commands, *commands), faults=faults)


def _savepoint(history: History) -> Completed | None:
    return next((one for one in history.completed if one.savepoint), None)


def _files(history: History, completed: Completed) -> list[tuple[str, int, bool]]:
    return [file for one in history.stored if one.handle in completed.handles.values() for file in one.files]


def _due() -> Counter[Row]:
    """1, 2, 3 … of each key."""
    keys = {key for key, _, _ in _RECORDS}
    counts = {key: accumulate(1 for one, _, _ in _RECORDS if one == key) for key in keys}
    return Counter((key, number, 0, 0) for key, numbers in counts.items() for number in numbers)


def _word(is_so: bool) -> str:
    return YES if is_so else NO


def _user_controlled(ran: Ran) -> str:
    """The savepoint is there at the end, though newer checkpoints have completed; checkpoints of its age are not."""
    history, taken = ran.history, _savepoint(ran.history)
    if taken is None:
        return NO
    older = [one for one in history.completed if not one.savepoint and one.order < taken.order]
    gone = deleted(history)
    kept = taken.checkpoint in history.residue.retained
    needed = [*taken.handles.values(), *(name for name, _, _ in _files(history, taken))]
    let_go = all(handle in gone for one in older for handle in one.handles.values())
    return _word(bool(older) and kept and let_go and not any(name in gone for name in needed))


def _incremental(ran: Ran) -> str:
    """Some snapshot writes less than it needs."""
    return _word(any(not new for one in ran.history.stored for _, _, new in one.files))


def _self_contained(ran: Ran) -> str:
    """All that a snapshot needs was written for it."""
    return _word(all(new for one in ran.history.stored for _, _, new in one.files))


def _side_effects(ran: Ran) -> str:
    """What was sealed for the savepoint is committed before anything else is complete."""
    history, taken = ran.history, _savepoint(ran.history)
    if taken is None:
        return NO
    following = min((one.order for one in history.completed if one.order > taken.order), default=None)
    sealed = [one for one in history.transactions if one.checkpoint == taken.checkpoint and one.rows]
    by_then = [one for one in sealed if one.committed is not None and (following is None or one.committed < following)]
    return _word(bool(sealed) and by_then == sealed)


def _recovery(ran: Ran) -> str:
    """After a failure the job goes back to the savepoint, and the output is exactly once."""
    history, taken = ran.history, _savepoint(ran.history)
    restored = [one.restores for one in history.journal if isinstance(one, AttemptStarted) and one.attempt > 1]
    right = Counter(history.committed) == _due() and not ran.violated
    return _word(taken is not None and restored == [taken.checkpoint] and right)


def _rescaling(ran: Ran) -> str:
    """Jobs of fewer and of more subtasks begin with each retained snapshot, and their output is right."""
    forks = [] if isinstance(ran.history.forks, msgspec.UnsetType) else ran.history.forks
    both = len(forks) == 2 * len(ran.history.residue.retained) > 2
    return _word(both and _all_right(forks) and isinstance(ran.verdicts["restorable"], Holds))


def _all_right(forks: list[Forked]) -> bool:
    return bool(forks) and all(Counter(one.history.committed) == _due() for one in forks)


def _fork(subtasks: int) -> Fork:
    return Fork(trigger=AtRest(), parallelism={"count": subtasks, "sink": subtasks})


class Column(msgspec.Struct, frozen=True):
    """One property: its run is that of a count, changed, and the cell is what `find` finds in it."""

    name: str
    change: Callable[[Scenario], Scenario]
    find: Callable[[Ran], str]


def _as_it_is(scenario: Scenario) -> Scenario:
    return scenario


COLUMNS = (
    Column("user-controlled", _as_it_is, _user_controlled),
    Column("incremental", _as_it_is, _incremental),
    Column("self-contained", _as_it_is, _self_contained),
    Column("side effects", _as_it_is, _side_effects),
    Column("recovery", lambda scenario: _with(scenario, killed=True), _recovery),
    Column("rescaling", lambda scenario: _with(scenario, _fork(1), _fork(3)), _rescaling),
)
UNIFIED = "unified format"


def cell(trials: Trials, column: Column, format_name: str, backend: str) -> str:
    """Whether snapshots of this format have a property, with this state backend."""
    return column.find(trials.ran(column.change(_counted(format_name, backend))))


def unified(format_name: str, backend: str) -> str:
    """Whether jobs with the other state backend can begin with snapshots of this format, and their output is right."""
    (other,) = (one for one in BACKENDS if one != backend)
    scenario = _with(_counted(format_name, backend), Fork(trigger=AtRest()))
    return _word(_all_right(forked_to(other, scenario)))


def matrix(trials: Trials, backend: str) -> Figures:
    """The matrix, from runs with this backend."""
    return Figures(
        caption=f"What each format of snapshots can do, found in runs with the state backend {backend} (SNAP-6)",
        head=("format", *(column.name for column in COLUMNS), UNIFIED),
        rows=tuple(
            (name, *(cell(trials, column, name, backend) for column in COLUMNS), unified(name, backend))
            for name in FORMATS
        ),
    )
