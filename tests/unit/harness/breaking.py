"""Jobs that break once, in whichever process is the first to come there; where that was noted, the scenario's name
says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from cutproof.harness.reference_engine.subjects import process_job
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.decisions.tasks import Copying
from cutproof.reference_impl.core.job.topology import Built, JobGraph
from cutproof.reference_impl.driver.machines import Job

IN_A_MACHINE = f"unit.harness.{Path(__file__).stem}:in_a_machine"
IN_A_PROCESS = f"unit.harness.{Path(__file__).stem}:in_a_process"


def in_a_machine(described: bytes) -> Job:
    """A decision of an operator's machine raises, as it copies its state for a snapshot."""
    job = process_job.make_job(described)
    return msgspec.structs.replace(job, parts=Parts(copying=Breaking(_note(described))))


def in_a_process(described: bytes) -> Job:
    """What makes an operator ends its process."""
    job = process_job.make_job(described)
    note = _note(described)
    operators = [
        msgspec.structs.replace(spec, build=_once(note, spec.build)) if spec.build is not None else spec
        for spec in job.graph.operators
    ]
    return msgspec.structs.replace(job, graph=JobGraph(tuple(operators), job.graph.key_groups))


class Breaking(Copying):
    def __init__(self, note: Path) -> None:
        self._note = note

    def copy(self, heap: dict[Any, Any]) -> dict[Any, Any]:
        break_once(self._note)
        return super().copy(heap)


class Ended(BaseException):
    """What no engine takes for an error of its own, so that the process ends."""


def _once(note: Path, build: Callable[[], Built]) -> Callable[[], Built]:
    def made() -> Built:
        break_once(note, Ended)
        return build()

    return made


def _note(described: bytes) -> Path:
    return Path(msgspec.json.decode(described, type=process_job.Described).scenario.name)


def break_once(note: Path, error: type[BaseException] = RuntimeError) -> None:
    """Raise, unless somebody has."""
    try:
        note.touch(exist_ok=False)
    except FileExistsError:
        return
    raise error("broken for a test")
