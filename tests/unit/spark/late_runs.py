"""Runs of the engine whose windows follow what was really applied, and what PySpark is asked about them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from msgspec.structs import replace

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.workload import offset_of, split_of, window_of
from cutproof.properties.semantics.event_time import is_late_free
from cutproof.properties.spark.operators import kind_of
from cutproof.properties.spark.questions import Question, decode, encode, questions_of

EACH = 5
"""runs of each kind of window, in each guarantee"""


def _drawn(guarantee: str) -> Iterator[Result]:
    """Those in which some records came behind the watermark."""
    draw = scenario_of(Drawing(max_records=60, templates=("S11",)))
    wanted = dict.fromkeys(("tumbling", "sliding", "session"), EACH)
    for index in range(1_000):
        drawn = draw(12, index)
        window = window_of(drawn.workload)
        kind = kind_of(window.operator) if window is not None else ""
        if not wanted.get(kind) or is_late_free(drawn.workload, window.name if window else ""):
            continue
        result = run(
            SimulatedSubject(), replace(drawn, engine=replace(drawn.engine, guarantee=guarantee, alignment="aligned"))
        )
        if late_records(_by_applies(result, kind)) >= 3:
            wanted[kind] -= 1
            yield result
        if not any(wanted.values()):
            return


def late_records(questions: list[Question]) -> int:
    """How many applications found a watermark beyond the record's own time."""
    found = 0
    for one in questions:
        times = one.job.workload.times()
        for node in one.job.advances:
            for taken in one.job.applies[node]:
                time = times[split_of(taken.origin)][offset_of(taken.origin)]
                found += taken.lineage == one.job.tip and time <= taken.watermark
    return found


def _by_applies(result: Result, name: str) -> list[Question]:
    questions = decode(encode(questions_of(result.case, f"{name} {result.scenario.seed}")))
    return [one for one in questions if one.job.applies and any(one.quick.rows.values())]


@cache
def results(guarantee: str = "exactly-once") -> tuple[Result, ...]:
    return tuple(_drawn(guarantee))


def asked(guarantee: str = "exactly-once", kind: str = "") -> list[Question]:
    """The questions about the runs of one kind of window, or of all."""
    found = []
    for result in results(guarantee):
        window = window_of(result.scenario.workload)
        assert window is not None
        if kind in ("", kind_of(window.operator)):
            found.extend(_by_applies(result, f"{guarantee} {kind_of(window.operator)}"))
    return found
