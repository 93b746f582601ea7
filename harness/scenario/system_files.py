"""Files of systems: `cutproof-graph/1`, read with a schema and checked by meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..reference_engine.graphs.system import System, faults_of
from .bounds import SYSTEM_BOUNDS, system_problems, with_bounds
from .files import SCENARIO_LIMIT_BYTES, read_as, schema_of, write_whole
from .reading import FileError, bytes_of, json_of

FORMAT = "cutproof-graph/1"
LIMIT_BYTES = 1024 * 1024


class SystemFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A system with its name; nothing of it is executed."""

    format: str = FORMAT
    name: str
    system: System


class _Header(msgspec.Struct):
    format: str = ""


_files = msgspec.json.Decoder(SystemFile)


def is_system(path: Path) -> bool:
    """Whether a file's format is that of a system; False also for a file that cannot be read, whose error is
    reported elsewhere."""
    try:
        data = json_of(bytes_of(path, SCENARIO_LIMIT_BYTES), str(path))
        return msgspec.json.decode(data, type=_Header).format.startswith("cutproof-graph/")
    except (FileError, msgspec.DecodeError, RecursionError):
        return False


def read_system(path: Path) -> SystemFile:
    """The system in a file; raises FileError in one line."""
    found = read_as(path, _files, FORMAT, LIMIT_BYTES)
    for find in (system_problems, faults_of):
        for problem in find(found.system):
            raise FileError(f"{path}: {problem}")
    return found


def system_schema() -> dict[str, Any]:
    """The JSON Schema of a system's file."""
    return with_bounds(schema_of(SystemFile, FORMAT), SYSTEM_BOUNDS)


def write_system(path: Path, system: SystemFile) -> None:
    write_whole(path, text_of(system).encode())


def text_of(system: SystemFile) -> str:
    """The text of a system's file."""
    return msgspec.json.format(msgspec.json.encode(system, order="deterministic"), indent=1).decode() + "\n"
