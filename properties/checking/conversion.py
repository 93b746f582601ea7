"""The conversion of a column's values to another type, in normal form: equal values have equal bytes.

NaN is one value and -0.0 is 0.0, as in Spark's GROUP BY.  No conversion rounds,
truncates or guesses: if the type cannot hold a value exactly, an error names the
value.  There is one exception: a decimal that is compared with floats becomes the
nearest float.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import EMPTY, TEXT, null, to_arrow
from .errors import CheckInputError, shown
from .texts import by_zone, comma_hint, is_exact, on_a_day
from .types import named, plain

T = pa.types
_TRUE = ("true", "t", "yes", "y", "1")
_INFINITY = r"^[+-]?(?i:inf(inity)?)$"
NO_CAST = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError)
"""The errors that a cast raises if a value, or the whole type, cannot be cast."""
INT64_DIGITS = 19
_FALSE = ("false", "f", "no", "n", "0")


class Conversion:
    """The conversion of one column from its plain type to the type in which it is compared.

    With `bare`, empty texts become NULL unless the column stays text; with `empty_is_null` they
    always do.  `where` names the column and its side in errors.
    """

    def __init__(self, kind: Any, where: str, name: str, *, bare: bool, empty_is_null: bool = False) -> None:
        self._kind, self._where, self._name = kind, where, name
        self._no_empty = empty_is_null or (bare and kind != TEXT)

    def __call__(self, column: Any) -> Any:
        """The converted chunked array; raises CheckInputError."""
        column = plainly(column)
        if self._no_empty and column.type == TEXT:
            column = pc.if_else(pc.equal(column, EMPTY), null(TEXT), column)
        try:
            return normal(cast(column, self._kind))
        except NO_CAST:
            raise CheckInputError(self._refusal(column)) from None  # pyarrow's message does not name the value

    def _refusal(self, column: Any) -> str:
        kind = named(self._kind)
        hint = f"--cast {self._name}=string compares texts"
        if T.is_timestamp(self._kind) and self._kind.unit == "ns":
            hint += f", --cast {self._name}=timestamp microseconds"
        value = _first_odd(column, self._kind)
        if value is None:
            return f"{self._where} is of type {named(column.type)}, which cannot be converted to {kind}; {hint}"
        comma = comma_hint(value) if isinstance(value, str) else ""
        return f"{self._where} holds {shown(value)}, which no {kind} is, as which it would be compared{comma}; {hint}"


def plainly(column: Any) -> Any:
    """The column in its plain type (`types.plain`): without encodings and widths, which do not change the values."""
    kind = column.type
    if T.is_dictionary(kind) or T.is_run_end_encoded(kind):
        column = pc.cast(column, kind.value_type) if T.is_dictionary(kind) else pc.run_end_decode(column)
        return plainly(column)
    if isinstance(kind, pa.BaseExtensionType):
        return plainly(pc.cast(column, kind.storage_type))
    target = plain(kind)
    if target == kind:
        return column
    if T.is_timestamp(kind) and kind.tz is None and target.tz is None:
        return pc.cast(column, target)
    return pc.cast(column, target)


def cast(column: Any, kind: Any) -> Any:
    """The column's values in another type; raises pyarrow's errors."""
    if column.type == kind:
        return column
    if column.type == TEXT:
        return _from_text(column, kind)
    if _by_digits(column.type, kind):
        return pc.cast(pc.cast(column, TEXT), kind)
    if T.is_float64(column.type) and T.is_float32(kind):
        return _narrowed(column)
    if T.is_timestamp(column.type) and kind == TEXT:
        return pc.cast(pc.cast(column, pa.timestamp(column.type.unit)), TEXT)
    if T.is_date(column.type) and T.is_timestamp(kind):
        return pc.cast(pc.cast(column, pa.timestamp(kind.unit)), kind)
    if T.is_binary(column.type) or T.is_large_binary(column.type):
        raise pa.ArrowTypeError("bytes are no text")
    return pc.cast(_with_fields(column, kind), kind)


def _by_digits(one: Any, other: Any) -> bool:
    """Whether to cast through text, because pyarrow's own cast is wrong.

    It is off by a bit for some values (decimals to floats), rounds (floats to decimals), or refuses small numbers
    because the type may have greater ones (whole numbers to decimals).
    """
    if T.is_decimal(other):
        return bool(T.is_floating(one) or (T.is_integer(one) and other.precision - other.scale < INT64_DIGITS))
    return bool(T.is_decimal(one) and T.is_floating(other))


def _narrowed(column: Any) -> Any:
    found = pc.cast(column, pa.float32())
    if not pc.all(pc.equal(pc.is_inf(found), pc.is_inf(column))).as_py():
        raise pa.ArrowInvalid("greater than any float")
    return found


def _with_fields(column: Any, kind: Any) -> Any:
    """Structs with the fields of another type, in that type's order; a missing field is NULL."""
    if not T.is_nested(kind) or column.type == kind:
        return column
    chunks = [_fields(chunk, kind) for chunk in column.chunks]
    return pa.chunked_array(chunks) if chunks else pa.chunked_array([], kind)


def _fields(array: Any, kind: Any) -> Any:
    if T.is_struct(array.type) and T.is_struct(kind):
        own = {field.name: array.field(place) for place, field in enumerate(array.type)}
        parts = [_fields(own.get(field.name, pa.nulls(len(array))), field.type) for field in kind]
        fields = [pa.field(field.name, part.type) for field, part in zip(kind, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())
    if T.is_list(array.type) and T.is_list(kind):
        lengths = pc.fill_null(pc.list_value_length(array), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
        return pa.ListArray.from_arrays(offsets, _fields(array.flatten(), kind.value_type), mask=array.is_null())
    return pc.cast(pc.cast(array, TEXT), kind) if _by_digits(array.type, kind) else array


def _from_text(column: Any, kind: Any) -> Any:
    if T.is_timestamp(kind):
        return _times(column, kind)
    if T.is_time(kind):
        return pc.cast(pc.cast(on_a_day(column), pa.timestamp(kind.unit)), kind)
    if T.is_boolean(kind):
        return _truth(column)
    if T.is_integer(kind):
        if any(pc.any(pc.match_substring(column, sign)).as_py() for sign in "xX"):
            raise pa.ArrowInvalid("hexadecimal")
        try:
            return pc.cast(column, kind)
        except pa.ArrowInvalid:  # 2.0 is a whole number as well
            return pc.cast(pc.cast(column, pa.decimal128(38, 18)), kind)
    return _floats(column, kind) if T.is_floating(kind) else pc.cast(column, kind)


def _floats(column: Any, kind: Any) -> Any:
    """The nearest floats; a whole number has to be equal to its float, and only infinity may become infinite."""
    found = pc.cast(column, kind)
    infinite = column.filter(pc.is_inf(found))
    if len(infinite) and not pc.all(pc.match_substring_regex(infinite, _INFINITY)).as_py():
        raise pa.ArrowInvalid("greater than any float")
    if not pc.all(is_exact(column, found)).as_py():
        raise pa.ArrowInvalid("a whole number that no float is")
    return found


def _times(column: Any, kind: Any) -> Any:
    """Times with or without a zone; if the type has a zone, a time without one is in UTC."""
    if kind.tz is None:
        return pc.cast(column, kind)
    try:
        return pc.cast(pc.cast(column, pa.timestamp(kind.unit)), kind)
    except pa.ArrowInvalid:  # only some have a zone: pyarrow needs all or none
        zoned, local = by_zone(column)
        return pc.coalesce(pc.cast(zoned, kind), pc.cast(pc.cast(local, pa.timestamp(kind.unit)), kind))


def _truth(column: Any) -> Any:
    low = pc.utf8_lower(column)
    true = pc.is_in(low, pa.array(_TRUE, TEXT))
    known = pc.or_(true, pc.or_(pc.is_in(low, pa.array(_FALSE, TEXT)), pc.is_null(low)))
    if not pc.all(known).as_py():
        raise pa.ArrowInvalid("neither true nor false")
    return pc.if_else(pc.is_null(low), null(pa.bool_()), true)


def _first_odd(column: Any, kind: Any) -> Any:
    """The first value that cannot be cast by itself, found by bisection; None if no single value fails."""
    good, bad = 0, len(column)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _casts(column.slice(good, middle - good), kind):
            good = middle
        else:
            bad = middle
    odd = column.slice(good, 1)
    if not len(odd) or _casts(odd, kind):
        return None
    return odd.cast(TEXT)[0].as_py() if T.is_timestamp(odd.type) else odd[0].as_py()


def _casts(column: Any, kind: Any) -> bool:
    try:
        cast(column, kind)
    except NO_CAST:  # whether a cast is possible shows only when it is tried
        return False
    return True


def normal(column: Any) -> Any:
    """The column with one NaN and one zero; nested floats are brought into normal form when they are compared."""
    if not T.is_floating(column.type):
        return column
    nan, zero = to_arrow(np.array([np.nan, 0.0])).cast(column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))


def shown_type(kind: Any) -> Any:
    """The type in which values are shown and written if Python, JSON or Spark has no type for them."""
    if T.is_list(kind):
        return pa.list_(shown_type(kind.value_type))
    if T.is_map(kind):
        return pa.map_(shown_type(kind.key_type), shown_type(kind.item_type))
    if T.is_struct(kind):
        return pa.struct([pa.field(field.name, shown_type(field.type)) for field in kind])
    if (T.is_timestamp(kind) and kind.unit == "ns") or T.is_time(kind) or T.is_null(kind):
        return TEXT
    return pa.int64() if T.is_duration(kind) else kind


def shown_as(column: Any) -> Any:
    """The column cast to its `shown_type`."""
    kind = shown_type(column.type)
    if T.is_timestamp(column.type) and kind == TEXT:
        column = pc.cast(column, pa.timestamp("ns"))
    return column if column.type == kind else pc.cast(column, kind)
