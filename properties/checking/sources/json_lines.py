"""JSON lines: each line is an object, each key is a column, and a missing key is NULL.

Texts stay texts, even if they look like times.  Whole numbers keep all their digits,
and so do other numbers: if a double would round a number of a column, the column is
read as the numbers' texts.  A column that holds values of unlike types can only be
read as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pjson

from ..arrays import TEXT, null, text, texts_of
from ..errors import CheckInputError, error_text, shown
from ..texts import MOST_DIGITS, SURE_DIGITS, facts_of, is_rounded
from ..types import holds

T = pa.types
CHUNK_BYTES = 64 << 20
"""How much is read at once; the chunk then continues to the end of a line."""
BLOCK_BYTES = 4 << 20
SAMPLE_BYTES = 64 << 10
_MANY_DIGITS = rf"[0-9][0-9.]{{{SURE_DIGITS}}}"
_MORE_DIGITS = rf"[0-9][0-9.]{{{MOST_DIGITS}}}"
NULL = text("null")
HALF = "half a surrogate pair, which no text can hold"


class Lines(NamedTuple):
    """Some lines as a table; `digits`: its columns of numbers that were read as their texts."""

    table: Any
    digits: frozenset[str] = frozenset()


class Wanted(NamedTuple):
    """How columns are read: their names, by the way of reading."""

    as_text: frozenset[str] = frozenset()
    """read as text, whatever their values are"""
    exactly: frozenset[str] = frozenset()
    """numbers in their lists and objects are read as decimals"""
    ignored: frozenset[str] = frozenset()
    """not read at all, if they make the others slow or impossible to read"""


class Digits(str):
    """The text of a number that is not whole."""


def batches(path: Path, wanted: Wanted) -> Iterator[Lines]:
    """All columns, chunk by chunk; raises CheckInputError with file and line."""
    line = 1
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            chunk += file.readline()
            yield from _lines(chunk, path, line, wanted)
            line += chunk.count(b"\n")


def _lines(chunk: bytes, path: Path, line: int, wanted: Wanted) -> Iterator[Lines]:
    if not chunk.strip():
        return
    if line == 1:
        chunk = chunk.removeprefix(b"\xef\xbb\xbf")
    table = _quickly(chunk)
    lines = None
    if table is not None and all(_is_text(table.schema, name) for name in wanted.as_text):
        lines = _with_digits(table, chunk, wanted.exactly)
    yield lines or _slowly(chunk, path, line, wanted)


def _quickly(chunk: bytes) -> Any | None:
    """A chunk read by pyarrow; None if pyarrow misreads some lines, or raises an error that names no line."""
    if not (objects := _objects(chunk)):
        return None  # a line `null` makes pyarrow crash this process
    try:
        str(chunk, "utf-8")  # pyarrow accepts other bytes as text
        table = _read(chunk)
    except (UnicodeDecodeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None  # `_slowly` reads it, or raises an error that names the line
    if table.num_rows != objects:
        return None  # pyarrow accepts several objects on a line, or one on several
    if any(T.is_floating(one.type) and pc.any(pc.is_inf(one)).as_py() for one in table.columns):
        return None  # pyarrow reads 1e400 as infinity
    return table


def _with_digits(table: Any, chunk: bytes, exactly: frozenset[str]) -> Lines | None:
    """The table with texts in place of doubles that may be rounded; None if `_slowly` has to read the chunk."""
    if any(_holds_doubles(field.type) for field in table.schema if field.name in exactly):
        return None
    doubles = [field.name for field in table.schema if _holds_doubles(field.type)]
    if not doubles or not _found(_MANY_DIGITS, pa.scalar(chunk, pa.large_binary())):
        return Lines(table)
    texts = _texts(chunk, doubles, table.num_rows)
    if texts is None:
        return None
    digits = set()
    for name, column in zip(doubles, texts, strict=True):
        if T.is_nested(table.schema.field(name).type):
            if _found(_MORE_DIGITS, column):
                return None
        elif is_rounded(column, table.column(name)):
            digits.add(name)
            table = table.set_column(table.column_names.index(name), name, column)
    return Lines(table, frozenset(digits))


def _texts(chunk: bytes, names: list[str], rows: int) -> list[Any] | None:
    """The raw texts of these columns; None if they cannot be found."""
    fields = [(f"f{place}", msgspec.Raw, msgspec.Raw(b"null")) for place in range(len(names))]
    try:
        line = msgspec.defstruct("Line", fields, rename=dict(zip((f[0] for f in fields), names, strict=True)), gc=False)
        found = msgspec.json.Decoder(line).decode_lines(chunk)
    except (ValueError, msgspec.DecodeError):
        return None  # msgspec cannot look for a name, or cannot read a number
    if len(found) != rows:
        return None
    columns = (texts_of([bytes(getattr(one, field[0])) for one in found]) for field in fields)
    return [pc.if_else(pc.equal(column, NULL), null(TEXT), column) for column in columns]


def _found(pattern: str, values: Any) -> bool:
    found = pc.match_substring_regex(values, pattern)
    return bool((found if isinstance(found, pa.Scalar) else pc.any(found)).as_py())


def _holds_doubles(kind: Any) -> bool:
    return bool(T.is_floating(kind)) or holds(kind, T.is_floating)


def _objects(chunk: bytes) -> int:
    """The number of lines, if each seems to be an object by its first and last character; else 0."""
    body = chunk.strip()
    if not (body.startswith(b"{") and body.endswith(b"}")):
        return 0
    ends = body.count(b"\n")
    if ends == body.count(b"}\n{"):
        return ends + 1
    lines = [line for line in map(bytes.strip, body.split(b"\n")) if line]
    return len(lines) if all(line.startswith(b"{") and line.endswith(b"}") for line in lines) else 0


def _read(chunk: bytes) -> Any:
    """A chunk read by pyarrow, which reads some texts as times: these columns are read again as text."""
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


def _slowly(chunk: bytes, path: Path, first: int, wanted: Wanted) -> Lines:
    """A chunk read line by line: errors name the line, numbers keep their digits, unlike values can be texts."""
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    for number, words in enumerate(chunk.split(b"\n"), first):
        if not words.strip():
            continue
        for name, value in _object(words, path, number).items():
            if name not in columns:
                if not _is_unicode(name):
                    raise CheckInputError(f"{path}: line {number}: the key {_shown(name)} has {HALF}")
                columns[name] = [None] * len(lines)
            columns[name].append(None if name in wanted.ignored else value)
        lines.append(number)
        for values in columns.values():
            if len(values) < len(lines):
                values.append(None)
    arrays, digits = {}, set()
    for name, values in columns.items():
        column = _Column(name, path, lines, exact=name in wanted.exactly)
        if name in wanted.as_text:
            values = [None if value is None else _written(value) for value in values]
        arrays[name], is_digits = column.array(values)
        if is_digits:
            digits.add(name)
    return Lines(pa.table(arrays), frozenset(digits))


def _object(text: bytes, path: Path, number: int) -> Mapping[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise CheckInputError(f"{path}: line {number}: a key stands twice in one object")
        return found

    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=once, parse_float=Digits)
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
    what = "a list" if isinstance(value, list) else _shown(value)
    raise CheckInputError(f"{path}: line {number}: {what}, where JSON lines have an object; one object a line")


def _written(value: object) -> str:
    """A text as it is, any other value as JSON."""
    return str(value) if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(_json, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json(name)}:{_json(one)}" for name, one in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _shown(value: object) -> str:
    """A value for a message, of bounded length: a text as in other messages, any other value as JSON."""
    words = value if type(value) is str else Bare(_json(value))
    return shown(words).encode("utf-8", "backslashreplace").decode()


class Bare(str):
    """A text that is shown without quotes."""

    __repr__ = str.__str__


_WORDS: dict[type, str] = {bool: "true or false", int: "a number", float: "a number", Digits: "a number",
                           str: "a text", list: "a list", dict: "an object"}  # fmt: skip


class _Column:
    """A column's conversion to Arrow; `exact`: numbers in lists and objects are decimals."""

    def __init__(self, name: str, path: Path, lines: list[int], *, exact: bool) -> None:
        self._name, self._path, self._lines, self._exact = name, path, lines, exact

    def array(self, values: list[Any]) -> tuple[Any, bool]:
        """(the values as an array, whether they are the texts of numbers)."""
        word = self._word(values)
        if word == "a number":
            return self._numbers(values)
        if word in ("a list", "an object"):
            try:
                values = self._nested(values)
            except RecursionError:
                raise CheckInputError(f"{self._path}: the column {self._name} is nested too deeply") from None
        try:
            return pa.array(values, TEXT if word == "a text" else None), False
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
            self._unlike(values)

    def _word(self, values: list[Any]) -> str | None:
        """A phrase for the kind that all values have; None if all are NULL.  Raises an error for several kinds."""
        seen: str | None = None
        for place, value in enumerate(values):
            if value is None:
                continue
            word = _WORDS[type(value)]
            if seen is not None and word != seen:
                raise self._error(place, f"{word}, and {seen} before; {self._as_text}")
            seen = word
        return seen

    def _numbers(self, values: list[Any]) -> tuple[Any, bool]:
        if all(value is None or (type(value) is int and -(1 << 63) <= value < 1 << 63) for value in values):
            return pa.array(values, pa.int64()), False
        self._demand_finite(values)
        texts = pa.array([None if value is None else str(value) for value in values], TEXT)
        doubles = pc.cast(texts, pa.float64())
        return (texts, True) if is_rounded(texts, doubles) else (doubles, False)

    def _demand_finite(self, values: list[Any]) -> None:
        for place, value in enumerate(values):
            for one in _numbers_in(value):
                if math.isinf(float(one)):
                    raise CheckInputError(
                        f"{self._at(place)}: {shown(str(one))} is greater than any double; {self._as_text}"
                    )

    def _nested(self, values: list[Any]) -> list[Any]:
        """The values with decimals for numbers, if a double would round one of them or decimals are requested."""
        self._demand_finite(values)
        numbers = list(dict.fromkeys(one for value in values for one in _numbers_in(value)))
        texts = pa.chunked_array([pa.array(map(str, numbers), TEXT)])
        if not numbers or not (self._exact or _found(_MORE_DIGITS, texts)):
            return [_converted(value, float) for value in values]
        kind = facts_of(texts, exact=True).type(exact=True)
        if kind == TEXT:
            place, value = next((n, one) for n, one in enumerate(values) if any(map(_is_long, _numbers_in(one))))
            raise self._error(place, f"{_shown(value)}, of which a double would round a number; {self._as_text}")
        return [_converted(value, Decimal if T.is_decimal(kind) else float) for value in values]

    def _unlike(self, values: list[Any]) -> NoReturn:
        """Raise an error that names the first value that is unlike those before it, found by bisection."""
        good, bad = 0, len(values)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                pa.array(values[:middle])
                good = middle
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
                bad = middle  # the error names the value at which the search ends
        place, value = bad - 1, values[bad - 1]
        if not _is_unicode(value):
            ignore = f"--ignore {self._name} leaves the column out"
            raise self._error(place, f"{_shown(value)}, with {HALF}; {ignore}")
        raise self._error(place, f"{_shown(value)}, which does not fit what is before it; {self._as_text}")

    @property
    def _as_text(self) -> str:
        return f"--cast {self._name}=string reads all of it as text"

    def _at(self, place: int) -> str:
        return f"{self._path}: line {self._lines[place]}"

    def _error(self, place: int, what: str) -> CheckInputError:
        return CheckInputError(f"{self._at(place)}: the column {self._name} holds {what}")


def _numbers_in(value: object) -> Iterator[Digits]:
    if isinstance(value, Digits):
        yield value
    elif isinstance(value, (list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers_in(one)


def _converted(value: Any, to: type) -> Any:
    """A nested value with its numbers converted to this type."""
    if isinstance(value, Digits):
        return to(value)
    if isinstance(value, list):
        return [_converted(one, to) for one in value]
    if isinstance(value, dict):
        return {name: _converted(one, to) for name, one in value.items()}
    return value


def _is_long(number: Digits) -> bool:
    return _found(_MORE_DIGITS, pa.scalar(str(number), TEXT))


def _is_unicode(value: object) -> bool:
    try:
        _written(value).encode()
    except UnicodeEncodeError:  # it has a lone surrogate
        return False
    return True
