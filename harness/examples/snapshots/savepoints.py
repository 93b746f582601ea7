"""What goes wrong if savepoints are no snapshots like any other (SNAP-1, SNAP-6, SNAP-7): rows that are committed
twice, and two pipelines with different histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from ....faults.plan import AtPoint, AtTime, DelayChannel, KillTask
from ....properties.model.history import (
    AttemptStarted,
    CommandReturned,
    Completed,
    Forked,
    History,
    Transaction,
)
from ....properties.model.workload import (
    Greater,
    Input,
    InputRecord,
    Map,
    Node,
    Row,
    Union,
    Workload,
    offset_of,
    split_of,
)
from ...scenario import topologies
from ...scenario.model import Engine, Fork, Savepoint, Scenario, StopWithSavepoint
from ..claims import Claim, Comparison, Example, Ran, Variant, numbered, require, runs_of, stored_state
from ..finishing.ways_to_finish import ended, expected_rows
from ..texts import PROPOSAL

WAYS = ("snapshots", "never-restored", "without-side-effects")
"""what a savepoint is for the job that takes it: the proposal's way, and two that it rejects"""
_SAVED = "saved"


def taken_as(scenario: Scenario, savepoints: str) -> Scenario:
    """The scenario with savepoints of another kind."""
    engine = msgspec.structs.replace(scenario.engine, savepoints=savepoints)
    return msgspec.structs.replace(scenario, engine=engine)


def savepoint(history: History) -> Completed:
    found = [completed for completed in history.completed if completed.savepoint]
    require(len(found) == 1, f"{len(found)} savepoints completed")
    return found[0]


def last_checkpoint(history: History) -> Completed:
    """The newest checkpoint before the savepoint."""
    before = savepoint(history).order
    found = [one for one in history.completed if not one.savepoint and one.order < before]
    require(bool(found), "no checkpoint completed before the savepoint")
    return found[-1]


def after_failure(history: History) -> AttemptStarted:
    """The first attempt that began after the savepoint."""
    after = savepoint(history).order
    found = [one for one in history.journal if isinstance(one, AttemptStarted) and one.order > after]
    require(bool(found), "nothing failed after the savepoint")
    return found[0]


def sealed_for_the_savepoint(history: History) -> list[Transaction]:
    """The transactions with rows that were sealed for the savepoint."""
    found = [one for one in history.transactions if one.checkpoint == savepoint(history).checkpoint and one.rows]
    require(bool(found), "no rows were sealed for the savepoint")
    return found


def _next_checkpoint(history: History) -> Completed:
    found = [one for one in history.completed if one.order > savepoint(history).order]
    require(bool(found), "no checkpoint completed after the savepoint")
    return found[0]


def _committed_before_failure(history: History) -> list[Transaction]:
    failed = after_failure(history).order
    return [one for one in sealed_for_the_savepoint(history) if one.committed is not None and one.committed < failed]


def rows_read_again(history: History, operator: str) -> int:
    """The records that the attempt after the failure read again."""
    began = after_failure(history).attempt
    before = {read for run in history.runs if run.operator == operator and run.attempt < began for read in run.reads}
    return sum(read in before for run in runs_of(history, operator, began) for read in run.reads)


# -- a failure after a savepoint -------------------------------------------------------------------------------


def _commits_as_a_checkpoint_does(scenario: Scenario, history: History) -> str:
    sealed = sealed_for_the_savepoint(history)
    committed = _committed_before_failure(history)
    require(committed == sealed, f"{len(committed)} of {len(sealed)} transactions were committed before the failure")
    taken = savepoint(history)
    require(all((one.committed or 0) > taken.order for one in sealed), "rows were committed before the savepoint")
    rows = sum(len(one.rows) for one in sealed)
    return f"once savepoint {taken.checkpoint} was complete, the sink committed the {rows} rows sealed for it"


def _duplicates(own: Ran, companions: Sequence[Ran]) -> str:
    (left_out,) = companions
    history = left_out.history
    restored, last = after_failure(history).restores, last_checkpoint(history).checkpoint
    require(restored == last, f"the job restarted from {restored}, and checkpoint {last} precedes the savepoint")
    rows = Counter(row for one in _committed_before_failure(history) for row in one.rows)
    twice = Counter(history.committed) - expected_rows(left_out.scenario)
    require(bool(twice) and twice == rows, f"the savepoint committed {rows.total()} rows, {twice.total()} twice")
    found = left_out.violated.get("exactly-once")
    require(found is not None and found.difference == "repeated row", "exactly-once is not violated by a repeated row")
    return (
        f"the job restarted from checkpoint {last}, which preceded savepoint {savepoint(history).checkpoint}, and the "
        f"{twice.total()} rows that the savepoint had committed are in the sink twice"
    )


def _needed_until_the_next(scenario: Scenario, history: History) -> str:
    taken, following = savepoint(history), _next_checkpoint(history)
    restores = [
        one.restores
        for one in history.journal
        if isinstance(one, AttemptStarted) and taken.order < one.order < following.order
    ]
    require(restores == [taken.checkpoint], f"before the next checkpoint, recovery went back to {restores}")
    return (
        f"until checkpoint {following.checkpoint} was complete, recovery could only go back to savepoint "
        f"{taken.checkpoint}, and did"
    )


def _once(scenario: Scenario, history: History) -> str:
    restored, taken = after_failure(history).restores, savepoint(history).checkpoint
    require(restored == taken, f"the job restarted from {restored} instead of savepoint {taken}")
    require(Counter(history.committed) == expected_rows(scenario), "not each row was committed once")
    return f"the job restarted from savepoint {taken}, and each of {len(history.committed)} rows is in the sink once"


def _separate_timelines(own: Ran, companions: Sequence[Ran]) -> str:
    (separate,) = companions
    history = separate.history
    require(not _committed_before_failure(history), "the savepoint committed rows")
    restored, last = after_failure(history).restores, last_checkpoint(history).checkpoint
    require(restored == last, f"the job restarted from {restored} instead of checkpoint {last}")
    require(Counter(history.committed) == expected_rows(separate.scenario), "not each row was committed once")
    again, less = rows_read_again(history, "source"), rows_read_again(own.history, "source")
    require(again > less, f"{again} records were read again, {less} with the savepoint")
    return (
        f"savepoint {savepoint(history).checkpoint} committed nothing, and the job restarted from checkpoint {last}: "
        f"each row is in the sink once, and {again} records were read again instead of {less}"
    )


def _commits_only_at_the_end(own: Ran, companions: Sequence[Ran]) -> str:
    (stopped,) = companions
    history = stopped.history
    plain, last = sorted((one for one in history.completed if one.savepoint), key=lambda one: one.order)
    following = next(one for one in history.completed if one.order > plain.order)
    require(not following.savepoint, "no checkpoint completed between the two savepoints")
    for taken, until in ((plain, following), (last, last)):
        sealed = [one for one in history.transactions if one.checkpoint == taken.checkpoint and one.rows]
        require(bool(sealed), f"no rows were sealed for savepoint {taken.checkpoint}")
        early = [one for one in sealed if one.committed is None or one.committed < until.order]
        require(not early, f"rows of savepoint {taken.checkpoint} were not committed, or too early")
    end = ended(history)
    require((end.status, end.checkpoint) == ("stopped", last.checkpoint), f"the job is {end.status}")
    return (
        f"the rows sealed for savepoint {plain.checkpoint} were committed with checkpoint {following.checkpoint}; "
        f"those sealed for savepoint {last.checkpoint}, with which the job was stopped, were committed by it"
    )


def _failing(name: str) -> Scenario:
    workload = Workload(
        name=name,
        inputs=(Input(name="source", splits=(numbered(160, 5),)),),
        nodes=(Node(name="parse", operator=Map(), inputs=("source",)),),
    )
    return Scenario(
        name=name,
        workload=workload,
        topology=topologies.lay_out(workload, {"source": 1, "parse": 2, "sink": 1}),
        engine=Engine(checkpoint_interval_us=12_000),
        commands=(Savepoint(trigger=AtTime(at_us=17_000), name=_SAVED),),
        faults=(KillTask(task="parse-0", trigger=AtTime(at_us=22_000)),),
    )


_FAILING = _failing("failure-after-savepoint")
_LEFT_OUT = Variant(
    name="savepoints commit, and are left out of recovery",
    scenario=taken_as(_FAILING, "never-restored"),
    violates=("exactly-once", "visibility"),
)
_SEPARATE = Variant(name="savepoints have no side effects", scenario=taken_as(_FAILING, "without-side-effects"))
_STOPPED = Variant(
    name="savepoints have no side effects, and one of them stops the job",
    scenario=msgspec.structs.replace(
        _SEPARATE.scenario,
        commands=(*_FAILING.commands, StopWithSavepoint(trigger=AtTime(at_us=30_000))),
        faults=(),
    ),
)

FAILURE_AFTER_SAVEPOINT = Example(
    about="a failure after a savepoint: nothing is repeated, since recovery goes back to the savepoint",
    document=PROPOSAL,
    scenario=_FAILING,
    claims=(
        Claim(text="they commit side-effects (e.g. when using exactly-once sinks), just as checkpoints do",
              find=_commits_as_a_checkpoint_does),
        Comparison(text="in the scenario where a failure happens after a savepoint, the job would restart from the "
                   "last successful checkpoint (which preceded the last savepoint), thus leading to duplicates in "
                   "the sink", companions=(_LEFT_OUT,), find=_duplicates),
        Claim(text="considering savepoints as checkpoints leads to the user having no permission to delete them, at "
              "least until the next checkpoint", find=_needed_until_the_next),
        Claim(text="all state snapshots are considered for RECOVERY", find=_once),
        Comparison(text="savepoints commit no side-effects and we maintain two different, independent timelines: one "
                   "for savepoints and one for checkpoints", companions=(_SEPARATE,), find=_separate_timelines),
        Comparison(text="use a special savepoint that commits side-effects only during graceful job termination",
                   companions=(_STOPPED,), find=_commits_only_at_the_end),
    ),
)  # fmt: skip


# -- an A/B test -----------------------------------------------------------------------------------------------

_JOINED = "greater"


def forked(history: History) -> Forked:
    found = [] if isinstance(history.forks, msgspec.UnsetType) else history.forks
    require(len(found) == 1, f"{len(found)} jobs were started beside")
    return found[0]


def _taken_from_a(scenario: Scenario, history: History) -> str:
    taken = savepoint(history)
    answers = [one.checkpoint for one in history.journal if isinstance(one, CommandReturned)]
    require(taken.checkpoint in answers, "the savepoint was not answered")
    read = sum(stored_state(history, taken.checkpoint, f"{name}-0").positions[split]
               for split, name in enumerate(("left", "right")))  # fmt: skip
    return f"savepoint {taken.checkpoint} of job {taken.job} covers {read} records of {scenario.workload.records()}"


def _b_beside_a(scenario: Scenario, history: History) -> str:
    other, taken = forked(history), savepoint(history)
    require(other.checkpoint == taken.checkpoint, f"B began with {other.checkpoint}")
    (begun,) = [one for one in other.history.journal if isinstance(one, AttemptStarted) and one.job != taken.job]
    width = sum(run.operator == _JOINED and run.job == begun.job for run in other.history.runs)
    was = scenario.topology.parallelism[_JOINED]
    require(width != was, f"B has as many subtasks of {_JOINED} as A: {width}")
    going_on = [at for run in history.runs if run.attempt == taken.attempt for at in (run.ended,)]
    require(all(at is None or at > taken.order for at in going_on), "A ended before")
    return f"B began with savepoint {taken.checkpoint} and {width} subtasks of {_JOINED} instead of {was}; A went on"


def _falls_back(own: Ran, companions: Sequence[Ran]) -> str:
    (rejected,) = companions
    history = rejected.history
    restored, taken = after_failure(history).restores, savepoint(history).checkpoint
    last = last_checkpoint(history).checkpoint
    require(restored == last != taken, f"A fell back to {restored}; its last checkpoint is {last}")
    return f"A fell back to checkpoint {last}, not to savepoint {taken}"


Met = tuple[int, int, tuple[tuple[int | None, int | None], ...]]
"""how many records of the two splits were taken, and the value that each key has"""


def _in_the_savepoint(history: History) -> Met:
    return _stored_at(history, savepoint(history).checkpoint)


def _stored_at(history: History, checkpoint: int) -> Met:
    state = stored_state(history, checkpoint, f"{_JOINED}-0")
    left, right = (stored_state(history, checkpoint, f"{name}-0").positions[split]
                   for split, name in enumerate(("left", "right")))  # fmt: skip
    return left, right, _sorted({key: value for _, key, value, _ in state.entries})


def _sorted(values: dict[int | None, int | None]) -> tuple[tuple[int | None, int | None], ...]:
    return tuple(sorted(values.items(), key=lambda pair: (pair[0] is not None, pair[0] or 0)))


def _met_since(scenario: Scenario, history: History) -> Iterator[Met]:
    """The states through which A passed after its failure, the restored one first."""
    begun = after_failure(history)
    require(begun.restores is not None, "A began empty")
    left, right, held = _stored_at(history, begun.restores or 0)
    yield left, right, held
    records = {number: rows for number, _, rows in scenario.workload.splits()}
    taken, values = [left, right], dict(held)
    for run in runs_of(history, _JOINED, begun.attempt):
        for _, origin in run.applies:
            key, value, _ = records[split_of(origin)][offset_of(origin)]
            taken[split_of(origin)] += 1
            values[key] = value
            yield taken[0], taken[1], _sorted(values)


def _never_met_again(own: Ran, companions: Sequence[Ran]) -> str:
    (rejected,) = companions
    saved = _in_the_savepoint(rejected.history)
    met = list(_met_since(rejected.scenario, rejected.history))
    require(len(met) > 20, f"A went on through {len(met)} states only")
    require(saved not in met, "A met the state in the savepoint again")
    return (
        f"the savepoint holds the state behind {saved[0]} records of left and {saved[1]} of right; none of the "
        f"{len(met)} states through which A passed after its failure is this one"
    )


def emitted_before(history: History) -> Counter[Row]:
    """The rows that B has from the savepoint's own past: those that A had made by then."""
    other = forked(history).history
    own = [one for one in other.transactions if one.status == "committed" and one.checkpoint is not None]
    until = savepoint(history).checkpoint
    return Counter(row for one in own if (one.checkpoint or 0) <= until for row in one.rows)


def _different_histories(own: Ran, companions: Sequence[Ran]) -> str:
    (rejected,) = companions
    history = rejected.history
    past, of_a, of_b = (emitted_before(history), Counter(history.committed), Counter(forked(history).history.committed))
    only_b, only_a = past - of_a, of_a - of_b
    require(only_b.total() > 0, "all that B has from before the savepoint is in the output of A")
    require(only_a.total() > 0, "all rows of A are in the output of B")
    require(not rejected.violated, f"violated: {', '.join(rejected.violated)}")
    return (
        f"{only_b.total()} rows in the output of B are from before the savepoint, and A does not have them; "
        f"{only_a.total()} rows of A are not in the output of B.  Each output by itself is exactly once"
    )


def _one_history(scenario: Scenario, history: History) -> str:
    restored, taken = after_failure(history).restores, savepoint(history).checkpoint
    require(restored == taken, f"A restarted from {restored} instead of savepoint {taken}")
    require(next(_met_since(scenario, history)) == _in_the_savepoint(history), "A has another state")
    past, of_a = emitted_before(history), Counter(history.committed)
    require(past.total() > 0 and not past - of_a, "A lacks rows that B has from before the savepoint")
    return (
        f"A restarted from savepoint {taken} as B did, and has all {past.total()} rows that were made before it: "
        "until the savepoint both have one history"
    )


def rising_and_falling(records: int, step: int, first: int) -> tuple[InputRecord, ...]:
    """Records of three keys whose values rise and fall."""
    return tuple((at % 3, at * step % 29, 1_000_003 * (at + 1) + first) for at in range(records))


def order_dependent(name: str) -> Workload:
    """Two inputs meet in an operator whose rows depend on their order."""
    return Workload(
        name=name,
        inputs=(
            Input(name="left", splits=(rising_and_falling(110, 11, 0),)),
            Input(name="right", splits=(rising_and_falling(110, 17, 7),)),
        ),
        nodes=(
            Node(name="both", operator=Union(), inputs=("left", "right")),
            Node(name=_JOINED, operator=Greater(), inputs=("both",)),
        ),
    )


def _tested(name: str) -> Scenario:
    """The first attempt gets one of the two inputs late."""
    workload = order_dependent(name)
    return Scenario(
        name=name,
        workload=workload,
        topology=topologies.lay_out(workload, {"left": 1, "right": 1, "both": 1, _JOINED: 1, "sink": 1}),
        engine=Engine(checkpoint_interval_us=8_000),
        commands=(
            Savepoint(trigger=AtTime(at_us=13_000), name=_SAVED),
            Fork(
                trigger=AtPoint(point="checkpoint-completed", occurrence=2),
                snapshot=_SAVED,
                parallelism={_JOINED: 2, "sink": 2},
            ),
        ),
        faults=(
            DelayChannel(
                sender="left-0", receiver="both-0", by_us=1_300, for_us=12_000, trigger=AtTime(at_us=3_000)
            ),
            KillTask(task=f"{_JOINED}-0", trigger=AtTime(at_us=18_000)),
        ),
    )  # fmt: skip


_TESTED = _tested("ab-test")
_WITHOUT = Variant(name="savepoints have no side effects", scenario=taken_as(_TESTED, "without-side-effects"))

AB_TEST = Example(
    about="an A/B test from a savepoint, with a failure of A: one history until the savepoint, or two",
    document=PROPOSAL,
    scenario=_TESTED,
    claims=(
        Claim(text="take the savepoint from job execution A", find=_taken_from_a),
        Claim(text="start job execution B with the alternative job configuration with that savepoint while leaving "
              "execution A running", find=_b_beside_a),
        Comparison(text="after a failure, execution A falls back to the last checkpoint (which is not our savepoint)",
                   companions=(_WITHOUT,), find=_falls_back),
        Comparison(text="due to different order of events the state reflected in the savepoint is never met again by "
                   "execution A", companions=(_WITHOUT,), find=_never_met_again),
        Comparison(text="our two pipelines have different histories", companions=(_WITHOUT,),
                   find=_different_histories),
        Claim(text="all state snapshots (checkpoints and savepoints) are simply SNAPSHOTS … and they are eligible for "
              "RECOVERY", find=_one_history),
    ),
)  # fmt: skip
