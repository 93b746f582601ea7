"""The subjects that `--subject` and `--pipeline` can name: whether each can run here, how fast, and what is judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ...properties.model.history import WITNESSES
from ..runtime.exit_codes import CutproofError, one_line
from ..subject.names import BUILT, subject_called
from ..subject.port import Subject, check, closing
from ..user_pipelines import library
from ..user_pipelines.run import witnesses_of
from ..user_pipelines.subject import PipelineSubject
from .judgeable import judged_of

FORMAT = "cutproof-subjects/1"
MACHINE = "two cores, CPython 3.11, nothing else running"
PER_MINUTE: dict[str, int] = {
    "simulated": 2_400,
    "processes": 48,
    "bytewax-count": 80,
    "deltalake-appends": 22,
    "deltalake-transactions": 22,
    "deltalake-two-writers": 18,
    "deltalake-zombie": 12,
    "flink-count": 6,
    "flink-iceberg": 3,
    "flink-iceberg-bounded": 5,
    "flink-iceberg-paused": 2,
    "flink-windows": 5,
    "iceberg-spark": 10,
    "kafka-no-transaction": 11,
    "kafka-offsets-outside": 11,
    "kafka-transactions": 11,
    "pyiceberg-appends": 14,
    "pyiceberg-transactions": 14,
    "pyiceberg-two-writers": 10,
    "pyiceberg-zombie": 10,
    "pypaimon-appends": 5,
    "pypaimon-transactions": 5,
    "pypaimon-two-writers": 4,
    "pypaimon-zombie": 4,
    "spark-count": 6,
    "spark-dedup": 6,
    "spark-delta": 4,
    "spark-file": 7,
    "spark-foreachbatch-append": 8,
    "spark-foreachbatch-idempotent": 8,
    "spark-windows": 6,
}
"""about how many scenarios `cutproof verify` runs and judges in a minute, measured on `MACHINE`, if all hold: to shrink
a counterexample in real time takes up to two minutes"""
LIMITED_BY: dict[str, str] = {
    "simulated": "PySpark, and the scenarios' virtual time",
    "processes": "the real time of checkpoints, timeouts and restarts",
    "bytewax-count": "the start of Python, and the flow's own slowness",
    "deltalake": "the worker's own slowness",
    "deltalake-zombie": "the time for which a worker is paused",
    "flink": "the start of four Javas, and the wait for checkpoints",
    "iceberg": "a Java for each start of the driver",
    "kafka": "the start of the broker",
    "pyiceberg-zombie": "the time for which a worker is paused",
    "pyiceberg": "the start of Python with pyiceberg, and the worker's own slowness",
    "pypaimon": "the start of Python with pypaimon, twice",
    "pypaimon-two-writers": "the start of Python with pypaimon, three times",
    "pypaimon-zombie": "the time for which a worker is paused, and the start of Python with pypaimon",
    "spark": "a Java for each start of the driver",
}
"""by a subject's name, or by its beginning: what takes most of the time"""


def limit_of(name: str) -> str:
    """What limits the speed of a subject."""
    return LIMITED_BY.get(name) or LIMITED_BY[name.partition("-")[0]]


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the list."""

    name: str
    kind: str
    """engine, pipeline or yours"""
    can_run: bool
    missing: str = ""
    """why it cannot run here"""
    per_minute: int | None = None
    """None where nobody has measured it"""
    judged: tuple[str, ...] = ()


def subjects(own: Iterable[str] = ()) -> list[Listed]:
    """The engines and pipelines of the package, and the user's own subjects with these names."""
    return [*map(_engine, BUILT), *_pipelines(), *(_own(name) for name in own if name not in BUILT)]


def _engine(name: str) -> Listed:
    with closing(subject_called(name)) as subject:
        return _listed(name, "engine", subject, WITNESSES, _problem(subject))


def _pipelines() -> Iterator[Listed]:
    for one in library.listed():
        per_minute = PER_MINUTE.get(one.name)
        try:
            subject = PipelineSubject(library.SHIPPED[one.name].path)
        except CutproofError as error:
            missing = one_line(error)
            yield Listed(name=one.name, kind="pipeline", can_run=False, missing=missing, per_minute=per_minute)
            continue
        try:
            library.path_of(one.name)
            problem = _problem(subject)
        except CutproofError as error:
            problem = one_line(error)
        yield _listed(one.name, "pipeline", subject, witnesses_of(subject.pipeline.file), problem)


def _own(name: str) -> Listed:
    try:
        with closing(subject_called(name)) as subject:
            return _listed(name, "yours", subject, WITNESSES, _problem(subject))
    except CutproofError as error:
        return Listed(name=name, kind="yours", can_run=False, missing=one_line(error))


def _listed(name: str, kind: str, subject: Subject, witnesses: Iterable[str], problem: str) -> Listed:
    can = subject.capabilities
    return Listed(
        name=name,
        kind=kind,
        can_run=not problem,
        missing=problem,
        per_minute=PER_MINUTE.get(name),
        judged=judged_of(witnesses, sorted(can.guarantees), sorted(can.sinks)),
    )


def _problem(subject: Subject) -> str:
    """What a subject lacks to run here, in one line; empty if it lacks nothing."""
    try:
        check(subject)
    except CutproofError as error:
        return one_line(error)
    return ""
