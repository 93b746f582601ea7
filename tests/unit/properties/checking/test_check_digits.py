"""Numbers keep their digits, however they are written: no difference is rounded away, and no equal numbers differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cutproof.properties.checking.comparison import compare
from cutproof.properties.checking.errors import CheckInputError
from cutproof.properties.checking.pair import Pair
from cutproof.properties.checking.request import CheckRequest, CheckResult
from cutproof.properties.checking.sources import json_lines

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes a column `v` beside a column `k` of the rows' numbers, as NAME's ending says."""

    def written(name: str, *values: str, kind: Any = None) -> Path:
        path = tmp_path / name
        if path.suffix == ".csv":
            path.write_text("k,v\n" + "".join(f"{place},{value}\n" for place, value in enumerate(values)))
        elif path.suffix == ".jsonl":
            path.write_text("".join(f'{{"k":{place},"v":{value}}}\n' for place, value in enumerate(values)))
        else:
            of = Decimal if pa.types.is_decimal(kind) else str if kind == pa.string() else float
            column = pa.array([of(value) for value in values], kind)
            pq.write_table(pa.table({"k": list(range(len(values))), "v": column}), path)
        return path

    return written


def checked(expected: Path, actual: Path, **how: Any) -> CheckResult:
    return compare(Pair(CheckRequest(expected=expected, actual=actual, key=("k",), **how))).result


WIDE = pa.decimal128(38, 30)
LONG = "1.000000000000000000000000000001"
"""in the 30th digit behind the point more than 1"""


@pytest.mark.parametrize("beside", ["2.5", "3", "1E-7", "0.0000001", "12345678.123456789012345"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_number_beside_a_decimal_is_one(write: Write, ending: str, beside: str) -> None:
    decimals = write("b.parquet", LONG, beside, kind=WIDE)
    assert checked(write(f"a.{ending}", LONG, beside), decimals).equal
    for other in ("1", "1.0", "1.000000000000000000000000000002"):
        assert checked(write(f"a.{ending}", other, beside), decimals).changed == 1
        assert checked(decimals, write(f"a.{ending}", other, beside)).changed == 1


@pytest.mark.parametrize("one", ["csv", "jsonl"])
@pytest.mark.parametrize("other", ["csv", "jsonl"])
@pytest.mark.parametrize("beside", ["1.5", "7", "1e-7"])
def test_digits_of_two_files_without_types_are_kept(write: Write, one: str, other: str, beside: str) -> None:
    for left, right in ((LONG, "1.0"), ("12345678901234567", "12345678901234568"), ("0.1234567890123456789", "0.12"),
                        ("0.12345678901234567", "0.12345678901234568"),
                        ("12345678901234567890", "12345678901234567891")):  # fmt: skip
        for expected, actual in ((left, right), (right, left)):
            paths = write(f"a.{one}", expected, beside), write(f"b.{other}", actual, beside)
            assert checked(*paths).changed == 1, (expected, actual)
        assert checked(write(f"a.{one}", left, beside), write(f"b.{other}", left, beside)).equal


def test_what_is_read_as_decimals_is_said_with_the_cast_that_compares_doubles(write: Write) -> None:
    one, other = write("a.jsonl", "0.1", "2.5"), write("b.jsonl", "0.10000000000000001", "2.5")
    result = checked(one, other)
    assert result.changed == 1
    assert result.conversions == (
        "column v: number in both read as decimal, as a double would round one (--cast to double compares doubles)",
    )
    assert checked(one, other, cast={"v": "double"}).equal
    decimals = write("c.parquet", "0.1", "2.5", kind=WIDE)
    assert checked(one, decimals).conversions == ("column v: number in expected read as decimal, as actual has it",)


def test_numbers_of_json_are_the_doubles_that_they_were_written_from(write: Write) -> None:
    values = [0.1 + 0.2, 1234567890123456.7, 1.2345678901234567e-05, 1e300, 5e-324, -2.0]
    texts = write("a.jsonl", *map(repr, values))
    assert checked(texts, write("b.parquet", *map(repr, values), kind=pa.float64())).equal
    assert checked(texts, texts).equal
    infinite = write("c.jsonl", "0.30000000000000004", "NaN", "-Infinity")
    assert checked(infinite, write("d.parquet", "0.30000000000000004", "nan", "-inf", kind=pa.float64())).equal


def test_numbers_of_json_beside_floats_of_32_bits_are_read_as_such(write: Write) -> None:
    values = [str(value) for value in np.array([0.1, 3.3, 123456792, 1e-7], "float32")]
    floats = write("b.parquet", *values, kind=pa.float32())
    result = checked(write("a.jsonl", *values), floats)
    assert result.equal
    assert result.conversions == ("column v: number in expected read as float of 32 bits, as actual has it",)
    assert checked(write("a.jsonl", "0.1000000015", *values[1:]), floats).equal
    assert checked(write("a.jsonl", "0.1001", *values[1:]), floats).changed == 1
    with pytest.raises(CheckInputError, match=r"holds 1e\+300, which no float of 32 bits is"):
        checked(write("a.jsonl", "1e300", *values[1:]), floats)


@pytest.mark.parametrize("cast", ["decimal(38,30)", "string"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_cast_reads_the_digits_that_stand_in_the_file(write: Write, ending: str, cast: str) -> None:
    texts = write("b.parquet", LONG, "1.500000000000000000000000000000", kind=pa.string())
    assert checked(write(f"a.{ending}", LONG, "1.500000000000000000000000000000"), texts, cast={"v": cast}).equal
    assert checked(write(f"a.{ending}", LONG, "1.5"), texts, cast={"v": cast}).changed == (cast == "string")


def test_a_cast_to_text_keeps_what_stands_in_lists_and_objects(write: Write) -> None:
    one = write("a.jsonl", '[1.10,{"x":1e400}]', '"y"', "0.1")
    texts = write("b.parquet", '[1.10,{"x":1e400}]', "y", "0.1", kind=pa.string())
    assert checked(one, texts, cast={"v": "string"}).equal


def test_a_cast_rounds_nothing(write: Write) -> None:
    numbers = write("a.parquet", "1.129", "2", kind=pa.float64())
    with pytest.raises(CheckInputError, match=r"holds 1\.129, which no decimal is"):
        checked(numbers, numbers, cast={"v": "decimal(10,2)"})
    assert checked(numbers, write("b.jsonl", "1.129", "2"), cast={"v": "decimal(10,3)"}).equal
    whole = write("a.csv", "2.0", "3")
    assert checked(whole, write("b.jsonl", "2", "3.0"), cast={"v": "bigint"}).equal
    with pytest.raises(CheckInputError, match=r"holds '2\.5', which no bigint is"):
        checked(write("a.csv", "2.5", "3"), whole, cast={"v": "bigint"})


@pytest.mark.parametrize(
    ("actual", "kind", "hint"),
    [
        (("1.10", "2.5"), pa.string(), "--cast v=decimal(38,30) values"),
        (("1.10", "?"), pa.string(), ""),
    ],
)
def test_the_hint_names_the_decimals_that_hold_both_sides(
    write: Write, actual: tuple[str, ...], kind: Any, hint: str
) -> None:
    one, other = write("a.parquet", LONG, "2.5", kind=WIDE), write("b.parquet", *actual, kind=kind)
    with pytest.raises(CheckInputError, match="--cast v=string compares texts") as raised:
        checked(one, other)
    assert ("--cast v=decimal" in str(raised.value)) == bool(hint)
    assert hint in str(raised.value)
    if hint:
        assert checked(one, other, cast={"v": "decimal(38,30)"}).changed == 1


def test_the_hint_widens_the_decimals_to_those_of_the_texts(write: Write) -> None:
    one = write("a.parquet", "1.10", kind=pa.decimal128(10, 2))
    with pytest.raises(CheckInputError) as raised:
        checked(one, write("b.parquet", "1.1001", kind=pa.string()))
    assert "--cast v=decimal(12,4) values" in str(raised.value)
    with pytest.raises(CheckInputError) as raised:
        checked(write("a.jsonl", LONG), write("b.parquet", "1.5", kind=pa.string()))
    assert "--cast v=decimal(31,30) values" in str(raised.value)


@pytest.mark.parametrize("nested", ["[%s, 2]", '{"x": %s}', '[{"x": [%s], "y": "12345678901234567890"}]'])
def test_numbers_in_lists_and_objects_keep_their_digits(write: Write, nested: str) -> None:
    kinds = {"[": pa.list_(WIDE), '{"': pa.struct({"x": WIDE})}
    kind = kinds.get(nested[:2].replace("[%", "["), pa.list_(pa.struct({"x": pa.list_(WIDE), "y": pa.string()})))
    one, same = write("a.jsonl", nested % LONG, "null"), write("b.jsonl", nested % LONG, "null")
    assert checked(one, same).equal
    for other in ("1.0", "1.000000000000000000000000000002"):
        assert checked(one, write("b.jsonl", nested % other, "null")).changed == 1
    for number, equal in ((LONG, True), ("1", False)):
        value = json.loads(nested % number, parse_float=Decimal)
        column = pa.array([value, None], kind)
        pq.write_table(pa.table({"k": [0, 1], "v": column}), path := one.with_name("c.parquet"))
        assert checked(one, path).equal is equal
        assert checked(path, write("d.jsonl", nested % "1.1", "null")).changed == 1


def test_lists_of_doubles_are_equal_to_their_texts(write: Write) -> None:
    values = [[0.1 + 0.2, 1e300], [1 / 3]]
    path = write("a.jsonl", *map(repr, values))
    pq.write_table(pa.table({"k": [0, 1], "v": values}), path.with_name("b.parquet"))
    assert checked(path, path.with_name("b.parquet")).equal
    decimals = [[Decimal("0.1234567890123456789")], [Decimal("0.3")]]
    pq.write_table(pa.table({"k": [0, 1], "v": decimals}), path.with_name("c.parquet"))
    floats = [[float(value) for value in row] for row in decimals]
    pq.write_table(pa.table({"k": [0, 1], "v": floats}), path.with_name("d.parquet"))
    assert checked(path.with_name("c.parquet"), path.with_name("d.parquet")).equal


@pytest.mark.parametrize("chunk", [1, 60, 1 << 20])
def test_digits_are_kept_wherever_a_read_of_json_ends(
    write: Write, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "CHUNK_BYTES", chunk)
    values = ["1", "2.5", "null", "1.00000000000000001", "12345678901234567890", "3e-5"]
    one = write("a.jsonl", *values)
    assert checked(one, write("b.csv", *(value.replace("null", "") for value in values))).equal
    assert checked(one, write("b.jsonl", *values[:3], "1", *values[4:])).changed == 1
    lists = write("c.jsonl", *(f"[{value}]" for value in values[:4]))
    assert checked(lists, write("d.jsonl", *(f"[{value}]" for value in values[:3]), "[1]")).changed == 1


def test_columns_of_any_name_keep_their_digits(tmp_path: Path) -> None:
    for name in ('a"b', "a\\b", "", "ä", "f0", "__init__", "a b"):
        for side, number in (("a", LONG), ("b", "1.0")):
            (tmp_path / f"{side}.jsonl").write_text(json.dumps({"k": 1, name: "@"}).replace('"@"', number) + "\n")
        assert checked(tmp_path / "a.jsonl", tmp_path / "b.jsonl").changed == 1, name


@pytest.mark.parametrize("beside", ["1234567890", "NaN"])
def test_numbers_of_json_that_no_type_holds_are_refused(write: Write, beside: str) -> None:
    one = write("a.jsonl", LONG, beside)
    with pytest.raises(
        CheckInputError, match="the column v has numbers that have no type: neither doubles nor decimals of 38 digits"
    ):
        checked(one, write("b.jsonl", "1.5", "2"))
    assert checked(one, one, cast={"v": "string"}).equal


NUMBERS = (
    *("0", "-0.0", "1", "-1", "1.1", "0.1", "0.10000000000000001", "0.30000000000000004", "1e-7", "2.5E+3", "1e22"),
    *("1.1000000000000000000001", "0.1234567890123456789", "1.2345678901234567e-10", "12345678901234567.5"),
    *("12345678901234567", "12345678901234568", "12345678901234567890", "9007199254740993", "9007199254740992"),
)


def spelt(number: str, how: str) -> str:
    """The same number, written otherwise."""
    value = Decimal(number)
    return {
        "as it is": number,
        "with zeros": f"{value:f}" + ("0" if "." in f"{value:f}" else ".0"),
        "plain": f"{value:f}",
        "with a power": f"{value:e}",
    }[how]


REFUSED = ("neither doubles nor", "unlike types", "which no double is", "which no decimal is")
SPELT = st.sampled_from(["as it is", "with zeros", "plain", "with a power"])
SIDE = st.sampled_from([".csv", ".jsonl", ".parquet"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from(NUMBERS), SPELT, SPELT), min_size=1, max_size=4),
    other=st.none() | st.tuples(st.integers(0, 3), st.sampled_from(NUMBERS)),
    sides=st.tuples(SIDE, SIDE),
)
def test_numbers_are_equal_if_and_only_if_they_are_the_same(write: Write, rows: Any, other: Any, sides: Any) -> None:
    one, two = [row[0] for row in rows], [row[0] for row in rows]
    if other:
        two[other[0] % len(two)] = other[1]
    words = ([spelt(n, row[1]) for n, row in zip(one, rows, strict=True)],
             [spelt(n, row[2]) for n, row in zip(two, rows, strict=True)])  # fmt: skip
    kind = pa.array([Decimal(number) for number in one + two]).type
    assume(".parquet" not in sides or pa.types.is_decimal128(kind))  # else no decimal holds all of them
    paths = [write(f"{name}{side}", *texts, kind=kind) for name, side, texts in zip("ab", sides, words, strict=True)]
    same = [Decimal(n) for n in one] == [Decimal(n) for n in two]
    try:
        result = checked(*paths)
    except CheckInputError as error:
        refused = str(error)
    else:
        refused = ""
        as_text = any("compared as text" in line for line in result.conversions)
        assert result.equal == same or (same and as_text), (paths[0].read_text(), paths[1].read_text(), result)
    assert not refused or any(words in refused for words in REFUSED), refused


def test_numbers_of_csv_that_no_type_holds_are_compared_as_text_and_that_is_said(write: Write) -> None:
    one = write("a.csv", LONG, "1234567890")
    line = "column v: number in both compared as text: neither doubles nor decimals of 38 digits hold all of them"
    assert line in checked(one, one).conversions
    both = one.with_name("c.csv")
    both.write_text(f"k,u,v\n0,{LONG},{LONG}\n1,1234567890,1234567890\n")
    assert line.replace("column v", "columns u, v") in checked(both, both).conversions
    short = line.replace("both", "expected")
    assert short in checked(one, write("b.csv", "1.5", "2")).conversions
