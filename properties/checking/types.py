"""The conversion table: the type in which the columns of two tables are compared.

First each type is made plain (`plain`): without encodings and widths, which do not
change the values.  Then `together` finds a common type of two columns, by the rules
that docs/check.md lists.  A conversion that is not listed is refused; only `--cast`
makes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from .arrays import TEXT
from .errors import CheckInputError
from .texts import DIGITS, Facts

T = pa.types


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table; `texts` says how the texts of a text column are read.

    `bare`: from CSV and names of folders, which have no types.  `json`: from JSON, which has no types
    for times and decimals.  `declared`: the writer declared the column as text.  `number`: JSON's
    numbers, read as their texts; their type is double until more is known.
    """

    type: Any
    texts: str = "declared"
    facts: Facts | None = None

    @property
    def is_text(self) -> bool:
        return bool(self.type == TEXT)

    @property
    def is_number(self) -> bool:
        """Whether it has JSON's numbers with a fraction, an exponent or more digits than 64-bit integers have."""
        return self.texts == "number"

    @property
    def called(self) -> str:
        return "number" if self.is_number else named(self.type)


TOO_WIDE = f"neither doubles nor decimals of {DIGITS} digits hold all of them"


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """The type in which two columns are compared; `conversions` has (before, after), in words, by converted side."""

    type: Any
    conversions: dict[str, tuple[str, str]] = {}
    problem: str = ""


def plain(kind: Any) -> Any:
    """The type without encodings; raises CheckInputError for a type that cannot be compared."""
    if T.is_dictionary(kind) or T.is_run_end_encoded(kind):
        return plain(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return plain(kind.storage_type)
    if T.is_string(kind) or T.is_large_string(kind) or kind == pa.string_view():
        return TEXT
    if T.is_binary(kind) or T.is_large_binary(kind) or T.is_fixed_size_binary(kind) or kind == pa.binary_view():
        return pa.large_binary()
    if T.is_uint64(kind):
        return pa.decimal128(20, 0)
    if T.is_integer(kind):
        return pa.int64()
    if T.is_float16(kind):
        return pa.float32()
    if T.is_timestamp(kind):
        return pa.timestamp("ns" if kind.unit == "ns" else "us", "UTC" if kind.tz else None)
    if T.is_date(kind):
        return pa.date32() if T.is_date32(kind) else pa.timestamp("us")
    if T.is_time(kind):
        return pa.time64("ns" if str(kind) == "time64[ns]" else "us")
    if T.is_duration(kind):
        return pa.duration("ns")
    if T.is_decimal(kind):
        digits = max(kind.precision, kind.scale)
        if digits > DIGITS or kind.scale < 0:
            raise CheckInputError(f"{kind} has more digits than can be compared ({DIGITS}); --cast to another type")
        return pa.decimal128(digits, kind.scale)
    if T.is_list(kind) or T.is_large_list(kind) or T.is_fixed_size_list(kind):
        return pa.list_(plain(kind.value_type))
    if T.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if T.is_struct(kind):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in kind])
    if T.is_boolean(kind) or T.is_floating(kind) or T.is_null(kind):
        return kind
    raise CheckInputError(f"values of type {kind} cannot be compared")


def common(one: Any, other: Any, *, by_name: bool = False) -> Any | None:
    """A type that holds the values of both plain types; None if there is none.

    `by_name`: the fields of structs have no order, and a missing field is NULL, as in JSON.
    """
    if one == other:
        return one
    if T.is_null(one) or T.is_null(other):
        return other if T.is_null(one) else one
    numbers = (T.is_integer, T.is_floating, T.is_decimal)
    if any(is_one(one) for is_one in numbers) and any(is_one(other) for is_one in numbers):
        return _number(one, other)
    times = (T.is_timestamp, T.is_date)
    if any(is_one(one) for is_one in times) and any(is_one(other) for is_one in times):
        units = [kind.unit for kind in (one, other) if T.is_timestamp(kind)]
        zoned = any(T.is_timestamp(kind) and kind.tz for kind in (one, other))
        return pa.timestamp("ns" if "ns" in units else "us", "UTC" if zoned else None)
    if T.is_time(one) and T.is_time(other):
        return pa.time64("ns")
    return _nested(one, other, by_name)


def holds(kind: Any, is_one: Callable[[Any], bool]) -> bool:
    """Whether a type has lists, structs or maps of types for which `is_one` holds."""
    return T.is_nested(kind) and any(
        is_one(inner) or holds(inner, is_one) for inner in (kind.field(place).type for place in range(kind.num_fields))
    )


def _number(one: Any, other: Any) -> Any | None:
    if T.is_floating(one) or T.is_floating(other):
        return pa.float64()
    left, right = (kind if T.is_decimal(kind) else pa.decimal128(19, 0) for kind in (one, other))
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale) + scale
    if digits > DIGITS and not (T.is_decimal(one) and T.is_decimal(other)):
        digits = DIGITS  # integers rarely have 19 digits: one that does not fit is reported
    return pa.decimal128(digits, scale) if digits <= DIGITS else None


def _nested(one: Any, other: Any, by_name: bool) -> Any | None:
    if T.is_list(one) and T.is_list(other):
        value = common(one.value_type, other.value_type, by_name=by_name)
        return None if value is None else pa.list_(value)
    if T.is_map(one) and T.is_map(other):
        key, item = common(one.key_type, other.key_type), common(one.item_type, other.item_type, by_name=by_name)
        return None if key is None or item is None else pa.map_(key, item)
    if T.is_struct(one) and T.is_struct(other) and by_name:
        kinds = {field.name: field.type for field in one}
        for field in other:
            if (kind := common(kinds.get(field.name, pa.null()), field.type, by_name=True)) is None:
                return None
            kinds[field.name] = kind
        return pa.struct(list(kinds.items()))
    if T.is_struct(one) and T.is_struct(other) and [f.name for f in one] == [f.name for f in other]:
        fields = [pa.field(a.name, common(a.type, b.type)) for a, b in zip(one, other, strict=True)
                  if common(a.type, b.type) is not None]  # fmt: skip
        return pa.struct(fields) if len(fields) == one.num_fields else None
    return None


def together(expected: Column, actual: Column) -> Together:
    """The common type of two columns, by the conversion table."""
    sides = {"expected": expected, "actual": actual}
    read = reads(sides)
    if any(column.is_number and read[side] == TEXT for side, column in sides.items()):
        return Together(type=TEXT, problem=TOO_WIDE)
    kind = common(read["expected"], read["actual"], by_name="json" in (expected.texts, actual.texts))
    if kind is None and expected.is_text and actual.is_text:
        kind = TEXT
    if kind is not None and T.is_null(kind) and (expected.is_text or actual.is_text):
        kind = TEXT  # empty texts, which are NULL only beside values of another type
    if kind is None:
        return Together(type=TEXT, problem=f"{_side(expected, read['expected'])} expected,"
                        f" {_side(actual, read['actual'])} actual")  # fmt: skip
    conversions = {side: words for side, column in sides.items() if (words := conversion_of(column, kind))}
    return Together(type=kind, conversions=conversions)


def reads(sides: Mapping[str, Column]) -> dict[str, Any]:
    """By side, the type as which its column is read, given the other side's; beside decimals numbers are decimals."""
    found = {side: _read(column, sides[_other(side)], exact=False) for side, column in sides.items()}
    if any(T.is_decimal(kind) for kind in found.values()):
        found = {side: _read(column, sides[_other(side)], exact=True) for side, column in sides.items()}
    return found


def _other(side: str) -> str:
    return "actual" if side == "expected" else "expected"


def _read(column: Column, other: Column, *, exact: bool) -> Any:
    """The type as which a column is read, given the other side's column."""
    if column.is_number:
        return other.type if _is_float(other) else column.facts.type(exact=exact) if column.facts else column.type
    if not column.is_text:
        return column.type
    if column.texts == "declared":
        return other.type if not other.is_text and _is_time(other.type) else TEXT
    if column.facts is None:
        return TEXT
    if other.is_text and other.texts == "declared":
        return TEXT if column.facts.filled else pa.null()
    if column.facts.filled and not other.is_text and (T.is_time(other.type) or T.is_binary(other.type)):
        return other.type if T.is_time(other.type) else TEXT
    if column.facts.number and not column.facts.integer and _is_float(other) and column.facts.filled:
        return other.type
    own = column.facts.type(exact=exact)
    if column.texts == "json" and other.is_text and not _is_time(own):
        return TEXT if column.facts.filled else pa.null()
    if column.texts == "json" and column.facts.empty:
        return TEXT
    if column.texts == "bare" and other.is_text and other.texts == "json" and not _is_time(own):
        return TEXT if column.facts.filled else pa.null()
    return own


def _is_float(column: Column) -> bool:
    """Whether the writer declared the column as floats."""
    return bool(T.is_floating(column.type)) and not column.is_number


def _is_time(kind: Any) -> bool:
    return bool(T.is_timestamp(kind) or T.is_date(kind) or T.is_time(kind))


def _side(column: Column, read: Any) -> str:
    return "text" if column.is_text and read == TEXT else named(read) if column.is_text else column.called


def conversion_of(column: Column, kind: Any) -> tuple[str, str] | None:
    """(a column's type, what it becomes), in words; None if the values do not change."""
    zone = ", a time without a zone as UTC" if _gets_a_zone(column, kind) else ""
    if column.is_text:
        if kind == TEXT or (column.facts is not None and not column.facts.filled):
            return None
        null = ", empty texts as NULL" if column.facts is not None and column.facts.empty else ""
        return "text", f"read as {named(kind)}{null}{zone}"
    if T.is_null(column.type) or column.type == kind:
        return None
    if T.is_float32(column.type) and T.is_float64(kind):
        return named(column.type), "widened to double"
    one, other = column.called, named(kind)
    if column.is_number and T.is_float64(kind):
        return None
    return (one, f"read as {other}{zone}") if one != other or zone else None


def _gets_a_zone(column: Column, kind: Any) -> bool:
    if not (T.is_timestamp(kind) and kind.tz):
        return False
    if column.is_text:
        return column.facts is not None and column.facts.time and not column.facts.zoned
    return T.is_date(column.type) or (T.is_timestamp(column.type) and not column.type.tz)


def named(kind: Any) -> str:
    """The name of a type in messages and for `--cast`."""
    if kind == TEXT:
        return "text"
    if T.is_integer(kind):
        return "bigint"
    if T.is_floating(kind):
        return "float of 32 bits" if T.is_float32(kind) else "double"
    if T.is_boolean(kind):
        return "boolean"
    if T.is_decimal(kind):
        return "decimal"
    if T.is_date(kind):
        return "date"
    if T.is_timestamp(kind):
        return "timestamp"
    if T.is_time(kind):
        return "time"
    if T.is_binary(kind) or T.is_large_binary(kind):
        return "binary"
    return str(kind)


def cast_name(kind: Any) -> str:
    """The type as `--cast` accepts it."""
    return f"decimal({kind.precision},{kind.scale})" if T.is_decimal(kind) else named(kind)


def a_type(kind: Any) -> str:
    """A phrase for one value of the type."""
    if T.is_integer(kind):
        return "a whole number"
    if T.is_floating(kind) or T.is_decimal(kind):
        return "a number"
    return "true or false" if T.is_boolean(kind) else f"a {named(kind)}"


CASTS = "string, bigint, double, decimal(P,S), boolean, date, timestamp, timestamp(ns), time, binary"
_SIMPLE = {
    **dict.fromkeys(("string", "text", "varchar"), TEXT),
    **dict.fromkeys(("bigint", "long", "int", "integer"), pa.int64()),
    **dict.fromkeys(("double", "float"), pa.float64()),
    **dict.fromkeys(("boolean", "bool"), pa.bool_()),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp(ns)": pa.timestamp("ns", "UTC"),
    "time": pa.time64("ns"),
    "binary": pa.large_binary(),
}


def cast_type(words: str) -> Any:
    """The type that `--cast COL=TYPE` names; raises CheckInputError."""
    text = words.strip().lower().replace(" ", "")
    if text in _SIMPLE:
        return _SIMPLE[text]
    if found := re.fullmatch(r"(?:decimal|numeric)\((\d{1,2})(?:,(\d{1,2}))?\)", text):
        digits, scale = int(found[1]), int(found[2] or 0)
        if 1 <= digits <= DIGITS and scale <= digits:
            return pa.decimal128(digits, scale)
    raise CheckInputError(f"there is no type {words!r} to cast to; there are {CASTS}")
