"""One bounded job, executed as a stream and as a batch: both compared with PySpark, and with each other (FIN-6).

Three comparisons of final results (`properties.final_result`): the rows that the
stream committed with the expected rows, the rows of the batch's sinks with the
expected rows, and the stream's rows with the batch's.  Where two results may differ
although both are correct, the verdict is *unknown*.  PySpark computes the expected
rows, for many scenarios in one query.  For a count or a sum the expected row is the
aggregate itself, never a row picked by its position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ...properties.model.absent import first_absent, laid_without, without
from ...properties.model.history import History, JobEnded
from ...properties.model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ...properties.model.words import LIMIT, row_in_words
from ...properties.model.workload import Row, Workload
from ...properties.quick_checker.compare import difference_of
from ...properties.quick_checker.final_result import final_result, is_fixed, is_update_stream, shows_last
from ...properties.reconstruct.lineage import INFINITE
from ...properties.spark.tables import Cut, Expected, OracleJob
from ...reference_impl.batch.execution import Batch
from ...reference_impl.batch.execution import BatchResult as BatchResult
from ...reference_impl.core.vocabulary.ids import TaskId
from ..scenario.model import Scenario
from ..subject.port import Subject
from .subjects.translation import job_graph, logs

if TYPE_CHECKING:
    from ...properties.spark.oracle import Oracle


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One job executed in both ways.  If PySpark was not asked, the first two verdicts are unknown."""

    name: str
    streaming: Verdict
    """the rows that the stream committed, compared with the expected rows"""
    batch: Verdict
    """the rows of the batch, compared with the expected rows"""
    equal: Verdict
    """the two results, compared with each other"""

    @property
    def verdicts(self) -> tuple[Verdict, Verdict, Verdict]:
        return self.streaming, self.batch, self.equal


def as_bounded(scenario: Scenario) -> Scenario:
    """The scenario with bounded inputs, without commands, and exactly-once into a transactional sink; of several jobs,
    its first."""
    absent = first_absent(scenario.workload)
    workload = without(scenario.workload, absent)
    inputs = tuple(replace(source, bounded=True, rewindable=True) for source in workload.inputs)
    return replace(
        scenario,
        workload=replace(workload, inputs=inputs),
        topology=laid_without(scenario.topology, absent),
        engine=replace(scenario.engine, guarantee="exactly-once", sink="transactional"),
        commands=(),
    )


def execute(scenario: Scenario, failures: Mapping[str, Sequence[int]] | None = None) -> BatchResult:
    """Execute the scenario's workload as a batch.  Its engine settings and faults do not apply."""
    failing = {TaskId(task): after for task, after in (failures or {}).items()}
    return Batch(job_graph(scenario.workload, scenario.topology), logs(scenario.workload), failing).run()


def question(scenario: Scenario, name: str) -> OracleJob:
    """The question for PySpark: all rows of the workload once every split is read to its end."""
    ends = tuple(len(records) for _, _, records in scenario.workload.splits())
    return OracleJob(id=name, workload=scenario.workload, cuts=(Cut(name=INFINITE, positions=ends),))


def expected_rows(workload: Workload, expected: Expected) -> Counter[Row]:
    """The final result as PySpark computes it; for a count or a sum, its final state."""
    if not is_update_stream(workload):
        return expected.rows_up_to(INFINITE)
    held = expected.state(INFINITE).get(workload.output, Counter())
    return Counter({(key, value, tags, 0): number for (_, key, value, tags), number in held.items()})


def in_order(history: History) -> list[Row]:
    """The committed rows in the order of the checkpoints for which they were sealed.  The order of commits may differ:
    if a commit is late, an older row of a key becomes visible after a newer one."""
    done = [one for one in history.transactions if one.status == "committed"]
    done.sort(key=lambda one: (one.checkpoint or 0, one.begun))
    rows = [row for one in done for row in one.rows]
    return rows if Counter(rows) == Counter(history.committed) else history.committed


def compare(scenario: Scenario, history: History, batch: BatchResult, expected: Expected | None) -> Comparison:
    """Compare a streaming run and a batch execution of a scenario with the expected rows and with each other."""
    workload = scenario.workload
    streamed, batched = final_result(workload, in_order(history)), final_result(workload, batch.rows)
    why = _unfinished(scenario, history)
    if not is_fixed(workload, scenario.topology):
        depends = Unknown(reason=Reason.NOT_OBSERVABLE, detail="the result depends on the order in which inputs merge")
        return Comparison(name=scenario.name, streaming=depends, batch=depends, equal=depends)
    if expected is None:
        nobody = Unknown(reason=Reason.NOT_OBSERVABLE, detail="PySpark was not asked, or could not be")
        return Comparison(
            name=scenario.name,
            streaming=nobody,
            batch=nobody,
            equal=why or _held_against(batched, streamed, "the batch", "the stream"),
        )
    due = expected_rows(workload, expected)
    return Comparison(
        name=scenario.name,
        streaming=why or _held_against(streamed, due, "the stream", "PySpark"),
        batch=_held_against(batched, due, "the batch", "PySpark"),
        equal=why or _held_against(batched, streamed, "the batch", "the stream"),
    )


def compare_all(subject: Subject, scenarios: Sequence[Scenario], oracle: Oracle) -> list[Comparison]:
    """Execute each scenario in both ways, and ask PySpark about all of them at once."""
    jobs = [question(scenario, str(number)) for number, scenario in enumerate(scenarios)]
    answers = oracle.judge_batch(jobs)
    return [
        compare(scenario, subject.run(scenario), execute(scenario), answer.expected)
        for scenario, answer in zip(scenarios, answers, strict=True)
    ]


def _unfinished(scenario: Scenario, history: History) -> Unknown | None:
    """Why a streaming run cannot be compared: it has no final result, or its rows' order does not determine one."""
    ends = [entry for entry in history.journal if isinstance(entry, JobEnded)]
    if not ends or ends[-1].status != "finished":
        status = ends[-1].status if ends else "still running"
        return Unknown(reason=Reason.ASSUMPTION_BROKEN, detail=f"the streaming job did not finish: it is {status}")
    if history.guarantee != "exactly-once" or history.sink != "transactional":
        return Unknown(reason=Reason.NOT_PROMISED, detail=f"{history.guarantee} into a sink that is {history.sink}")
    if not shows_last(scenario.workload, scenario.topology):
        return Unknown(
            reason=Reason.NOT_OBSERVABLE, detail="a key's updates are distributed: a reader cannot know the last one"
        )
    return None


def _held_against(found: Counter[Row], due: Counter[Row], whose: str, other: str) -> Verdict:
    """Whether two results are equal: `found` are the rows of `whose`, `due` those of `other`."""
    if found == due:
        rows = found.total()
        return Holds(exercised=rows) if rows else Unknown(reason=Reason.NOT_EXERCISED, detail="no row is left")
    lost, extra = due - found, found - due
    differences = [f"{whose} has {number} more ({row_in_words(row)}) than {other}" for row, number in _first(extra)]
    differences += [f"{other} has {number} more ({row_in_words(row)}) than {whose}" for row, number in _first(lost)]
    return Violated(
        difference=difference_of(lost, extra, due),
        message="; ".join(differences),
        records=tuple(row_in_words(row) for row, _ in [*_first(extra), *_first(lost)]),
    )


def _first(rows: Counter[Row]) -> list[tuple[Row, int]]:
    return sorted(rows.items(), key=lambda item: tuple(map(str, item[0])))[:LIMIT]
