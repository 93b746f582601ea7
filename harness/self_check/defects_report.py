"""The report of `defects run` on its hunts, and PySpark's check of what they caught."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..search.oracle import Examined, Oracle
from .defects import DefectRun

FORMAT = "cutproof-defects/1"
_LEFT_OUT = ("scenario", "questions", "trace")
"""fields of a `DefectRun` that are not in the JSON"""
_IF_ANY = ("rate", "error", "refused", "refusal")


class DefectsReport(msgspec.Struct, kw_only=True):
    """What `defects run --json` prints."""

    format: str = FORMAT
    defects: list[dict[str, object]] = []
    caught: int = 0
    missed: int = 0
    broken: int = 0
    """how many of the missed defects had a hunt that raised an error"""
    oracle: dict[str, object] | None = None
    """PySpark's check of the runs that caught a defect, and of those without it; None if it was not asked"""
    interrupted: bool = False


def confirmed(runs: Sequence[DefectRun], oracle: Oracle) -> tuple[int, Examined]:
    """PySpark's check of all runs that caught a defect, in one query: the number of runs, and its answer.

    The position in a disagreement is that of the defect among the runs.  Raises HarnessFailed if PySpark cannot be
    asked.
    """
    asked = [(number, question) for number, run in enumerate(runs) for question in run.questions]
    if not asked:
        return 0, Examined()
    examined = oracle.examine([question for _, question in asked])
    disagreements = tuple((asked[position][0], words) for position, words in examined.disagreements)
    return len(asked), msgspec.structs.replace(examined, disagreements=disagreements)


def report_of(
    runs: Sequence[DefectRun], *, interrupted: bool = False, oracle: tuple[int, Examined] | None = None
) -> DefectsReport:
    """The report on the runs, in the order of their ids."""
    rows = [
        {
            name: getattr(run, name)
            for name in run.__struct_fields__
            if name not in _LEFT_OUT and (name not in _IF_ANY or getattr(run, name))
        }
        for run in sorted(runs, key=lambda run: run.id)
    ]
    count = sum(run.caught for run in runs)
    return DefectsReport(
        defects=rows,
        caught=count,
        missed=len(runs) - count,
        broken=sum(bool(run.error) for run in runs),
        oracle=_oracle(*oracle) if oracle is not None else None,
        interrupted=interrupted,
    )


def _oracle(asked: int, examined: Examined) -> dict[str, object]:
    return {
        "engine": examined.engine,
        "asked": asked,
        "workloads": examined.workloads,
        "expected_rows": examined.expected_rows,
        "queries": examined.queries,
        "disagreements": len(examined.disagreements),
    }
