"""PySpark's windows, and the quick checker's, held against the definition; planted errors must show."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest

from cutproof.properties.model.workload import AnyOperator
from cutproof.properties.quick_checker.expected import compute
from cutproof.properties.spark.operators import MEANINGS, kind_of
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.tables import OracleJob
from unit.spark.windowed import WINDOWS, drawn_job, expected_of

ERRORS = {
    "tumbling": {"starts": "array(ts - ts % p1)"},
    "sliding": {"starts": "sequence(ts - pmod(ts, p2), ts - pmod(ts, p2) - p1, -p2)"},
    "session": {"near": "ts - before <= p1"},
}
"""Each is a mistake that is easily made: % of a negative time, one window too many, sessions that touch."""


def drawn_jobs(window: AnyOperator, count: int = 40) -> list[OracleJob]:
    return [drawn_job(Random(seed), f"{window} {seed}", window) for seed in range(count)]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_the_quick_checker_expects_what_the_definition_states(window: AnyOperator) -> None:
    for job in drawn_jobs(window, 150):
        expected = expected_of(job)
        drained = frozenset(cut.name for cut in job.cuts if cut.drained)
        cuts = [(cut.name, dict(enumerate(cut.positions))) for cut in job.cuts]
        found = compute(job.workload, cuts, rest=False, drained=drained)
        for cut in job.cuts:
            assert Counter(found.rows[cut.name]) == Counter(expected.rows[cut.name])
            assert Counter(found.states[cut.name]["window"]) == Counter(expected.states[cut.name]["window"])


@pytest.mark.usefixtures("spark")
def test_pyspark_expects_what_the_definition_states() -> None:
    jobs = [job for window in WINDOWS for job in drawn_jobs(window)]
    answers = Oracle().judge_batch(jobs, {job.id: expected_of(job) for job in jobs})
    assert [(answer.id, answer.problem, answer.disagreements) for answer in answers] == [
        (job.id, "", ()) for job in jobs
    ]
    assert sum(len(answer.expected.rows) for answer in answers if answer.expected) > 1_000
    assert sum(len(answer.expected.held) for answer in answers if answer.expected) > 1_000


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("window", [WINDOWS[0], WINDOWS[2], WINDOWS[5]], ids=kind_of)
def test_an_error_in_one_kind_disagrees(window: AnyOperator) -> None:
    kind = kind_of(window)
    jobs = drawn_jobs(window)
    quick = {job.id: expected_of(job) for job in jobs}
    for changes in (ERRORS[kind], {"b": "1L"}):
        wrong = msgspec.structs.replace(MEANINGS[kind], **changes)
        answers = Oracle(meanings={**MEANINGS, kind: wrong}).judge_batch(jobs, quick)
        assert any(answer.disagreements for answer in answers)
        assert not any(answer.problem for answer in answers)
