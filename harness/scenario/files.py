"""Scenario and history files: read with a schema, checked by meaning, written whole.

A scenario file may come from anybody.  Nothing of it is executed or used as a path.  Whatever is wrong with it is
reported in one line (`FileError`).
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ...properties.model.history import FORMAT as HISTORY_FORMAT
from ...properties.model.history import History
from ..subject.port import ScenarioRefused
from .bounds import BOUNDS, with_bounds
from .checks import problems_of
from .model import FORMAT, Scenario
from .reading import FileError, bytes_of, json_of

SCENARIO_LIMIT_BYTES = 16 * 1024 * 1024
HISTORY_LIMIT_BYTES = 128 * 1024 * 1024

MIGRATIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""By format: the function that rewrites a file of it in the next newer format.

Chains are followed; version 1 is the first, so there is none yet.
"""

T = TypeVar("T")

_encoder = msgspec.json.Encoder(order="deterministic")
_scenarios = msgspec.json.Decoder(Scenario)
_histories = msgspec.json.Decoder(History)


class _Header(msgspec.Struct):
    format: str = ""


def encode_scenario(scenario: Scenario) -> bytes:
    """The canonical encoding: one line of JSON, the same for equal scenarios."""
    return _encoder.encode(scenario)


def encoded(value: object) -> bytes:
    """The canonical encoding of any value: some entries of a history are keyed by numbers, and the encoder sorts
    only texts."""
    return msgspec.json.encode(msgspec.to_builtins(value, str_keys=True, order="deterministic"))


def digest(value: object) -> str:
    """sha256 of the canonical encoding, in hexadecimal."""
    return hashlib.sha256(encoded(value)).hexdigest()


def decode_scenario(data: bytes, *, where: str = "scenario") -> Scenario:
    """The scenario in the bytes; errors name `where` as its origin."""
    data = _migrated(_guarded(data, where, SCENARIO_LIMIT_BYTES), where)
    try:
        scenario = _scenarios.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FileError(f"{where}: {error}") from None
    for problem in problems_of(scenario):
        raise FileError(f"{where}: {problem}")
    return scenario


def read_scenario(path: Path | str) -> Scenario:
    return decode_scenario(bytes_of(Path(path), SCENARIO_LIMIT_BYTES), where=str(path))


@contextlib.contextmanager
def as_written(path: Path) -> Iterator[None]:
    """A context for running the scenario of a user's file: if the engine refuses it, the error names the file."""
    try:
        yield
    except ScenarioRefused as error:
        raise FileError(f"{path}: {error}") from error


def text_of(scenario: Scenario) -> str:
    """The text of its file, which people read too."""
    return msgspec.json.format(encode_scenario(scenario), indent=1).decode() + "\n"


def write_scenario(path: Path | str, scenario: Scenario, *, durable: bool = False) -> None:
    """Write it whole or not at all."""
    write_whole(Path(path), text_of(scenario).encode(), durable=durable)


def read_history(path: Path | str) -> History:
    """A recorded history, of this machine or another."""
    return read_as(Path(path), _histories, HISTORY_FORMAT, HISTORY_LIMIT_BYTES)


def read_as(path: Path, decoder: msgspec.json.Decoder[T], expected: str, limit: int) -> T:
    """The value in a file whose format has only one version; raises FileError."""
    data = _guarded(bytes_of(path, limit), str(path), limit)
    found = _format_of(data, str(path))
    if found != expected:
        raise FileError(f"{path}: its format is {found!r}; this version reads {expected}")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FileError(f"{path}: {error}") from None


def write_history(path: Path | str, history: History, *, durable: bool = False) -> None:
    write_whole(Path(path), text_of_history(history), durable=durable)


def text_of_history(history: History) -> bytes:
    """A history as its file has it; the same one has the same text."""
    return encoded(_spelt_out(history))


def _spelt_out(history: History) -> dict[str, Any]:
    """A history with its empty lists, where a reader could think that they were left out."""
    raw: dict[str, Any] = msgspec.to_builtins(history, str_keys=True, order="deterministic")
    recovered_locally = {entry["attempt"] for entry in raw.get("journal", ()) if entry.get("in_place")}
    for channel in raw.get("channels", ()):
        if channel["attempt"] in recovered_locally:
            channel.setdefault("repeated", [])
        if recovered_locally:  # a later attempt may have all that was sent
            channel.setdefault("sent", [])
    if any("assigned" in run for run in raw.get("runs", ())):
        for run in raw["runs"]:
            run.setdefault("assigned", [])
    return raw


def write_whole(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file in one step: a reader sees the old file or the new one, never half of one.

    `durable`: it is on the disk before this returns, so that it also survives the end of the machine.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(handle)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the names of a folder's files on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file."""
    return with_bounds(schema_of(Scenario, FORMAT), BOUNDS)


def schema_of(kind: type[msgspec.Struct], title: str) -> dict[str, Any]:
    """The JSON Schema of the files of a format."""
    schema = _with_clean_descriptions(msgspec.json.schema(kind))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def _with_clean_descriptions(schema: Any) -> Any:
    """Without the indentation of the docstrings, which msgspec 0.23 takes away and older ones keep."""
    if isinstance(schema, list):
        return [_with_clean_descriptions(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: inspect.cleandoc(one) if key == "description" and isinstance(one, str) else _with_clean_descriptions(one)
        for key, one in schema.items()
    }


def write_scenario_schema(path: Path) -> None:
    write_whole(path, msgspec.json.format(_encoder.encode(scenario_schema()), indent=2) + b"\n")


def _guarded(data: bytes, where: str, limit: int) -> bytes:
    if len(data) > limit:
        raise FileError(f"{where}: {len(data):,} bytes; the limit is {limit:,}")
    return json_of(data, where)


def _format_of(data: bytes, where: str) -> str:
    try:
        return msgspec.json.decode(data, type=_Header).format
    except msgspec.ValidationError as error:
        raise FileError(f"{where}: {error}") from None
    except msgspec.DecodeError as error:
        # msgspec has no type of its own for this; only what a person reads depends on it.
        word = "is cut off" if "truncated" in str(error) else f"is not JSON ({error})"
        raise FileError(f"{where}: the file {word}") from None
    except RecursionError:
        raise FileError(f"{where}: nested too deeply") from None


def _migrated(data: bytes, where: str) -> bytes:
    """The bytes in today's format."""
    found = _format_of(data, where)
    while found != FORMAT:
        migrate = MIGRATIONS.get(found)
        if migrate is None:
            raise FileError(f"{where}: its format is {found!r}; this version reads {FORMAT}")
        data = msgspec.json.encode(migrate(msgspec.json.decode(data)))
        newer = _format_of(data, where)
        if newer == found:
            raise FileError(f"{where}: its format {found!r} cannot be converted to {FORMAT}")
        found = newer
    return data
