"""A job goes on beside the one that took its savepoint: one history until the savepoint, and two behind it (SNAP-7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from ....faults.plan import AtPoint, DelayChannel, KillTask
from ....properties.model.history import AttemptStarted, History, StoredState, Transaction
from ....properties.model.verdict import Holds
from ....properties.model.workload import Row, offset_of, split_of
from ...scenario import topologies
from ...scenario.model import Engine, Fork, Savepoint, Scenario
from ..claims import Claim, Comparison, Example, Ran, require, stored_state, task_run
from ..texts import PROPOSAL
from .savepoints import after_failure, forked, order_dependent, savepoint

NAME = "two-histories-after-fork"
_SAVED = "saved"
_SOURCES = ("left", "right")
_TASK = "greater-0"


def committed_until(history: History) -> Counter[Row]:
    """The rows that were sealed for the savepoint or before, and committed."""
    return Counter(row for one in _committed(history, behind=False) for row in one.rows)


def committed_behind(history: History) -> Counter[Row]:
    """The rows of the sink that were not there with the savepoint."""
    return Counter(history.committed) - committed_until(history)


def _committed(history: History, *, behind: bool) -> list[Transaction]:
    last = savepoint(history).checkpoint
    return [
        one
        for one in history.transactions
        if one.status == "committed" and one.checkpoint is not None and (one.checkpoint > last) is behind
    ]


Taken = tuple[list[int], list[int]]
"""the origins of the records that a job took up to the savepoint, and behind it, in its order"""


def taken(history: History) -> Taken:
    """What an attempt took behind the checkpoint with which the next one began is left out: that was taken again."""
    found: list[int] = []
    covered = {0: 0}  # by checkpoint: how many of the records found are in its state
    for start in history.journal:
        if isinstance(start, AttemptStarted):
            del found[covered[start.restores or 0] :]
            run = task_run(history, _TASK, start.attempt)
            covered |= {mark.checkpoint: len(found) + mark.applies for mark in run.marks}
            found += [origin for _, origin in run.applies]
    until = covered[savepoint(history).checkpoint]
    return found[:until], found[until:]


def rows_of(scenario: Scenario, origins: Iterable[int], until: int) -> Counter[Row]:
    """The rows that records yield in this order, without those of the first `until` records."""
    records = {number: rows for number, _, rows in scenario.workload.splits()}
    held: dict[int | None, int | None] = {}
    rows = Counter[Row]()
    for at, origin in enumerate(origins):
        key, value, tag = records[split_of(origin)][offset_of(origin)]
        before, held[key] = held.get(key), value
        if at >= until and (before is None or (value is not None and value > before)):
            rows[key, value, tag, 0] += 1
    return rows


def follow_from(scenario: Scenario, history: History) -> tuple[Counter[Row], Counter[Row]]:
    """The rows that follow from the order in which the job took the records: all, and those behind the savepoint."""
    before, behind = taken(history)
    return rows_of(scenario, before + behind, 0), rows_of(scenario, before + behind, len(before))


def _state(history: History) -> StoredState:
    return stored_state(history, savepoint(history).checkpoint, _TASK)


def _values(state: StoredState) -> dict[int | None, int | None]:
    return {key: value for _, key, value, _ in state.entries}


def _beside(scenario: Scenario, history: History) -> str:
    other, saved = forked(history), savepoint(history)
    require(other.checkpoint == saved.checkpoint, f"B began with {other.checkpoint}")
    later = [one.checkpoint for one in history.completed if one.job == saved.job and one.order > saved.order]
    require(bool(later), "A completed no checkpoint behind the savepoint")
    own = [one.checkpoint for one in other.history.completed if one.job != saved.job]
    require(bool(own), "B completed no checkpoint")
    return (
        f"B began with savepoint {saved.checkpoint} of A.  Behind it A completed {_listed(later)}, and B completed "
        f"{_listed(own)} of its own"
    )


def _listed(checkpoints: Iterable[int]) -> str:
    return f"checkpoints {', '.join(map(str, checkpoints))}"


def _one_past(scenario: Scenario, history: History) -> str:
    other, saved = forked(history).history, savepoint(history)
    past, (before, _) = committed_until(history), taken(history)
    require(before == taken(other)[0], "B has other records from before the savepoint than A")
    require(past.total() > 0 and past == committed_until(other), "B has other rows from before the savepoint than A")
    require(not past - Counter(history.committed), "A lacks rows from before the savepoint")
    require(not past - Counter(other.committed), "B lacks rows from before the savepoint")
    begun = after_failure(other)  # its first attempt is the first that began behind the savepoint
    loaded = task_run(other, _TASK, begun.attempt).loaded
    require(loaded is not None and loaded.checkpoint == saved.checkpoint, "B did not load the savepoint")
    held = _values(msgspec.json.decode(loaded.state if loaded else "{}", type=StoredState))
    require(bool(held) and held == _values(_state(history)), f"B began with {held}")
    places = []
    for split, name in enumerate(_SOURCES):
        position = stored_state(history, saved.checkpoint, f"{name}-0").positions[split]
        reads = task_run(other, f"{name}-0", begun.attempt).reads
        require(
            reads[:1] == [(split, position)], f"B reads {name} from {reads[:1]}, and the savepoint is at {position}"
        )
        places.append(f"{position} records of {name}")
    return (
        f"B has the {past.total()} rows that A committed up to savepoint {saved.checkpoint}, and no others from before "
        f"it.  It began with the value that each of {len(held)} keys had in A, behind {' and '.join(places)}"
    )


def _another_order(scenario: Scenario, history: History) -> str:
    (_, of_a), (_, of_b) = taken(history), taken(forked(history).history)
    require(bool(of_a) and Counter(of_a) == Counter(of_b), f"A took {len(of_a)} records behind it, and B {len(of_b)}")
    require(of_a != of_b, "both took them in the same order")
    alike = next(at for at, (one, another) in enumerate(zip(of_a, of_b, strict=True)) if one != another)
    return (
        f"behind the savepoint both took the same {len(of_a)} records: the first {alike} in the same order, and then "
        "each in its own"
    )


def _two_outputs(scenario: Scenario, history: History) -> str:
    other = forked(history).history
    of_a, of_b = committed_behind(history), committed_behind(other)
    only_a, only_b = of_a - of_b, of_b - of_a
    require(only_a.total() > 0, "B has all rows of A")
    require(only_b.total() > 0, "A has all rows of B")
    for name, own, job in (("A", of_a, history), ("B", of_b, other)):
        _, owed = follow_from(scenario, job)
        require(own == owed, f"{(own - owed).total()} rows of {name} do not follow from its own order, "
                             f"and {(owed - own).total()} that do are missing")  # fmt: skip
    names_a, names_b = ({one.name for one in _committed(each, behind=True)} for each in (history, other))
    require(not names_a & names_b, f"both have the transactions {', '.join(sorted(names_a & names_b))}")
    return (
        f"behind the savepoint A committed {of_a.total()} rows and B {of_b.total()}, each in its own transactions, and "
        f"those that follow from its own order: {only_a.total()} rows are in the output of A alone, and "
        f"{only_b.total()} in that of B alone"
    )


def _falls_back_to_its_own(scenario: Scenario, history: History) -> str:
    saved, begun = savepoint(history), after_failure(history)
    before = [one.checkpoint for one in history.completed if one.order < begun.order]
    require(begun.restores == before[-1] != saved.checkpoint, f"A fell back to {begun.restores}")
    shared = [one.checkpoint for one in forked(history).history.completed]
    require(begun.restores not in shared, f"B has checkpoint {begun.restores} too")
    return (
        f"A fell back to its checkpoint {begun.restores}, which is behind savepoint {saved.checkpoint}: B never had it"
    )


def _each_exactly_once(own: Ran, companions: Sequence[Ran]) -> str:
    history = own.history
    for name, of in (("exactly-once", "A"), ("restorable", "B")):
        require(
            isinstance(own.verdicts[name], Holds), f"{name}, which is about {of}, does not hold or was not exercised"
        )
    counts = []
    for name, job in (("A", history), ("B", forked(history).history)):
        owed, _ = follow_from(own.scenario, job)
        require(Counter(job.committed) == owed, f"not each row of {name} is in its sink once")
        counts.append(f"{owed.total()} of {name}")
    return f"each row that follows from a job's own order is in its sink once: {' and '.join(counts)}"


def _scenario() -> Scenario:
    """A gets one of the two inputs late behind the savepoint, and fails as its next checkpoint is complete."""
    workload = order_dependent(NAME)
    first, saved, third = (AtPoint(point="checkpoint-completed", occurrence=number) for number in (1, 2, 3))
    late = DelayChannel(sender="left-0", receiver="both-0", by_us=1_300, for_us=9_000, trigger=saved)
    return Scenario(
        name=NAME,
        workload=workload,
        topology=topologies.lay_out(workload, {"left": 1, "right": 1, "both": 1, "greater": 1, "sink": 1}),
        engine=Engine(checkpoint_interval_us=8_000),
        commands=(Savepoint(trigger=first, name=_SAVED), Fork(trigger=saved, snapshot=_SAVED)),
        faults=(late, KillTask(task=_TASK, trigger=third)),
    )


TWO_HISTORIES = Example(
    about="a job is forked from a savepoint, and both go on: one history until the savepoint, and two behind it",
    document=PROPOSAL,
    scenario=_scenario(),
    claims=(
        Claim(text="start job execution B … with that savepoint while leaving execution A running", find=_beside),
        Claim(text="both checkpoints and savepoints can be seen as state snapshots", find=_one_past),
        Claim(text="due to different order of events", find=_another_order),
        Claim(text="our two pipelines have different histories", find=_two_outputs),
        Claim(text="after a failure, execution A falls back to the last checkpoint (which is not our savepoint)",
              find=_falls_back_to_its_own),
        Comparison(text="to not break the exactly-once end-to-end semantics", companions=(), find=_each_exactly_once),
    ),
)  # fmt: skip
