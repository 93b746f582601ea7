"""The files that others write: CSV of pandas, DuckDB and Excel, JSON lines, Parquet; what is broken is told by line."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from time import process_time
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cutproof.properties.checking.comparison import compare
from cutproof.properties.checking.errors import CheckInputError
from cutproof.properties.checking.pair import Pair
from cutproof.properties.checking.request import CheckRequest, CheckResult
from cutproof.properties.checking.sources import csv_files

WRITTEN = Path(__file__).parent.parent / "tables"
"""One table as pandas 2.3, DuckDB 1.4 and Excel (in a country of semicolons) write it."""


def checked(expected: Path, actual: Path, **how: Any) -> CheckResult:
    return compare(Pair(CheckRequest(expected=expected, actual=actual, **how))).result


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """A function that writes a file, of text, bytes or a table, and returns its path."""

    def written(name: str, content: Any) -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_bytes(content.encode())
        else:
            pq.write_table(content if isinstance(content, pa.Table) else pa.table(content), path)
        return path

    return written


FILES = ("pandas.parquet", "pandas.csv", "pandas.jsonl", "duckdb.parquet", "duckdb.csv", "duckdb.jsonl", "excel.csv")


@pytest.mark.parametrize("actual", FILES)
@pytest.mark.parametrize("expected", FILES)
def test_one_table_is_equal_however_it_was_written(expected: str, actual: str) -> None:
    names = {"expected": expected, "actual": actual}
    delimiters = {side: ";" for side, name in names.items() if name == "excel.csv"}
    result = checked(WRITTEN / expected, WRITTEN / actual, key=("id",), delimiters=delimiters)
    assert result.equal, result.samples
    assert (result.expected_rows, result.actual_rows) == (6, 6)
    assert result.engine == "arrow"


def test_conversions_are_reported_by_column() -> None:
    result = checked(WRITTEN / "pandas.csv", WRITTEN / "duckdb.parquet", key=("id",))
    assert result.conversions == (
        "columns id, n: text in expected read as bigint, as actual has it",
        "column ts: text in expected read as timestamp, as actual has it",
        "column day: text in expected read as date, as actual has it",
        "column price: text in expected read as decimal, as actual has it",
        "column x: text in expected read as double, as actual has it",
        "column ok: text in expected read as boolean, as actual has it",
    )


def test_csv_is_read_as_rfc_4180_has_it(write: Any) -> None:
    text = '\ufeff"a",b\r\n"say ""hi""",1\r\n"two\r\nlines",2\r\n"a,b",3\r\n'
    table = {"a": ['say "hi"', "two\r\nlines", "a,b"], "b": [1, 2, 3]}
    assert checked(write("a.csv", text), write("b.parquet", table)).equal


def test_a_hundred_thousand_quotes_are_one_table(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"id": range(100_000), "said": [f'say "{n}",\n{n}' if n % 4 else str(n) for n in range(100_000)]}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "b.csv", index=False, quoting=csv.QUOTE_ALL)
    frame.to_parquet(tmp_path / "c.parquet")
    for actual in ("b.csv", "c.parquet"):
        assert checked(tmp_path / "a.csv", tmp_path / actual, key=("id",)).equal


def test_null_and_empty_text_are_two_things(write: Any) -> None:
    table = write("t.parquet", {"a": [None, "", "x"], "b": [1, 2, 3]})
    assert checked(write("a.csv", 'a,b\n,1\n"",2\nx,3\n'), table).equal
    bare = write("b.csv", "a,b\n,1\n,2\nx,3\n")
    result = checked(bare, table, key=("b",))
    assert (result.changed, result.columns[0].empty) == (1, 1)
    assert "--empty-is-null takes them for one" in result.warnings[-1]
    assert checked(bare, table, key=("b",), empty_is_null=True).equal
    assert checked(write("c.csv", "a,b\nNA,1\n,2\nx,3\n"), table, nulls=("NA",)).equal
    quoted = write("d.csv", 'a,b\n"NA",1\nNA,2\n')
    assert checked(quoted, write("u.parquet", {"a": ["NA", None], "b": [1, 2]}), nulls=("", "NA")).equal


def test_a_number_that_is_quoted_and_empty_is_null(write: Any) -> None:
    result = checked(write("a.csv", 'a,b\n"1","x"\n"","y"\n'), write("t.parquet", {"a": [1, None], "b": ["x", "y"]}))
    assert result.equal
    assert "empty texts as NULL" in result.conversions[0]


def test_leading_zeros_are_kept(write: Any) -> None:
    zeros, plain = write("a.csv", "zip,n\n01234,1\n"), write("b.csv", "zip,n\n1234,1\n")
    result = checked(zeros, plain)
    assert (result.lost, result.unexpected) == (1, 1)
    assert (
        "column zip: bigint in actual compared as text: expected has '01234', which is not a whole number"
        in result.conversions
    )
    with pytest.raises(
        CheckInputError,
        match=r"the column zip is of unlike types: .*has '01234', which is not a whole number.*--cast zip=string",
    ):
        checked(zeros, write("t.parquet", {"zip": [1234], "n": [1]}))
    assert checked(zeros, write("u.parquet", {"zip": [1234], "n": [1]}), cast={"zip": "bigint"}).equal


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a\n1\n2.5\n", "a\n1.0\n2.50\n", True),
        ("a\n1e3\n", "a\n1000\n", True),
        ("a\n12345678901234567890\n", "a\n12345678901234567891\n", False),
        ("a\n0.1234567890123456789\n", "a\n0.1234567890123456788\n", False),
        ("a\n0.30000000000000004\n", "a\n0.3\n", False),
        ("a\n2020-01-01 00:00:00\n", "a\n2020-01-01T00:00:00Z\n", True),
        ("a\n2020-01-01\n", "a\n2020-01-01 00:00:00\n", True),
        ("a\n2020-01-01 02:00:00+02:00\n", "a\n2020-01-01T00:00:00Z\n", True),
        ("a\n2020-01-01T00:00:00.000000001\n", "a\n2020-01-01T00:00:00\n", False),
        ("a\nTrue\n", "a\ntrue\n", True),
        ("a\n0x10\n", "a\n16\n", False),
        ("a\n+1\n", "a\n1\n", False),
    ],
)  # fmt: skip
def test_texts_of_two_files_are_compared_as_what_all_of_them_are(
    write: Any, expected: str, actual: str, same: bool
) -> None:
    assert checked(write("a.csv", expected), write("b.csv", actual)).equal is same


NS = pa.timestamp("ns")


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (pa.array([1, None]), pa.array([1.0, None])),
        (pa.array([1], pa.int32()), pa.array([1], pa.uint64())),
        (pa.array([Decimal("3.30")]), pa.array([3.3])),
        (pa.array([Decimal("3.30")]), pa.array([Decimal("3.3000")])),
        (pa.array([7], pa.int64()), pa.array([Decimal("7.00")])),
        (pa.array([1_000], NS), pa.array([1], pa.timestamp("us"))),
        (pa.array([1_000], NS), pa.array([1], pa.timestamp("us", "UTC"))),
        (pa.array([date(2020, 1, 1)]), pa.array([datetime(2020, 1, 1)])),
        (pa.array([datetime(2020, 1, 1, tzinfo=UTC)]), pa.array(["2020-01-01T01:00:00+01:00"])),
        (pa.array([time(1, 2, 3)]), pa.array(["01:02:03"])),
        (pa.array(["x", None]).dictionary_encode(), pa.array(["x", None], pa.large_string())),
        (pa.array([0.5], pa.float32()), pa.array([0.5])),
        (pa.array([float("nan"), -0.0]), pa.array([0.0, float("nan")])),
        (pa.array([[1, None], None]), pa.array([[1, None], None], pa.large_list(pa.int32()))),
        (pa.array([{"a": 1.0, "b": "x"}]), pa.array([{"a": 1.0, "b": "x"}])),
        (pa.array([[("k", 0.0), ("l", 1.0)]], pa.map_(pa.string(), pa.float64())),
         pa.array([[("l", 1.0), ("k", -0.0)]], pa.map_(pa.string(), pa.float64()))),
        (pa.array([b"x"]), pa.array([b"x"], pa.large_binary())),
        (pa.array([5], pa.duration("us")), pa.array([5_000], pa.duration("ns"))),
        (pa.nulls(2), pa.array([None, None], pa.int64())),
    ],
)  # fmt: skip
def test_types_that_hold_the_same_values_are_brought_together(write: Any, expected: Any, actual: Any) -> None:
    assert checked(write("a.parquet", {"a": expected}), write("b.parquet", {"a": actual})).equal


@pytest.mark.parametrize(
    ("expected", "actual", "hint"),
    [
        (pa.array(["1"]), pa.array([1]), "--cast a=bigint"),
        (pa.array([True]), pa.array([1]), "--cast a=string"),
        (pa.array([1.5]), pa.array(["1.5"]), "--cast a=double"),
        (pa.array([b"x"]), pa.array(["x"]), "--cast a=string"),
        (pa.array([2**53 + 1]), pa.array([1.0]), "9007199254740993, which no double is"),
        (pa.array(["soon"]), pa.array([datetime(2020, 1, 1)]), "'soon', which no timestamp is"),
    ],
)
def test_other_types_are_refused_with_a_hint(write: Any, expected: Any, actual: Any, hint: str) -> None:
    with pytest.raises(CheckInputError, match="the column a") as raised:
        checked(write("a.parquet", {"a": expected}), write("b.parquet", {"a": actual}))
    assert hint in str(raised.value)
    assert "--cast a=string" in str(raised.value)
    assert len(str(raised.value)) <= 300


def test_a_cast_decides(write: Any) -> None:
    texts, numbers = write("a.parquet", {"a": ["1", "02"]}), write("b.parquet", {"a": [1, 2]})
    result = checked(texts, numbers, cast={"a": "bigint"})
    assert result.equal
    assert result.conversions == ("column a: text in expected read as bigint, as --cast has it",)
    assert checked(texts, numbers, cast={"a": "string"}).lost == 1
    with pytest.raises(CheckInputError, match=r"there is no type 'number' to cast to; there are string, bigint"):
        checked(texts, numbers, cast={"a": "number"})
    mixed = write("m.jsonl", '{"a":1}\n{"a":"x"}\n')
    assert checked(mixed, write("n.csv", "a\n1\nx\n"), cast={"a": "string"}).equal


def test_old_parquet_times_are_read(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([datetime(1, 1, 1), datetime(9999, 12, 31)], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(table, tmp_path / "new.parquet")
    assert checked(tmp_path / "old.parquet", tmp_path / "new.parquet").equal


def test_folders_name_columns_and_keep_their_zeros(tmp_path: Path) -> None:
    for part in ("day=01", "day=10", "day=__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / "t" / part).mkdir(parents=True)
        pq.write_table(pa.table({"a": [1]}), tmp_path / "t" / part / "x.parquet")
    (tmp_path / "e.csv").write_text("day,a\n01,1\n10,1\n,1\n")
    assert checked(tmp_path / "e.csv", tmp_path / "t").equal


BIG = 12345678901234567890


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.jsonl", b'{"a":1}\n{"a":2,,}\n', "b.jsonl: line 2: no JSON"),
        ("b.jsonl", b'{"a":1}\n{"a":', "b.jsonl: line 2: no JSON"),
        ("b.jsonl", b'{"a":1}\n[1]\n', "b.jsonl: line 2: a list, where JSON lines have an object"),
        ("b.json", b'[{"a":1}]', "b.json: line 1: a list, where JSON lines have an object"),
        ("b.jsonl", b'{"a":1}\n\n{"a":"x"}\n', "b.jsonl: line 3: the column a holds a text, and a number before"),
        ("b.jsonl", b'{"a":1,"a":2}\n', "b.jsonl: line 1: a key stands twice"),
        ("b.jsonl", b'{"a":1}\n{"b":"\xff"}\n', "b.jsonl: line 2: byte 0xff is no UTF-8"),
        ("b.jsonl", b'{"a":1}\nnull\n', "b.jsonl: line 2: null, where JSON lines have an object"),
        ("b.jsonl", b'true\n', "b.jsonl: line 1: true, where JSON lines have an object"),
        ("b.jsonl", b"[" * 100_000, "b.jsonl: line 1: "),
        ("b.jsonl", b"", "b.jsonl is empty"),
        ("b.csv", b"a\n1\n2,3\n", "b.csv: line 3: 2 fields, where the header has 1"),
        ("b.csv", b'a,b\n"x\ny",1\n2\n', "b.csv: line 4: 1 field, where the header has 2"),
        ("b.csv", b'a,b\n1,"2\n3,4\n', "b.csv: line 2: a quote is opened in this record and never closed"),
        ("b.csv", b"a\n1\n\xe9\n", "b.csv: line 3: byte 0xe9 is no UTF-8"),
        ("b.csv", b"\xff\xfea\x00", "b.csv: line 1: byte 0xff is no UTF-8"),
        ("b.csv", b"", "b.csv is empty"),
        ("b.csv", b"a,a\n1,2\n", "b.csv: a table has two columns a"),
        ("b.parquet", b"PAR1" + b"x" * 100, "b.parquet cannot be read as Parquet"),
    ],
)  # fmt: skip
def test_what_is_broken_is_named_by_file_and_line(write: Any, name: str, content: bytes, message: str) -> None:
    with pytest.raises(CheckInputError) as raised:
        checked(write("a.parquet", {"a": [1], "b": [1]} if b"b\n" in content else {"a": [1]}), write(name, content))
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    assert len(str(raised.value)) <= 500


def test_a_file_divided_otherwise_is_recognised(write: Any) -> None:
    with pytest.raises(CheckInputError, match=r"is the actual file divided by ';'\? then --delimiter actual=';'"):
        checked(write("a.csv", "a,b\n1,2\n"), write("b.csv", "a;b\n1;2\n"))
    assert checked(write("a.csv", "a,b\n1,2\n"), write("b.csv", "a;b\n1;2\n"), delimiters={"actual": ";"}).equal
    assert checked(write("a.csv", "a,b\n1,2\n"), write("b.tsv", "a\tb\n1\t2\n")).equal


def test_long_numbers_of_json_keep_their_digits(write: Any) -> None:
    one, other = (write(f"{n}.jsonl", f'{{"a":{BIG + n}}}\n{{"a":1}}\n') for n in (0, 1))
    assert checked(one, other).lost == 1
    assert checked(one, one).equal


def test_small_tables_are_compared_without_spark(write: Any) -> None:
    one, other = write("a.csv", "a\n1\n"), write("b.csv", "a\n1\n")
    code = (
        "import sys; from cutproof.harness.cli import main; "
        f"code = main(['check', '--expected', {str(one)!r}, '--actual', {str(other)!r}]); "
        "sys.exit(code or any(name.split('.')[0] == 'pyspark' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("record", "fields"),
    [('1,"a"b', 2), ('1,"a""b"c"', 2), ('1,"a" ', 2), ('1,"a"b"', 2), ('1,"""a"""b\n2,""', 2)],
)
def test_a_field_that_goes_on_after_its_closing_quote_is_named_by_line(write: Any, record: str, fields: int) -> None:
    with pytest.raises(CheckInputError, match=r"a\.csv: line 3: a field goes on after its closing quote"):
        checked(write("a.csv", f'k,v\n"0",""\n{record}\n2,"c\nd"\n'), write("b.csv", "k,v\n1,ab\n"))


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
def test_quotes_as_rfc_4180_has_them_are_taken_wherever_a_read_ends(
    write: Any, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "CHUNK", chunk)
    text = '\ufeff"k",v\n"1",""""\n2,"a""b"\n3,"""\n"""\n"4",""\n5,5" pipe\n6,"""",\n7,"c"'.replace('"""",', '"d"')
    table = {"k": [1, 2, 3, 4, 5, 6, 7], "v": ['"', 'a"b', '"\n"', "", '5" pipe', "d", "c"]}
    assert checked(write("a.csv", text), write("b.parquet", table)).equal
    with pytest.raises(CheckInputError, match="line 2: a field goes on"):
        checked(write("a.csv", 'k,v\n1,"a"b\n2,"c"\n'), write("b.parquet", table))


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_before_the_header_are_no_records(write: Any, mark: str, end: str) -> None:
    text = mark + end.join(["", "", '"k', 'x",v', "", "1,a", "", "2,b", ""])
    table = {f"k{end}x": [1, 2], "v": ["a", "b"]}
    assert checked(write("a.csv", text), write("b.parquet", table)).equal


@pytest.mark.parametrize("text", ['{"a": 1} {"a": 2}\n', '{"a":\n1}\n', '{"a": 1}\n{"a": 1}{"a":\n 2}\n'])
def test_an_object_is_on_one_line_of_its_own(write: Any, text: str) -> None:
    with pytest.raises(CheckInputError, match=r"a\.jsonl: line [12]: no JSON"):
        checked(write("a.jsonl", text), write("b.jsonl", '{"a": 1}\n\n{"a": 2}\n'))


def test_a_line_that_is_null_does_not_end_the_process(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("null\n")
    code = "import sys; from cutproof.harness.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ("check", "--expected", str(tmp_path / "a.jsonl"), "--actual", str(tmp_path / "a.jsonl"))
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "a.jsonl: line 1: null, where JSON lines have an object; one object a line" in done.stderr


def test_json_that_is_nested_too_deeply_is_named_by_line(write: Any) -> None:
    text = '{"a": 1}\n{"a": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
    with pytest.raises(CheckInputError, match="line 2: nested too deeply"):
        checked(write("a.jsonl", text), write("b.jsonl", text))


@pytest.mark.parametrize("side", ["json", "parquet"])
def test_fields_of_json_objects_have_no_order_and_may_be_missing(write: Any, side: str) -> None:
    one = write("a.jsonl", '{"k": 1, "s": {"a": 1, "b": [{"x": "t", "y": 2}, null]}}\n{"k": 2, "s": null}\n'
                           '{"k": 3, "s": {"a": 2}}\n')  # fmt: skip
    rows = [{"b": [{"y": 2.0, "x": "t"}, None], "c": None, "a": 1}, None, {"a": 2}]
    kind = pa.struct(
        {"b": pa.list_(pa.struct({"y": pa.float64(), "x": pa.string()})), "c": pa.int64(), "a": pa.int32()}
    )
    if side == "json":
        lines = [json.dumps({"k": place, "s": row}) + "\n" for place, row in enumerate(rows, 1)]
        other = write("b.jsonl", "".join(lines))
    else:
        other = write("b.parquet", pa.table({"k": [1, 2, 3], "s": pa.array(rows, kind)}))
    assert checked(one, other, key=("k",)).equal
    assert checked(other, one, key=("k",)).equal
    changed = write("c.jsonl", one.read_text().replace('"y": 2', '"y": 3'))
    assert checked(changed, other, key=("k",)).changed == 1


def test_files_of_a_folder_may_have_other_fields_in_their_json_objects(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.jsonl").write_text('{"s": {"a": 1, "b": 2}}\n')
    (tmp_path / "a" / "2.jsonl").write_text('{"s": {"b": 4}}\n')
    (tmp_path / "b.jsonl").write_text('{"s": {"b": 2, "a": 1}}\n{"s": {"b": 4}}\n')
    assert checked(tmp_path / "a", tmp_path / "b.jsonl").equal


def test_a_list_of_numbers_along_with_an_object_has_no_hint_that_does_not_help(write: Any) -> None:
    with pytest.raises(CheckInputError, match="unlike types") as raised:
        checked(write("a.parquet", {"v": [{"a": 1}]}), write("b.jsonl", '{"v": [1]}\n'))
    assert "--cast" not in str(raised.value)


def test_what_is_odd_is_found_in_a_long_column(write: Any) -> None:
    one = write("a.csv", "v\n" + "".join(f"{number}\n" for number in range(300_000)) + "oops\n")
    started = process_time()
    with pytest.raises(CheckInputError, match="expected has 'oops', which is not a whole number"):
        checked(one, write("b.parquet", {"v": list(range(300_001))}))
    assert process_time() - started < 3


@pytest.mark.parametrize(
    ("text", "values", "hint"),
    [
        ("a", pa.array([1], pa.duration("ns")), "duration"),
        ('"1,5"', pa.array([1.5]), "double"),
        ("maybe", pa.array([True]), "boolean"),
        ("x", pa.array([Decimal("1.5")]), "decimal"),
    ],
)
def test_no_cast_is_proposed_that_cannot_be(write: Any, text: str, values: Any, hint: str) -> None:
    with pytest.raises(CheckInputError, match="--cast v=string compares texts") as raised:
        checked(write("a.csv", f"k,v\n1,{text}\n"), write("b.parquet", {"k": [1], "v": values}))
    assert f"--cast v={hint}" not in str(raised.value)


def test_a_cast_is_proposed_that_can_be(write: Any) -> None:
    with pytest.raises(CheckInputError, match="--cast v=boolean values"):
        checked(write("a.csv", "k,v\n1,yes\n"), write("b.parquet", {"k": [1], "v": [True]}))


def test_why_a_column_stays_text_is_reported_of_the_side_that_it_stands_on(write: Any) -> None:
    result = checked(write("a.csv", "v\n1\n"), write("b.csv", "v\nx\n"))
    assert result.conversions == (
        "column v: bigint in expected compared as text: actual has 'x', which is not a whole number",
    )


def test_a_json_number_greater_than_any_double_is_refused(write: Any) -> None:
    infinite = write("b.jsonl", '{"v": 1.5}\n{"v": Infinity}\n')
    with pytest.raises(CheckInputError, match=r"a\.jsonl: line 2: '1e400' is greater than any double"):
        checked(write("a.jsonl", '{"v": 1.5}\n{"v": 1e400}\n'), infinite)
    assert checked(infinite, infinite).equal


def test_numbers_that_a_double_would_round_are_not_read_as_doubles_among_exponents(write: Any) -> None:
    """As pandas writes decimals: a small one has an exponent."""
    one = write("a.csv", "id,m\n1,1234567890123456.67\n3,1E-7\n")
    assert checked(one, write("same.csv", "id,m\n1,1234567890123456.67\n3,1E-7\n"), key=("id",)).equal
    assert not checked(one, write("b.csv", "id,m\n1,1234567890123456.68\n3,1E-7\n"), key=("id",)).equal
    long = write("long.csv", "id,m\n1,0.12345678901234567\n3,1e-07\n")
    assert checked(long, write("padded.csv", "id,m\n1,0.12345678901234567000\n3,0.0000001\n"), key=("id",)).equal
