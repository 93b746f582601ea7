"""Windows whose records may be late: PySpark, given the records and watermarks of a run, agrees with the quick
checker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pytest

from cutproof.properties.model.workload import Session
from cutproof.properties.semantics.windows import WindowMachine
from cutproof.properties.spark.operators import MEANINGS
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.questions import Question
from cutproof.properties.spark.session_windows import FIRED, HELD, LATE, fold
from cutproof.properties.spark.tables import OracleAnswer
from unit.spark.late_runs import asked, late_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("tumbling", "sliding", "session")


def answers(questions: list[Question], oracle: Oracle | None = None) -> list[OracleAnswer]:
    quick = {one.job.id: one.quick for one in questions}
    return (oracle or Oracle()).judge_batch([one.job for one in questions], quick)


Answered = tuple[list[Question], list[OracleAnswer]]


@pytest.fixture(scope="module")
def spark_answers(spark: SparkSession) -> dict[str, Answered]:
    """In one batch, PySpark's word on each question: as it is, without the last advances, without the watermarks."""
    plain = asked() + asked("at-least-once")
    variants = {
        "plain": plain,
        "deaf": [_without_advances(one) for one in asked()],
        "forgetful": [_without_watermarks(one) for one in asked()],
    }
    found = {one.id: one for one in answers([one for questions in variants.values() for one in questions])}
    return {name: (questions, [found[one.job.id] for one in questions]) for name, questions in variants.items()}


def kinds_of(found: list[OracleAnswer]) -> dict[str, list[OracleAnswer]]:
    return {kind: [one for one in found if kind in one.id] for kind in KINDS}


def test_both_reckonings_agree(spark_answers: dict[str, Answered]) -> None:
    questions, found = spark_answers["plain"]
    assert [(one.id, one.problem, one.disagreements) for one in found] == [(one.job.id, "", ()) for one in questions]
    for kind in KINDS:
        mine = [one for one in questions if kind in one.job.id]
        assert late_records(mine) > 10
        assert sum(len(rows) for one in mine for rows in one.quick.rows.values()) > 50
    assert sum(len(one.expected.held) for one in found if one.expected) > 100


def test_a_watermark_that_one_judge_misses_is_a_disagreement(spark_answers: dict[str, Answered]) -> None:
    """Kind by kind: without the last advances windows stay open; received too late, late records are in time."""
    for mine in kinds_of(spark_answers["deaf"][1]).values():
        assert sum(bool(one.disagreements) for one in mine) > len(mine) // 2
    for mine in kinds_of(spark_answers["forgetful"][1]).values():
        assert any(one.disagreements for one in mine)


@pytest.mark.usefixtures("spark")
def test_a_window_that_is_kept_too_long_disagrees() -> None:
    """Kind by kind it is still held when it was to be gone; and it takes records that were to be dropped."""
    wrong = {kind: msgspec.structs.replace(MEANINGS[kind], kept="lateness + 1000") for kind in KINDS}
    found = answers(asked(), Oracle(meanings={**MEANINGS, **wrong}))
    assert not any(one.problem for one in found)
    for mine in kinds_of(found).values():
        differing = [one for answer in mine for one in answer.disagreements]
        assert any(one.node for one in differing)
    assert any(not one.node for answer in found for one in answer.disagreements)


def _without_advances(question: Question) -> Question:
    fewer = {node: advances[: len(advances) // 2] for node, advances in question.job.advances.items()}
    job = msgspec.structs.replace(question.job, advances=fewer, id=f"{question.job.id}, deaf")
    return msgspec.structs.replace(question, job=job)


def _without_watermarks(question: Question) -> Question:
    (node,) = question.job.advances
    applies = dict(question.job.applies)
    applies[node] = tuple(one._replace(watermark=-(1 << 62)) for one in applies[node])
    job = msgspec.structs.replace(question.job, applies=applies, id=f"{question.job.id}, forgetful")
    return msgspec.structs.replace(question, job=job)


def _merges_touching(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The easily made mistake: sessions whose gap is just reached are one."""
    for batch in batches:
        reach = pa.array([length + 1 for length in batch["reach"].to_pylist()], pa.int64())
        yield batch.set_column(batch.schema.get_field_index("reach"), "reach", reach)


# -- the fold of sessions, without Spark -------------------------------------------------------------------------


def test_the_fold_takes_late_records_as_the_quick_checker_does() -> None:
    spark_answers = {FIRED: 0, LATE: 0, HELD: 0}
    for seed in range(60):
        random = Random(seed)
        gap, lateness = random.choice((3, 6)), random.choice((0, 0, 8))
        records, emitted, held = _worked_through(random, Session(gap=gap, lateness=lateness, of="sum"), gap, lateness)
        rows = [row for batch in fold(_batches(records, random)) for row in batch.to_pylist()]
        last = records[-1]["final"]
        mine = sorted(
            _shown(row) for row in rows if row["sort"] == LATE or (row["sort"] == FIRED and row["last"] <= last)
        )
        assert mine == sorted(emitted)
        kept = [row for row in rows if row["sort"] == HELD and row["until"] is None and row["last"] + lateness > last]
        assert sorted(_shown(row) for row in kept) == sorted(held)
        for row in rows:
            spark_answers[row["sort"]] += 1
    assert min(spark_answers.values()) > 50


def test_a_fold_that_merges_what_touches_is_seen() -> None:
    random = Random(1)
    records, _, _ = _worked_through(random, Session(gap=3), 3, 0)
    right, wrong = (
        [row for batch in fold(batches) for row in batch.to_pylist()]
        for batches in (_batches(records, Random(2)), _merges_touching(_batches(records, Random(2))))
    )
    assert {_shown(row) for row in right} != {_shown(row) for row in wrong}


def _shown(row: dict[str, int]) -> tuple[int, int, int]:
    return row["start"], row["sum_total"], row["sum_tags"]


def _worked_through(
    random: Random, window: Session, gap: int, lateness: int
) -> tuple[list[dict[str, int]], list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """Records of one key with the watermark before each, what the quick checker emits, and holds at the end."""
    machine = WindowMachine(window)
    records: list[dict[str, int]] = []
    emitted: list[tuple[int, int, int]] = []
    base = 0
    for place in range(random.randrange(5, 40)):
        base += random.randrange(4)
        if random.random() < 0.4:
            emitted += [(row[3], row[1] or 0, row[2]) for _, row in machine.advance(base - random.randrange(6))]
        time = base - random.randrange(12)
        value, tag = random.randrange(-9, 9), random.getrandbits(40)
        whose = {"node": 1, "lineage": 1, "tip": True, "lane": 0, "key": 7, "epoch": place // 5, "attempt": 1}
        records.append(
            {**whose, "place": place, "ts": time, "value": value, "tag": tag, "wm": machine.time,
             "origin": place << 8, "reach": gap, "kept": lateness}
        )  # fmt: skip
        emitted += [(row[3], row[1] or 0, row[2]) for _, row in machine.take_at((7, value, tag, 0), time, place << 8)]
    emitted += [(row[3], row[1] or 0, row[2]) for _, row in machine.advance(base - 5)]
    for record in records:
        record["final"] = machine.time
    return records, emitted, [(start, value or 0, tags) for start, _, value, tags in machine.entries()]


def _batches(records: list[dict[str, int]], random: Random) -> Iterator[pa.RecordBatch]:
    """In pieces: a key's records need not come in one batch."""
    cut = random.randrange(len(records))
    for part in (records[:cut], records[cut:]):
        if part:
            yield pa.RecordBatch.from_pylist(part)
