"""JSON lines: an object a line, each key a column; what a line leaves out is NULL.

Texts stay texts, also those that look like times.  Whole numbers keep all their
digits.  A column that holds values of unlike types can be read as text alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pjson

from .arrays import TEXT
from .errors import CheckInputError, error_text, shown

CHUNK_BYTES = 64 << 20
"""So much is read at once, up to the end of a line."""
BLOCK_BYTES = 4 << 20
SAMPLE_BYTES = 64 << 10
_LONG_INTEGER = r"[^0-9.]-?[0-9]{16,}[^0-9.eE]"


def batches(path: Path, as_text: frozenset[str] = frozenset()) -> Iterator[Any]:
    """All columns, those of `as_text` as text whatever they hold; raises CheckInputError with file and line."""
    line = 1
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            chunk += file.readline()
            yield from _tables(chunk, path, line, as_text)
            line += chunk.count(b"\n")


def _tables(chunk: bytes, path: Path, line: int, as_text: frozenset[str]) -> Iterator[Any]:
    if not chunk.strip():
        return
    if line == 1:
        chunk = chunk.removeprefix(b"\xef\xbb\xbf")
    try:
        str(chunk, "utf-8")  # pyarrow takes other bytes for text
        table = _read(chunk)
    except (UnicodeDecodeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        table = None  # `_slowly` reads it, or raises an error that names the line
    if table is not None and not _one_a_line(chunk, table.num_rows):
        table = None  # pyarrow takes several objects on a line, and one on several lines
    if table is not None and any(
        pa.types.is_floating(one.type) and pc.any(pc.is_inf(one)).as_py() for one in table.columns
    ):
        table = None  # pyarrow takes 1e400 for infinity
    if table is None or any(not _is_text(table.schema, name) for name in as_text) or _loses_digits(table, chunk):
        table = _slowly(chunk, path, line, as_text)
    yield table


def _one_a_line(chunk: bytes, objects: int) -> bool:
    """Whether so many objects stand on a line each: no object holds the end of one line and the start of the next."""
    body = chunk.strip()
    if body.count(b"\n") == body.count(b"}\n{") == objects - 1:
        return True
    lines = [line for line in map(bytes.strip, body.split(b"\n")) if line]
    return len(lines) == objects and all(line.startswith(b"{") and line.endswith(b"}") for line in lines)


def _read(chunk: bytes) -> Any:
    """By pyarrow, which takes some texts for times: those are read again as what they are."""
    newline = chunk.rfind(b"\n", 0, SAMPLE_BYTES)
    sample = chunk[: newline + 1] if newline >= 0 else chunk
    columns = {field.name: field for field in _without_times(_parsed(sample, None).schema)}
    table = _parsed(chunk, pa.schema(columns.values()))
    if _holds_times(table.schema):
        table = _parsed(chunk, _without_times(table.schema))
    return table


def _parsed(data: bytes, schema: Any) -> Any:
    times = [field for field in schema if field.type == TEXT or pa.types.is_nested(field.type)] if schema else None
    return pjson.read_json(
        pa.BufferReader(data),
        read_options=pjson.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=pjson.ParseOptions(explicit_schema=pa.schema(times) if times else None),
    )


def _without_times(schema: Any) -> Any:
    return pa.schema([pa.field(field.name, _as_text(field.type)) for field in schema])


def _as_text(kind: Any) -> Any:
    if pa.types.is_timestamp(kind) or pa.types.is_string(kind):
        return TEXT
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _as_text(field.type)) for field in kind])
    return kind


def _holds_times(schema: Any) -> bool:
    return "timestamp" in str(schema)


def _is_text(schema: Any, name: str) -> bool:
    return name not in schema.names or schema.field(name).type == TEXT


def _loses_digits(table: Any, chunk: bytes) -> bool:
    """Whether a whole number of many digits was made a float because others of its column are."""
    if "double" not in str(table.schema):
        return False
    return bool(pc.match_substring_regex(pa.scalar(chunk, pa.large_binary()), _LONG_INTEGER).as_py())


def _slowly(chunk: bytes, path: Path, first: int, as_text: frozenset[str]) -> Any:
    """Line by line: what is wrong is found, long numbers stay whole, columns of unlike values can be texts."""
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    for number, text in enumerate(chunk.split(b"\n"), first):
        if not text.strip():
            continue
        for name, value in _object(text, path, number).items():
            columns.setdefault(name, [None] * len(lines)).append(value)
        lines.append(number)
        for values in columns.values():
            if len(values) < len(lines):
                values.append(None)
    arrays = {}
    for name, values in columns.items():
        kept = [None if value is None else _written(value) for value in values] if name in as_text else values
        arrays[name] = _array(kept, name, path, lines)
    return pa.table(arrays)


def _object(text: bytes, path: Path, number: int) -> Mapping[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise CheckInputError(f"{path}: line {number}: a key stands twice in one object")
        return found

    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=once, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise CheckInputError(f"{path}: line {number}: byte 0x{text[error.start]:02x} is no UTF-8") from None
    except json.JSONDecodeError as error:
        raise CheckInputError(f"{path}: line {number}: no JSON: {error.msg} at character {error.colno}") from None
    except RecursionError:
        raise CheckInputError(f"{path}: line {number}: nested too deeply") from None
    except ValueError as error:
        raise CheckInputError(f"{path}: line {number}: {error_text(error, 80)}") from None
    if isinstance(value, dict):
        return value
    what = "a list" if isinstance(value, list) else shown(value)
    raise CheckInputError(f"{path}: line {number}: {what}, where JSON lines have an object; one object a line")


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{shown(text)} is greater than any double")
    return value


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_WORDS: dict[type, str] = {bool: "true or false", int: "a number", float: "a number", str: "a text",
                           list: "a list", dict: "an object"}  # fmt: skip


def _array(values: list[Any], name: str, path: Path, lines: list[int]) -> Any:
    seen: str | None = None
    wide = False
    for place, value in enumerate(values):
        if value is None:
            continue
        word = _WORDS[type(value)]
        if seen is not None and word != seen:
            raise CheckInputError(
                f"{path}: line {lines[place]}: the column {name} holds {word}, and {seen} before;"
                f" --cast {name}=string reads all of it as text"
            )
        seen = word
        wide = wide or (type(value) is int and not -(1 << 63) <= value < 1 << 63)
    if seen == "a number":
        return _numbers(values, name, path, lines, wide=wide)
    try:
        return pa.array(values, TEXT if seen == "a text" else None)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        _unlike(values, name, path, lines)


def _numbers(values: list[Any], name: str, path: Path, lines: list[int], *, wide: bool) -> Any:
    floats = any(type(value) is float for value in values)
    if floats:
        for place, value in enumerate(values):
            if type(value) is int and int(float(value)) != value:
                raise CheckInputError(
                    f"{path}: line {lines[place]}: the column {name} holds {shown(value)}, which no float is, beside"
                    f" floats; --cast {name}=string compares texts"
                )
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    try:
        return pa.array(values, pa.decimal128(38, 0) if wide else pa.int64())
    except (pa.ArrowInvalid, OverflowError):
        _unlike(values, name, path, lines)


def _unlike(values: list[Any], name: str, path: Path, lines: list[int]) -> NoReturn:
    """A value that a column of the values before it cannot hold, found by halving."""
    good, bad = 0, len(values)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            pa.array(values[:middle])
            good = middle
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
            bad = middle  # the search goes on below it, and the value that is found is named
    raise CheckInputError(
        f"{path}: line {lines[bad - 1]}: the column {name} holds {shown(values[bad - 1])}, which does not fit what is"
        f" before it; --cast {name}=string reads all of it as text"
    )
