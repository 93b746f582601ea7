"""What makes a check quick changes nothing of what it finds."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutproof.properties.checking import texts
from cutproof.properties.checking.arrays import no_rows, number, text, to_arrow, to_numpy
from cutproof.properties.checking.comparison import differences
from cutproof.properties.checking.pair import by_column
from cutproof.properties.checking.request import COUNT, IS_EXPECTED

TEXTS = (
    *("0", "7", "-7", "007", "+7", "0x1f", "9007199254740993", "123456789012345678901"),
    *("1.5", "-0.25", "1e5", "1e400", "nan", "inf", "0.1234567890123456789"),
    *("true", "False", "t", "2020-01-01", "2020-01-01 12:00:00", "2020-01-01T12:00:00Z"),
    *("2020-01-01 12:00:00.123456789", "2020-13-01", "word", " 7", "7 ", "", None),
)  # fmt: skip


@given(
    most=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3),
    times=st.integers(1, 5),
    last=st.sampled_from(TEXTS),
    few=st.integers(1, 4),
    exact=st.booleans(),
)
def test_what_texts_are_does_not_depend_on_how_many_are_looked_at_first(
    most: list[str | None], times: int, last: str | None, few: int, exact: bool
) -> None:
    values = most * times + [last]
    column = pa.chunked_array([pa.array(values[:2], texts.TEXT), pa.array(values[2:], texts.TEXT)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "FEW", len(values))
        careful = texts.facts_of(column, exact=exact)
        patch.setattr(texts, "FEW", few)
        assert texts.facts_of(column, exact=exact) == careful


ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([None, "a", "b"]), st.sampled_from([0.0, 1.0])), max_size=8
)


def table_of(rows: list[Any]) -> Any:
    names = ("k", "word", "price")
    columns = [[row[place] for row in rows] for place in range(3)]
    kinds = (pa.int64(), texts.TEXT, pa.float64())
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names=names)


@given(ROWS, ROWS, st.booleans())
def test_differing_rows_are_those_that_counting_each_row_finds(expected: Any, actual: Any, once: bool) -> None:
    if once:  # a key that names each row: rows are compared side by side
        expected, actual = (list({row[0]: row for row in rows}.values()) for rows in (expected, actual))
        expected.sort(key=lambda row: row[0])
    wanted, found = Counter(expected), Counter(actual)
    counts = {row: wanted[row] - found[row] for row in wanted | found if wanted[row] != found[row]}
    rows = differences(table_of(expected), table_of(actual), ("k",)).to_pylist()
    assert Counter({tuple(row[name] for name in ("k", "word", "price")): row[COUNT] for row in rows}) == Counter(counts)
    assert len(rows) == len(counts)
    assert all(row[IS_EXPECTED] == (tuple(row.values())[:3] in wanted) for row in rows)


@pytest.mark.parametrize("values", [[True, False, True], [1, -2, 3], [0.5, float("inf"), -0.0], []])
def test_numbers_go_to_arrow_and_back(values: list[Any]) -> None:
    array = np.array(values)
    for start in range(len(values) + 1):
        assert to_arrow(array).equals(pa.array(array))
        assert to_numpy(pa.chunked_array([to_arrow(array).slice(start)])).tolist() == values[start:]
        assert to_numpy(pa.chunked_array([to_arrow(array)[:start], to_arrow(array)[start:]])).tolist() == values


def test_floats_of_32_bits_go_to_numpy() -> None:
    assert to_numpy(pa.chunked_array([pa.array([0.5, -2.0], pa.float32())]).slice(1)).tolist() == [-2.0]


def test_what_has_a_null_is_no_number() -> None:
    with pytest.raises(ValueError, match="NULL"):
        to_numpy(pa.array([1, None]))


def test_scalars_are_those_that_pyarrow_makes() -> None:
    assert text("ä").equals(pa.scalar("ä", pa.large_string()))
    assert text("").equals(pa.scalar("", pa.large_string()))
    assert number(-3).equals(pa.scalar(-3, pa.int64()))
    schema = pa.schema([("a", pa.list_(pa.float64())), ("b", pa.decimal128(5, 2)), ("c", pa.timestamp("us", "UTC"))])
    assert no_rows(schema).equals(schema.empty_table())


def test_of_several_columns_that_are_refused_the_first_is_named() -> None:
    def refuse(name: str) -> str:
        if name == "fine":
            return name
        raise ValueError(name)

    assert by_column(str.upper, ["b", "a"]) == {"b": "B", "a": "A"}
    with pytest.raises(ValueError, match="first"):
        by_column(refuse, ["fine", "first", "second"])


CHECK = """
import sys
from cutproof.harness.cli.entry import main
code = main(sys.argv[1:])
slow = ("pandas", "pyspark", "cutproof.harness.scenario.model")
print(*(name for name in slow if name in sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("code", [0, 1])
def test_a_check_without_spark_imports_nothing_slow_that_it_does_not_need(tmp_path: Path, code: int) -> None:
    (tmp_path / "a.csv").write_text("k,price,at\n1,2.5,2020-01-01\n2,3.5,2020-01-02\n")
    table = pa.table({"k": [2, 1], "price": [3.5 + code, 2.5], "at": ["2020-01-02", "2020-01-01"]})
    pq.write_table(table, tmp_path / "b.parquet")
    words = ["check", "--expected", str(tmp_path / "a.csv"), "--actual", str(tmp_path / "b.parquet"), "--key", "k"]
    done = subprocess.run([sys.executable, "-c", CHECK, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (code, ""), done.stdout
