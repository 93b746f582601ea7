"""Two tables with the same columns: in one order, and each column of one type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from .arrays import TEXT
from .conversion import Conversion
from .errors import CheckInputError, TooLarge, shown
from .request import OURS, SIDES, CheckRequest
from .sizes import MEMORY_BYTES, SMALL_BYTES, SMALL_NESTED_ROWS, SMALL_ROWS
from .sources.json_lines import Wanted
from .sources.parquet_source import ParquetSource
from .sources.sources import CsvSource, JsonSource, Source, source_of
from .texts import SHORT, Facts, comma_hint, facts_of
from .types import TOO_WIDE, Column, a_type, cast_name, cast_type, common, conversion_of, holds, named, plain, together

T = pa.types
Found = TypeVar("Found")
SEPARATORS = {";": "';'", "\t": "tab", "|": "'|'"}
DIGITS_KEPT = ", as a double would round one (--cast to double compares doubles)"


class Side:
    """One of the tables.  `own` has this table's name of each of the pair's columns."""

    def __init__(self, name: str, source: Source, own: Mapping[str, str]) -> None:
        self.name, self.source = name, source
        called = {theirs: ours for ours, theirs in own.items()}
        self.own = {called.get(column, column): column for column in source.types}
        self._held: Any = None

    def column(self, name: str, facts: Facts | None = None) -> Column:
        own = self.own[name]
        kind = self.source.types[own]
        return Column(type=kind, texts=self.source.texts.get(own, "declared"), facts=facts)

    @property
    def small(self) -> bool:
        nested = any(T.is_nested(kind) for kind in self.source.types.values())
        most = SMALL_NESTED_ROWS if nested else SMALL_ROWS
        return self.source.bytes <= SMALL_BYTES and self.source.rows <= most + 1

    def hold(self, names: Sequence[str], *, bounded: bool) -> None:
        """Keep these columns in memory; raises TooLarge if `bounded` and they need more than `MEMORY_BYTES`."""
        held, size = [], 0
        for table in self._read(names):
            size += table.nbytes
            if bounded and size > MEMORY_BYTES:
                raise TooLarge
            held.append(table)
        self._held = held

    def release(self) -> None:
        """Drop the columns from memory; from then on the table is read again."""
        self._held = None

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """The columns with the pair's names, not converted."""
        if self._held is None:
            yield from self._read(names)
        else:
            for table in self._held:
                yield table.select(list(names))

    def examined(self, names: Sequence[str]) -> Iterator[Any]:
        """Tables of these columns in which each text occurs, though not as often as in `batches`.

        The texts in the names of folders are few, and no row is read for them.
        """
        source = self.source
        own = {name: self.own[name] for name in names}
        folded = [name for name in names if isinstance(source, ParquetSource) and own[name] in source.folders]
        if folded and isinstance(source, ParquetSource):
            yield source.in_folders([own[name] for name in folded]).rename_columns(folded)
        if others := [name for name in names if name not in folded]:
            yield from self.batches(others)

    def _read(self, names: Sequence[str]) -> Iterator[Any]:
        for table in self.source.batches([self.own[name] for name in names]):
            yield table.rename_columns(list(names))


class Pair:
    """The two tables of a request.

    `types` has the compared columns and the types in which they are compared, `conversions` a
    sentence for each conversion.  The constructor reads only what types and sizes require; `bring`
    reads the values.
    """

    def __init__(self, request: CheckRequest) -> None:
        self.request = request
        casts = {name: cast_type(words) for name, words in request.cast.items()}
        self.expected = Side("expected", _source(request, "expected", casts), {})
        for own in request.rename:
            _demand([own], self.expected)
        theirs = _source(request, "actual", casts)
        _demand_renamed(request.rename, theirs, self.expected)
        self.actual = Side("actual", theirs, request.rename)
        self._casts = casts
        self.names = self._names()
        self._keep_digits_of_nested()
        self.types: dict[str, Any] = {}
        self.conversions: tuple[str, ...] = ()

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.expected, self.actual

    @property
    def small(self) -> bool:
        """Whether one process can compare the tables."""
        return all(side.small for side in self.sides)

    def _names(self) -> list[str]:
        request = self.request
        for name in request.ignore:
            if all(name not in side.own for side in self.sides):
                raise CheckInputError(f"neither table has a column {name} to be ignored")
        if ours := [name for side in self.sides for name in side.own if name.startswith(OURS)]:
            raise CheckInputError(f"there is a column {ours[0]!r}; none may begin with the control character {OURS!r}")
        names = [name for name in self.expected.own if name not in request.ignore]
        _demand([name for name in self.actual.own if name not in request.ignore], self.expected, self.actual)
        _demand(names, self.actual, self.expected)
        if not names:
            raise CheckInputError("no column is left to compare")
        for name in (*request.key, *request.tolerated, *request.cast):
            if name not in names:
                raise CheckInputError(f"there is no column {name} to compare by; there are {', '.join(names)}")
        return names

    def bring(self) -> None:
        """Determine the types, which requires reading all texts; raises CheckInputError for unlike types."""
        facts = self._facts()
        conversions: dict[tuple[str, str, str, str], list[str]] = {}
        for name in self.names:
            columns = {side.name: side.column(name, facts[side.name].get(name)) for side in self.sides}
            if name in self._casts:
                kind = self._casts[name]
                words = {
                    side: conversion_of(column, kind) or _to_text(column, kind) for side, column in columns.items()
                }
                why = ", as --cast has it"
            else:
                found = together(columns["expected"], columns["actual"])
                if found.problem:
                    raise CheckInputError(self._refusal(name, found.problem, columns))
                kind, words = found.type, dict(found.conversions)
                untyped = all(column.is_text or column.is_number for column in columns.values())
                why = DIGITS_KEPT if T.is_decimal(kind) and untyped else ""
                if kind == TEXT:
                    for line in self._stays_text(name, columns):
                        conversions.setdefault(line, []).append(name)
            self.types[name] = kind
            for line in _sides(words, columns, kind, why):
                conversions.setdefault(line, []).append(name)
        self.conversions = tuple(
            f"column{'s' * (len(names) > 1)} {', '.join(names)}: {was} in {where} {becomes}{why}"
            for (was, where, becomes, why), names in conversions.items()
        )
        self._demand_numbers()

    def _stays_text(self, name: str, columns: Mapping[str, Column]) -> Iterator[tuple[str, str, str, str]]:
        """Why a column stays text although one side's texts alone could be read as another type."""
        read = {side: column.facts.type() if column.facts else TEXT for side, column in columns.items()}
        wide = [side for side, column in columns.items() if read[side] == TEXT and column.facts and column.facts.number]
        if wide:
            yield "number", "both" if len(wide) == len(columns) else wide[0], "compared as text", f": {TOO_WIDE}"
        for one, other in (self.sides, self.sides[::-1]):
            kind = read[one.name]
            if kind == TEXT or T.is_null(kind) or read[other.name] != TEXT:
                continue
            if (odd := self._first_odd(other, name, Column(type=kind))) is not None:
                yield (
                    named(kind),
                    one.name,
                    "compared as text",
                    f": {other.name} has {shown(odd)}, which is not {a_type(kind)}{comma_hint(odd)}",
                )

    def _keep_digits_of_nested(self) -> None:
        """Make JSON's numbers in lists and objects decimals, if the other side has decimals there."""
        for side, other in (self.sides, self.sides[::-1], self.sides):
            if isinstance(side.source, JsonSource):
                names = [
                    name
                    for name in self.names
                    if holds(side.column(name).type, T.is_floating) and holds(other.column(name).type, T.is_decimal)
                ]
                if names:
                    side.source.read_exactly(side.own[name] for name in names)

    def _facts(self) -> dict[str, dict[str, Facts]]:
        """By side, the facts of the columns whose type depends on their texts."""
        found = {}
        for side, other in (self.sides, self.sides[::-1]):
            exactly = {name: _is_decimal(other.column(name)) for name in self.names if _is_read(side, other, name)}
            found[side.name] = self._facts_of(side, exactly)
        for side, other in (self.sides, self.sides[::-1]):
            facts = found[side.name]
            exact = [
                name
                for name, one in facts.items()
                if one.rough and (one.long or _is_decimal(other.column(name, found[other.name].get(name))))
            ]
            facts.update(self._facts_of(side, dict.fromkeys(exact, True)))
        return found

    def _facts_of(self, side: Side, exactly: Mapping[str, bool]) -> dict[str, Facts]:
        """The facts of some columns; `exactly` says which columns are examined for decimals."""
        facts = dict.fromkeys(exactly, Facts())
        for table in side.examined(list(exactly)):

            def of(name: str, table: Any = table) -> Facts:
                return _facts_of(table.column(name), exact=exactly[name])

            for name, one in by_column(of, table.column_names).items():
                facts[name] &= one
        return facts

    def _refusal(self, name: str, problem: str, columns: Mapping[str, Column]) -> str:
        if problem == TOO_WIDE:
            return f"the column {name} has numbers that have no type: {problem}; --cast {name}=string compares texts"
        line = f"the column {name} is of unlike types: {problem}"
        for side in self.sides:
            column = columns[side.name]
            opposite = columns["actual" if side.name == "expected" else "expected"]
            if column.is_text and column.texts != "declared" and not opposite.is_text:
                odd = self._first_odd(side, name, opposite)
                if odd is not None:
                    line += f" ({side.name} has {shown(odd)}, which is not {a_type(opposite.type)}{comma_hint(odd)})"
        hints = []
        if all(column.texts in ("json", "number") or not T.is_nested(column.type) for column in columns.values()):
            hints.append(f"--cast {name}=string compares texts")
        if value := self._value_cast(name, columns):
            hints.append(f"--cast {name}={value} values")
        return "; ".join([line, ", ".join(hints)]) if hints else line

    def _value_cast(self, name: str, columns: Mapping[str, Column]) -> str:
        """The type to which `--cast` can convert both sides if one is text; empty if there is none."""
        typed = next((column for column in columns.values() if not column.is_text), None)
        if typed is None:
            return ""
        kind = typed.facts.type(exact=True) if typed.is_number and typed.facts else typed.type
        if T.is_decimal(kind):
            for side in self.sides:
                if side.column(name).is_text:
                    texts = self._facts_of(side, {name: True})[name].type(exact=True)
                    kind = common(kind, texts) or kind if T.is_decimal(texts) else kind
        words = cast_name(kind)
        try:
            wanted = cast_type(words)
            for side in self.sides:
                convert = Conversion(wanted, "", name, bare=True)
                for table in side.examined([name]) if side.column(name).is_text else ():
                    convert(table.column(name))
        except CheckInputError:
            return ""  # the cast would fail too: no hint
        return words

    def _first_odd(self, side: Side, name: str, opposite: Column) -> str | None:
        """A text that cannot be read as the other side's type, found by bisection; None if there is none."""
        fitting = ("null", named(opposite.type), "bigint", "double")

        def fits(texts: Any) -> bool:
            return named(facts_of(texts).type()) in fitting

        for table in side.examined([name]):
            texts = _text(table.column(name))
            if fits(texts):
                continue
            good, bad = 0, len(texts)
            while bad - good > 1:
                middle = (good + bad) // 2
                good, bad = (middle, bad) if fits(texts.slice(good, middle - good)) else (good, middle)
            odd = texts.slice(good, 1)
            return None if fits(odd) else str(odd[0].as_py())
        return None

    def _demand_numbers(self) -> None:
        for name in self.request.tolerated:
            if name in self.request.key:
                raise CheckInputError(f"the column {name} cannot be a key and have a tolerance")
            kind = self.types[name]
            if not (T.is_integer(kind) or T.is_floating(kind) or T.is_decimal(kind)):
                raise CheckInputError(f"the column {name} has a tolerance, but is no number")

    def other_types(self, side: Side) -> dict[str, Any]:
        """The types of the columns that are not compared, but may be in a condition: each read by itself."""
        found = {}
        for name in side.own:
            column = side.column(name)
            if name in self.types:
                continue
            found[name] = column.type
            if column.is_number or (column.is_text and column.texts == "bare"):
                found[name] = self._facts_of(side, {name: False})[name].type()
        return found

    def converted(self, side: Side, types: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """The side's table in the pair's types, or in `types`, with values in normal form; raises CheckInputError."""
        types = types or self.types
        conversions = {name: self.conversion(side, name, kind) for name, kind in types.items()}
        for table in side.batches(list(types)):

            def convert(name: str, table: Any = table) -> Any:
                return conversions[name](table.column(name))

            yield pa.table(by_column(convert, types))

    def conversion(self, side: Side, name: str, kind: Any) -> Conversion:
        """The conversion of one of the side's columns to the type `kind`."""
        return Conversion(
            kind,
            f"the column {name} of the {side.name} table",
            name,
            bare=side.column(name).texts == "bare" or name in self._casts,
            empty_is_null=self.request.empty_is_null,
        )


def by_column(work: Callable[[str], Found], names: Iterable[str]) -> dict[str, Found]:
    """The result of `work` for each column, computed by all cores; raises the first failing column's error."""
    names = list(names)
    with ThreadPoolExecutor(pa.cpu_count()) as threads:
        return dict(zip(names, threads.map(work, names), strict=True))


def _source(request: CheckRequest, side: str, casts: Mapping[str, Any]) -> Source:
    called = request.rename if side == "actual" else {}
    wanted = Wanted(
        as_text=frozenset(called.get(name, name) for name, kind in casts.items() if kind == TEXT),
        ignored=frozenset(() if request.where else (called.get(name, name) for name in request.ignore)),
    )
    where = request.expected if side == "expected" else request.actual
    return source_of(where, delimiter=request.delimiters.get(side, ""), nulls=request.nulls, wanted=wanted)


def _is_read(side: Side, other: Side, name: str) -> bool:
    """Whether the texts of a column decide the type in which it is compared."""
    column, opposite = side.column(name), other.column(name)
    if not column.is_text:
        return column.is_number
    return column.texts != "declared" and not (opposite.is_text and opposite.texts == "declared")


def _is_decimal(column: Column) -> bool:
    return bool(T.is_decimal(column.facts.type() if column.facts else column.type))


def _facts_of(column: Any, *, exact: bool) -> Facts:
    if not T.is_floating(column.type):
        return facts_of(_text(column), exact=exact)
    if not exact:  # JSON's doubles, none of them rounded
        return SHORT if column.null_count < len(column) else Facts()
    return msgspec.structs.replace(facts_of(_text(column), exact=True), integer=False)


def _text(column: Any) -> Any:
    return column if column.type == TEXT else column.cast(plain(column.type)).cast(TEXT)


def _to_text(column: Column, kind: Any) -> tuple[str, str] | None:
    return (named(column.type), "written as text") if kind == TEXT and not column.is_text else None


def _sides(
    words: Mapping[str, tuple[str, str] | None], columns: Mapping[str, Column], kind: Any, why: str
) -> list[tuple[str, str, str, str]]:
    """The conversions of a column: (its type before, the side, what it becomes, why)."""
    if words.get("expected") and words.get("expected") == words.get("actual"):
        was, becomes = words["expected"] or ("", "")
        return [(was, "both", becomes, why)]
    lines = []
    for side, other in (SIDES, SIDES[::-1]):
        if found := words.get(side):
            reason = why or (f", as {other} has it" if named(columns[other].type) == named(kind) else "")
            lines.append((found[0], side, found[1], reason))
    return lines


def _demand(names: Sequence[str], side: Side, other: Side | None = None) -> None:
    missing = [name for name in names if name not in side.own]
    if missing:
        line = f"the {side.name} table has no column {', '.join(missing)}; it has {', '.join(side.own)}"
        raise CheckInputError(line + _separator(side) + (_separator(other) if other else ""))


def _separator(side: Side) -> str:
    """A hint if a header seems to have another delimiter."""
    if isinstance(side.source, CsvSource) and len(side.own) == 1:
        only = next(iter(side.own))
        for sign, name in SEPARATORS.items():
            if sign in only:
                return f" (is the {side.name} file divided by {name}? then --delimiter {side.name}={name})"
    return ""


def _demand_renamed(rename: Mapping[str, str], source: Source, expected: Side) -> None:
    missing = [theirs for theirs in rename.values() if theirs not in source.types]
    if missing:
        raise CheckInputError(f"the actual table has no column {', '.join(missing)}; it has {', '.join(source.types)}")
    for own, theirs in rename.items():
        if own in source.types and own not in rename.values() and own != theirs:
            raise CheckInputError(f"the actual table has a column {own} already; no other can be called so")
    called = list(rename.values())
    if len(set(called)) < len(called):
        raise CheckInputError("--rename gives one column of the actual table two names")
