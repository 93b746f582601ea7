"""The types as which a column of texts can be read.

A column is read as numbers, booleans, dates, times or times of day only if every
text of the column is one.  A leading zero (01234) or plus sign is never part of a
number: such a column stays text.  Empty quoted fields do not count; they are NULL
if the column is not read as text.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import EMPTY, FALSE, TEXT, TRUE, null, number, text

DIGITS = 38
"""the precision of the widest decimal"""
SURE_DIGITS = 15
"""A double holds every number of up to this many digits."""
MOST_DIGITS = 17
"""The digits that a double needs at most: a number with more was not written from a double, which would round it."""
WHOLE = 1 << 53
"""A double holds every whole number up to this one."""

FEW = 64
"""texts that are examined first: if a column is not of a type, they mostly show it"""

DAY, SPACE = text("1970-01-01"), text(" ")

_PLAIN = r"^-?[0-9]+(\.[0-9]+)?$"
_INTEGER = r"^-?[0-9]+$"
_MANY = rf"^-?[0.]*[1-9](\.?[0-9]){{{SURE_DIGITS},}}"
_ROUNDED = rf"^-?[0.]*[1-9](\.?[0-9]){{{MOST_DIGITS},}}"
_ZERO = r"^-?0[0-9xX]"
_COMMA = r"-?[0-9][0-9.]*,[0-9]+$"
_TRUTH = r"^(?i:true|false)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_ZONE = r":.*(Z|[+-][0-9:]+)$"
_CLOCK = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?$"
_PARTS = r"^-?(?P<whole>[0-9]*)\.?(?P<part>[0-9]*)[eE]\+?(?P<power>-?[0-9]{1,3})$"


_OF_ALL = ("integer", "number", "plain", "sized", "boolean", "date", "time", "zoned", "clock")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all texts of a column.

    `plain`: numbers without an exponent.  `sized`: numbers that, written without an exponent, have at most `whole`
    digits before the point and `scale` digits after it.
    """

    filled: bool = False
    """some text is not empty"""
    empty: bool = False
    integer: bool = True
    number: bool = True
    plain: bool = True
    long: bool = False
    """there is a number that a double rounds, or a whole number that a double may round"""
    inexact: bool = False
    """there is a whole number that is, or may be, equal to no double, or a number that a double rounds"""
    sized: bool = True
    rough: bool = False
    """`whole` and `scale` are only bounds, as decimals were not requested"""
    whole: int = 0
    scale: int = 0
    boolean: bool = True
    date: bool = True
    time: bool = True
    zoned: bool = True
    """all times have a zone"""
    some_zoned: bool = False
    clock: bool = True
    """times of day"""
    fine: bool = False
    """times finer than microseconds"""

    def __and__(self, other: Facts) -> Facts:
        if not (self.filled and other.filled):
            one = self if self.filled else other
            return msgspec.structs.replace(one, empty=self.empty or other.empty)
        both = {name: getattr(self, name) and getattr(other, name) for name in _OF_ALL}
        some = {
            name: getattr(self, name) or getattr(other, name)
            for name in ("empty", "long", "inexact", "rough", "some_zoned", "fine")
        }
        most = {name: max(getattr(self, name), getattr(other, name)) for name in ("whole", "scale")}
        return Facts(filled=True, **both, **some, **most)

    def type(self, *, exact: bool = False) -> Any:
        """The type as which the texts are read by themselves; `exact`: decimals rather than doubles."""
        if not self.filled:
            return pa.null()
        if self.integer:
            return pa.int64()
        if self.number:
            digits = max(self.whole + self.scale, 1)
            if self.sized and (self.long or exact) and digits <= DIGITS:
                return pa.decimal128(digits, self.scale)
            return TEXT if self.inexact or (self.long and self.plain) else pa.float64()
        if self.boolean:
            return pa.bool_()
        if self.date:
            return pa.date32()
        if self.time:
            return pa.timestamp("ns" if self.fine else "us", "UTC" if self.some_zoned else None)
        return pa.time64("ns") if self.clock else TEXT


def facts_of(column: Any, *, exact: bool = False) -> Facts:
    """The facts of a text column; with `exact`, also those that decimals require."""
    values = pc.drop_null(column)
    empty = pc.equal(values, EMPTY)
    some_empty = bool(pc.any(empty).as_py())
    if some_empty:
        values = values.filter(pc.invert(empty))
    if not len(values):
        return Facts(empty=some_empty)
    found = _number(values, exact=exact)
    if found.number:
        return msgspec.structs.replace(found, empty=some_empty)
    return msgspec.structs.replace(_other(values), empty=some_empty)


_NO_NUMBER = {"integer": False, "number": False, "plain": False, "sized": False}
_NO_TIME = {"boolean": False, "date": False, "time": False, "zoned": False, "clock": False}
SHORT = Facts(filled=True, integer=False, rough=True, whole=SURE_DIGITS, scale=SURE_DIGITS, **_NO_TIME)
"""the facts of numbers that doubles do not round"""


def _number(values: Any, *, exact: bool) -> Facts:
    first = values.slice(0, FEW)
    if not fits(first, pa.float64()) and not fits(first, pa.int64()):
        return Facts(filled=True, **_NO_NUMBER)
    if _is_a_name(values):
        return Facts(filled=True, **_NO_NUMBER)
    if fits(values, pa.int64()):
        ends = pc.min_max(pc.cast(values, pa.int64())).as_py()
        most = max(-ends["min"], ends["max"])
        long = most > WHOLE
        return Facts(filled=True, whole=len(str(most)), long=long, inexact=long, **_NO_TIME)
    if not fits(values, pa.float64()):
        return Facts(filled=True, **_NO_NUMBER)
    if not exact and not (has_many_digits(values) and is_rounded(values, pc.cast(values, pa.float64()))):
        return SHORT
    found = Facts(filled=True, integer=False, **_NO_TIME)
    if _all_match(values, _PLAIN):
        return _sized(found, values)
    exact_whole = pc.all(is_exact(values, pc.cast(values, pa.float64()))).as_py()
    rounded = pc.any(pc.match_substring_regex(pc.utf8_rtrim(values, "0"), _ROUNDED)).as_py()
    found = msgspec.structs.replace(found, plain=False, sized=False, inexact=not exact_whole or rounded)
    is_plain = pc.match_substring_regex(values, _PLAIN)
    powers = pc.extract_regex(values.filter(pc.invert(is_plain)), _PARTS)
    if powers.null_count:
        return found  # NaN, an infinity, or an exponent too great for a decimal
    plain = values.filter(is_plain)
    found = msgspec.structs.replace(found, sized=True)
    return _powers(_sized(found, plain) if len(plain) else found, powers)


def _sized(found: Facts, values: Any) -> Facts:
    """The facts with the digits of numbers without an exponent."""
    bare = pc.utf8_ltrim(values, "-")
    point = pc.find_substring(bare, ".")
    length = pc.cast(pc.binary_length(bare), pa.int64())
    whole = pc.if_else(pc.less(point, 0), length, pc.cast(point, pa.int64()))
    scale = pc.if_else(pc.less(point, 0), 0, pc.subtract(length, pc.add(whole, 1)))
    digits = pc.binary_length(pc.utf8_ltrim(pc.replace_substring(bare, ".", ""), "0"))
    return msgspec.structs.replace(found, long=pc.max(digits).as_py() > SURE_DIGITS,
                                   whole=pc.max(whole).as_py(), scale=pc.max(scale).as_py())  # fmt: skip


def _powers(found: Facts, powers: Any) -> Facts:
    """The facts with the digits of numbers with an exponent, given by their parts (`_PARTS`)."""
    whole, part, power = (pc.struct_field(powers, name) for name in ("whole", "part", "power"))
    part = pc.utf8_rtrim(part, "0")
    power = pc.cast(power, pa.int64())
    digits = pc.binary_length(pc.utf8_ltrim(pc.binary_join_element_wise(whole, part, EMPTY), "0"))
    before = pc.add(pc.cast(pc.binary_length(whole), pa.int64()), power)
    behind = pc.subtract(pc.cast(pc.binary_length(part), pa.int64()), power)
    return msgspec.structs.replace(
        found,
        long=found.long or pc.max(digits).as_py() > SURE_DIGITS,
        whole=max(found.whole, pc.max(before).as_py(), 0),
        scale=max(found.scale, pc.max(behind).as_py(), 0),
    )


def has_many_digits(values: Any) -> bool:
    """Whether some number has more digits than doubles hold in every case."""
    long = values.filter(pc.greater(pc.binary_length(values), number(SURE_DIGITS)))
    return bool(len(long)) and bool(pc.any(pc.match_substring_regex(long, _MANY)).as_py())


def is_rounded(texts: Any, doubles: Any) -> bool:
    """Whether some number differs from the shortest number that is read as the same double.

    If none does, two numbers are equal exactly if their doubles are.
    """
    shortest = pc.cast(doubles, TEXT)
    odd = pc.and_(pc.not_equal(texts, shortest), pc.greater(pc.binary_length(texts), number(SURE_DIGITS)))
    texts, shortest, doubles = (column.filter(odd) for column in (texts, shortest, doubles))
    long = pc.match_substring_regex(texts, _MANY)
    texts, shortest, doubles = (column.filter(long) for column in (texts, shortest, doubles))
    if not pc.all(is_exact(texts, doubles)).as_py():
        return True
    return any(Decimal(a.as_py()) != Decimal(b.as_py()) for a, b in zip(texts, shortest, strict=True))


def _is_a_name(values: Any) -> bool:
    if pc.any(pc.starts_with(values, "+")).as_py():
        return True  # as in telephone numbers
    zero = values.filter(pc.or_(pc.starts_with(values, "0"), pc.starts_with(values, "-0")))
    return bool(len(zero)) and bool(pc.any(pc.match_substring_regex(zero, _ZERO)).as_py())


def _other(values: Any) -> Facts:
    if pc.all(pc.match_substring_regex(values.slice(0, 1), _TRUTH)).as_py():
        truth = _all_match(values, _TRUTH)
        return Facts(filled=True, **_NO_NUMBER, **{**_NO_TIME, "boolean": truth})
    if pc.match_substring_regex(values.slice(0, 1), _CLOCK)[0].as_py():
        clock = _all_match(values, _CLOCK) and fits(on_a_day(values), pa.timestamp("ns"))
        return Facts(filled=True, **_NO_NUMBER, **{**_NO_TIME, "clock": clock})
    found = Facts(filled=True, **_NO_NUMBER, boolean=False, clock=False)
    if not pc.match_substring_regex(values.slice(0, 1), r"^[0-9]{4}-")[0].as_py():
        return msgspec.structs.replace(found, **_NO_TIME)
    for zone in (None, "UTC"):
        for unit in ("us", "ns"):
            if fits(values, pa.timestamp(unit, zone)):
                date = zone is None and _all_match(values, _DATE)
                zoned = zone is not None
                return msgspec.structs.replace(found, date=date, zoned=zoned, some_zoned=zoned, fine=unit == "ns")
    zoned, local = by_zone(values)
    for unit in ("us", "ns"):
        if fits(zoned, pa.timestamp(unit, "UTC")) and fits(local, pa.timestamp(unit)):
            return msgspec.structs.replace(found, date=False, zoned=False, some_zoned=True, fine=unit == "ns")
    return msgspec.structs.replace(found, **_NO_TIME)


def comma_hint(text: str) -> str:
    """A hint for a message about a text that is no number because of a decimal comma."""
    return "; numbers are read with a decimal point, not with a comma" if re.match(_COMMA, text) else ""


def on_a_day(values: Any) -> Any:
    """Times of day with a date, since pyarrow reads no other times."""
    return pc.binary_join_element_wise(DAY, values, SPACE)


def by_zone(values: Any) -> tuple[Any, Any]:
    """(times with a zone, times without one), each with NULL in place of the others."""
    zone = pc.match_substring_regex(values, _ZONE)
    none = null(values.type)
    return pc.if_else(zone, values, none), pc.if_else(zone, none, values)


def is_exact(texts: Any, floats: Any) -> Any:
    """For each text: if it is a whole number, whether the float at the same place is equal to it; else true."""
    digits = 7 if pa.types.is_float32(floats.type) else SURE_DIGITS
    long = pc.fill_null(pc.greater(pc.binary_length(texts), number(digits)), FALSE)
    if pc.any(long).as_py():
        long = pc.and_(long, pc.fill_null(pc.match_substring_regex(texts, _INTEGER), FALSE))
    if not pc.any(long).as_py():
        return pa.chunked_array([pa.repeat(TRUE, len(texts))])
    pairs = zip(texts.filter(long).to_pylist(), floats.filter(long).to_pylist(), strict=True)
    same = iter([abs(value) != float("inf") and int(text) == int(value) for text, value in pairs])
    return pa.array([not place or next(same) for place in long.to_pylist()])


def _all_match(values: Any, pattern: str) -> bool:
    return all(pc.all(pc.match_substring_regex(some, pattern)).as_py() for some in (values.slice(0, FEW), values))


def fits(values: Any, kind: Any) -> bool:
    """Whether all texts can be read as a type."""
    try:
        pc.cast(values.slice(0, FEW), kind)  # a cast reads all texts, even after one that fails
        pc.cast(values, kind)
    except pa.ArrowInvalid:  # whether a cast is possible shows only when it is tried
        return False
    return True
