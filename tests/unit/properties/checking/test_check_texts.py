"""As what columns of texts are compared: nothing is rounded unsaid, and what is empty is empty."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cutproof.properties.checking.comparison import compare
from cutproof.properties.checking.errors import CheckInputError
from cutproof.properties.checking.pair import Pair
from cutproof.properties.checking.request import CheckRequest, CheckResult


def checked(expected: Path, actual: Path, **how: Any) -> CheckResult:
    return compare(Pair(CheckRequest(expected=expected, actual=actual, **how))).result


def csv_of(path: Path, *values: str) -> Path:
    """A column `v` of these fields beside a column `k` of their numbers."""
    path.write_text("k,v\n" + "".join(f"{place},{value}\n" for place, value in enumerate(values)))
    return path


def parquet_of(path: Path, values: Any) -> Path:
    pq.write_table(pa.table({"k": list(range(len(values))), "v": values}), path)
    return path


def one_value(path: Path, kind: str, value: str | None) -> Path:
    if kind == "csv":
        return csv_of(path, "" if value is None else '""')
    if kind == "json":
        path.write_text('{"k": 0, "v": null}\n' if value is None else '{"k": 0, "v": ""}\n')
        return path
    return parquet_of(path, pa.array([value], pa.string() if kind == "parquet text" else pa.null()))


SUFFIX = {"csv": ".csv", "json": ".json", "parquet text": ".parquet", "parquet null": ".parquet"}
EMPTY = [(kind, value) for kind in SUFFIX for value in ("", None) if (kind, value) != ("parquet null", "")]


@pytest.mark.parametrize("empty_is_null", [False, True])
@pytest.mark.parametrize(("theirs", "other"), EMPTY)
@pytest.mark.parametrize(("ours", "one"), EMPTY)
def test_empty_texts_and_null(
    tmp_path: Path, ours: str, one: str | None, theirs: str, other: str | None, empty_is_null: bool
) -> None:
    expected = one_value(tmp_path / f"a{SUFFIX[ours]}", ours, one)
    actual = one_value(tmp_path / f"b{SUFFIX[theirs]}", theirs, other)
    assert checked(expected, actual, empty_is_null=empty_is_null).equal == (one == other or empty_is_null)


@pytest.mark.parametrize(
    ("one", "other", "opposite"),
    [
        ("123456789012345678", "123456789012345679", "1.5"),
        ("12345678901234567", "12345678901234568", "1.5"),
        ("0.12345678901234567", "0.12345678901234568", "1.5"),
        ("9007199254740992", "9007199254740993", "1e-7"),
        ("9007199254740992", "9007199254740993", "inf"),
    ],
)
def test_long_numbers_of_two_csv_files_are_not_rounded(tmp_path: Path, one: str, other: str, opposite: str) -> None:
    result = checked(csv_of(tmp_path / "a.csv", one, opposite), csv_of(tmp_path / "b.csv", other, opposite), key=("k",))
    assert (result.held, result.changed) == (False, 1)


def test_long_numbers_in_one_file_of_a_folder_are_not_rounded(tmp_path: Path) -> None:
    for side, number in (("a", "123456789012345678"), ("b", "123456789012345679")):
        (tmp_path / side).mkdir()
        csv_of(tmp_path / side / "1.csv", number)
        csv_of(tmp_path / side / "2.csv", "1.5")
    assert not checked(tmp_path / "a", tmp_path / "b").held


def test_a_whole_number_that_no_double_is_is_refused_among_doubles(tmp_path: Path) -> None:
    actual = parquet_of(tmp_path / "b.parquet", [9007199254740992.0, 1.5])
    with pytest.raises(CheckInputError, match="holds '9007199254740993', which no double is"):
        checked(csv_of(tmp_path / "a.csv", "9007199254740993", "1.5"), actual)
    assert checked(csv_of(tmp_path / "a.csv", "9007199254740992", "1.5"), actual).equal


def test_doubles_of_seventeen_digits_are_equal_to_their_texts(tmp_path: Path) -> None:
    values = [0.1 + 0.2, 1234567890123456.7, 1.2345678901234567e-05, 1e300, float("inf")]
    texts = csv_of(tmp_path / "a.csv", *map(repr, values))
    assert checked(texts, parquet_of(tmp_path / "b.parquet", values)).equal


@pytest.mark.parametrize("other", ["inf", "1e401"])
def test_a_number_greater_than_any_double_is_refused(tmp_path: Path, other: str) -> None:
    with pytest.raises(CheckInputError, match=r"holds '1e40[01]', which no double is"):
        checked(csv_of(tmp_path / "a.csv", "1e400"), csv_of(tmp_path / "b.csv", other))


def test_every_writing_of_infinity_is_one_value(tmp_path: Path) -> None:
    one = csv_of(tmp_path / "a.csv", "inf", "-inf", "1.5")
    assert checked(one, csv_of(tmp_path / "b.csv", "Infinity", "-INF", "1.5")).equal


def test_texts_compared_with_floats_of_32_bits_are_read_as_such(tmp_path: Path) -> None:
    actual = parquet_of(tmp_path / "b.parquet", np.array([0.1, 0.2, 3.3], dtype="float32"))
    result = checked(csv_of(tmp_path / "a.csv", "0.1", "0.2", "3.3"), actual)
    assert result.equal
    assert "column v: text in expected read as float of 32 bits, as actual has it" in result.conversions
    assert not checked(csv_of(tmp_path / "a.csv", "0.1", "0.2", "3.4"), actual).equal


def test_times_with_and_without_a_zone_in_one_column_are_times(tmp_path: Path) -> None:
    one = csv_of(tmp_path / "a.csv", "2020-01-01T00:00:00Z", "2020-01-01 02:00:00", "2020-01-01")
    other = csv_of(tmp_path / "b.csv", "2020-01-01 00:00:00", "2020-01-01 03:00:00+01:00", "2020-01-01 00:00:00Z")
    result = checked(one, other)
    assert result.equal
    assert any("a time without a zone as UTC" in line for line in result.conversions)
    day = datetime(2020, 1, 1, tzinfo=UTC)
    times = pa.array([day, day.replace(hour=2), day], pa.timestamp("us", "UTC"))
    assert checked(one, parquet_of(tmp_path / "c.parquet", times)).equal


def json_of(path: Path, *values: str) -> Path:
    path.write_text("".join(f'{{"k": {place}, "v": "{value}"}}\n' for place, value in enumerate(values)))
    return path


@pytest.mark.parametrize("ours", [csv_of, json_of])
@pytest.mark.parametrize("theirs", [csv_of, json_of])
def test_times_of_day_are_recognised(tmp_path: Path, ours: Any, theirs: Any) -> None:
    one = ours(tmp_path / f"a.{ours.__name__[:-3]}", "12:30:00", "23:59:59.5", "08:15")
    other = theirs(tmp_path / f"b.{theirs.__name__[:-3]}", "12:30:00.000000", "23:59:59.500000000", "08:15:00")
    result = checked(one, other, key=("k",))
    assert result.equal
    assert "column v: text in both read as time" in result.conversions
    changed = theirs(tmp_path / f"b.{theirs.__name__[:-3]}", "12:30:00.000001", "23:59:59.5", "08:15:00")
    assert checked(one, changed, key=("k",)).changed == 1
    times = parquet_of(
        tmp_path / "c.parquet", pa.array([45_000_000_000, 86_399_500_000, 29_700_000_000], pa.time64("us"))
    )
    assert checked(one, times).equal


@pytest.mark.parametrize("odd", ["25:00:00", "12:60", "1:30:00", "12:30:00Z", "noon", "12:30:00.0000000001"])
def test_what_is_no_time_of_day_keeps_its_column_text(tmp_path: Path, odd: str) -> None:
    one = csv_of(tmp_path / "a.csv", "12:30:00", odd)
    assert checked(one, csv_of(tmp_path / "b.csv", "12:30:00.0", odd), key=("k",)).changed == 1
    times = csv_of(tmp_path / "c.csv", "12:30:00", "12:31:00")
    lines = checked(one, times, key=("k",)).conversions
    assert f"column v: time in actual compared as text: expected has {odd!r}, which is not a time" in lines


@pytest.mark.parametrize("text", ["1,5", "-1.234,50"])
def test_a_decimal_comma_has_a_hint(tmp_path: Path, text: str) -> None:
    one, hint = tmp_path / "a.csv", r"numbers are read with a decimal point, not with a comma"
    one.write_text(f"k;v\n0;{text}\n")
    how: dict[str, Any] = {"delimiters": {"expected": ";"}}
    for kind in (pa.float64(), pa.decimal128(10, 2)):
        actual = parquet_of(tmp_path / "b.parquet", pa.array([1], pa.int8()).cast(kind))
        with pytest.raises(CheckInputError, match=hint):
            checked(one, actual, **how)
        with pytest.raises(CheckInputError, match=hint):
            checked(one, actual, cast={"v": "double"}, **how)
    assert hint in "".join(checked(one, csv_of(tmp_path / "c.csv", "1.5"), **how).conversions)
    one.write_text("k;v\n0;a,5\n")
    with pytest.raises(CheckInputError, match="'a,5', which is not a number") as raised:
        checked(one, parquet_of(tmp_path / "b.parquet", pa.array([1.5])), **how)
    assert hint not in str(raised.value)


@pytest.mark.parametrize("cast", [{}, {"v": "string"}])
@pytest.mark.parametrize("value", ['"\\ud800"', '["x\\ud800"]', '{"\\udfff": 1}'])
def test_half_a_surrogate_pair_is_named_with_what_helps(tmp_path: Path, value: str, cast: dict[str, str]) -> None:
    one, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    one.write_text(f'{{"k": 1, "v": "x"}}\n{{"k": 2, "v": {value}}}\n'.replace('"x"', value.replace("\\ud", "d")))
    other.write_text('{"k": 1, "v": "x"}\n{"k": 2, "v": "y"}\n')
    with pytest.raises(
        CheckInputError, match=r"a\.jsonl: line 2: .*half a surrogate pair.*--ignore v leaves"
    ) as raised:
        checked(one, other, cast=cast)
    assert "--cast" not in str(raised.value)
    str(raised.value).encode()
    assert checked(one, other, ignore=("v",)).equal
