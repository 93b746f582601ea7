"""Two ways that the post rejects: to commit or to drop the last data when a task finishes (FIN-9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ....faults.plan import AtTime, KillTask
from ....properties.invariants.judge import judge
from ....properties.model.history import History, Transaction
from ....properties.model.verdict import Holds
from ....properties.model.workload import Input, Map, Node, Workload
from ...scenario import topologies
from ...scenario.model import Engine, Scenario
from ..claims import Claim, Comparison, Example, Ran, Variant, numbered, require
from ..texts import POST
from .ways_to_finish import ended, expected_rows, finishing_by

_SHORT, _LONG = numbered(130, 5)[:30], numbered(130, 5)[30:]


def _uneven(name: str) -> Scenario:
    """A job of two independent pipelines: one ends early, and then a task of the other fails."""
    workload = Workload(
        name=name,
        inputs=(Input(name="source", splits=(_SHORT, _LONG)),),
        nodes=(Node(name="parse", operator=Map(), inputs=("source",)),),
    )
    return Scenario(
        name=name,
        workload=workload,
        topology=topologies.lay_out(workload, {"source": 2, "parse": 2, "sink": 2}),
        engine=Engine(checkpoint_interval_us=4_000),
        faults=(KillTask(task="source-1", trigger=AtTime(at_us=14_000)),),
    )


def _without_a_checkpoint(history: History) -> list[Transaction]:
    """Transactions with rows that were committed although no checkpoint covered them."""
    found = []
    for one in history.transactions:
        run = next(run for run in history.runs if (run.task, run.attempt) == (one.task, one.attempt))
        done = [entry for entry in history.completed if one.committed and entry.order < one.committed]
        covered = [mark.applies for mark in run.marks if any(mark.checkpoint == entry.checkpoint for entry in done)]
        if one.status == "committed" and one.rows and max(one.applied) > max(covered, default=0):
            found.append(one)
    return found


def _duplicated(own: Ran, companions: Sequence[Ran]) -> str:
    (flawed,) = companions
    scenario, other = flawed.scenario, flawed.history
    at_finish = [one for one in _without_a_checkpoint(other) if one.attempt == 1]
    require(bool(at_finish), "nothing was committed when a task finished")
    rows = Counter(row for one in at_finish for row in one.rows)
    twice = Counter(other.committed) - expected_rows(scenario)
    require(bool(twice) and not twice - rows, f"{rows.total()} rows were committed at a finish, {twice.total()} twice")
    found = flawed.violated.get("exactly-once")
    require(found is not None and found.difference == "repeated row", "exactly-once is not violated by a repeated row")
    tasks = ", ".join(sorted({one.task for one in at_finish}))
    sentence = f"{tasks} committed its last {rows.total()} rows when its input had ended"
    return f"{sentence}; then another task failed, and {twice.total()} rows show twice"


def _only_by_a_failure(own: Ran, companions: Sequence[Ran]) -> str:
    other = companions[0].history
    require(Counter(other.committed) == expected_rows(own.scenario), "rows are lost or repeated without a failure too")
    return f"without a failure each of {len(other.committed)} rows shows once"


def _one_more_checkpoint(scenario: Scenario, history: History) -> str:
    require(Counter(history.committed) == expected_rows(scenario), "not each row was committed once")
    early = _without_a_checkpoint(history)
    require(not early, f"{', '.join(one.name for one in early)} was committed before a checkpoint covered it")
    verdict = judge(scenario.workload, scenario.topology, history).verdicts["exactly-once"]
    require(isinstance(verdict, Holds), "exactly-once does not hold, or was not exercised")
    return f"each of {len(history.committed)} rows was committed once, none before a checkpoint covered it"


_COMMITTING = _uneven("commit-at-finish")
_COMMITTED_AT_FINISH = Variant(
    name="committed at finish",
    scenario=finishing_by(_COMMITTING, "commit-at-finish"),
    violates=("exactly-once", "visibility"),
)
_WITHOUT_A_FAILURE = Variant(
    name="committed at finish, without a failure",
    scenario=finishing_by(_COMMITTING, "commit-at-finish", faults=()),
    violates=("visibility",),
)

COMMIT_AT_FINISH = Example(
    about="rejected: a sink commits its last data when its task finishes; a failure of another task repeats it",
    document=POST,
    scenario=_COMMITTING,
    claims=(
        Comparison(text="if we commit them directly on task get finished, then if there are failovers after that, "
                   "these records would be re-emitted and cause data duplication", companions=(_COMMITTED_AT_FINISH,),
                   find=_duplicated),
        Comparison(text="like due to other unfinished tasks get failed", companions=(_WITHOUT_A_FAILURE,),
                   find=_only_by_a_failure),
        Claim(text="wait for one more checkpoint after tasks processed all data", find=_one_more_checkpoint),
    ),
)  # fmt: skip


def _lost(own: Ran, companions: Sequence[Ran]) -> str:
    (flawed,) = companions
    scenario, other = flawed.scenario, flawed.history
    require(ended(other).status == "finished", f"the job is {ended(other).status}")
    missing = expected_rows(scenario) - Counter(other.committed)
    require(missing.total() > 0, "no row is lost")
    require(not Counter(other.committed) - expected_rows(scenario), "a row shows twice")
    require("no-data-loss" in flawed.violated, "no-data-loss is not violated")
    return (
        f"the job finished, nothing had failed, and {missing.total()} of "
        f"{expected_rows(scenario).total()} rows are lost"
    )


def _ignored(own: Ran, companions: Sequence[Ran]) -> str:
    scenario, other = own.scenario, companions[0].history
    dropped = [one for one in other.transactions if one.status == "aborted" and one.rows]
    missing = expected_rows(scenario) - Counter(other.committed)
    written = Counter(row for one in dropped for row in one.rows)
    require(bool(dropped) and not written - missing, "no transaction with rows was dropped")
    tasks = ", ".join(sorted({one.task for one in dropped}))
    return f"{tasks} dropped open transactions with {written.total()} rows"


_DISCARDING = _uneven("discard-at-finish")
_DISCARDED_AT_FINISH = Variant(
    name="discarded at finish, without a failure",
    scenario=finishing_by(_DISCARDING, "discard-at-finish", faults=()),
    violates=("exactly-once", "no-data-loss"),
)

DISCARD_AT_FINISH = Example(
    about="rejected: a sink drops its uncommitted rows when its task finishes; the last data is lost",
    document=POST,
    scenario=_DISCARDING,
    claims=(
        Comparison(text="if we discard these records as now, these records would be lost and cause data loss",
                   companions=(_DISCARDED_AT_FINISH,), find=_lost),
        Comparison(text="previously the bounded jobs just ignore the uncommitted data when finishing",
                   companions=(_DISCARDED_AT_FINISH,), find=_ignored),
        Claim(text="wait for one more checkpoint after tasks processed all data", find=_one_more_checkpoint),
    ),
)  # fmt: skip
