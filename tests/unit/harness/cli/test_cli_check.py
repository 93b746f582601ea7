"""`cutproof check`: how its options are read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from cutproof.harness.cli import main
from cutproof.harness.cli.check import casts, columns, delimiters, existing, pairs, tolerances
from cutproof.harness.cli.compare_tables import compared
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.runtime.progress import Silent
from cutproof.properties.checking import pair as limits
from cutproof.properties.checking.request import CheckRequest
from cutproof.properties.spark.session.errors import SparkUnavailable


def test_columns_may_be_listed_or_repeated() -> None:
    assert columns(["a, b", "c"]) == ("a", "b", "c")
    assert columns([]) == ()


def test_pairs_name_what_is_none() -> None:
    assert pairs("--rename", ["a=b,c=d", "e=f=g"]) == {"a": "b", "c": "d", "e": "f=g"}
    for wrong in ("a", "=b", "a="):
        with pytest.raises(UsageError, match=f"--rename takes NAME=VALUE, not '{wrong}'"):
            pairs("--rename", [wrong])


def test_tolerances_are_numbers_of_0_or_more() -> None:
    assert tolerances("--tolerance", ["price=1e-9", "size=0"]) == {"price": 1e-9, "size": 0.0}
    for wrong, reason in (("x", "is not a number"), ("-1", "has to be 0 or more"), ("nan", "has to be 0 or more")):
        with pytest.raises(UsageError, match=reason):
            tolerances("--tolerance", [f"price={wrong}"])


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert existing(str(tmp_path)) == tmp_path
    with pytest.raises(UsageError, match="there is no"):
        existing(str(tmp_path / "none.csv"))


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["check", *words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, ...]:
    """Two tables with a row of each kind of difference."""
    expected = written(tmp_path, "a.csv", "id,price,name\n1,1.5,a\n2,2.0,<b>&\n3,3.0,c\n4,4.0,d\n")
    actual = written(tmp_path, "b.csv", "id,price,name\n1,1.5,a\n1,1.5,a\n2,2.5,<i>\n3,3.0,\n5,5.0,e\n")
    return "--expected", expected, "--actual", actual


def test_what_differs_is_reported_by_kind_and_by_column(
    pair: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = asked(capsys, *pair, "--key", "id")
    assert code == 1
    for line in (
        "column id: text in both read as bigint",
        "column price: text in both read as double",
        "warning: the key id is not unique in actual: 1 key in 2 rows (id=1 2 times)",
        "4 rows expected, 5 committed",
        "2 rows differ in value (expected -> committed):",
        "1 expected row is lost:",
        "1 row is committed more often than expected:",
        "1 committed row was not expected:",
        "exactly-once VIOLATED",
    ):
        assert line in out, line
    assert re.search(r"price +1 +0\.5 +0\.2", out)
    assert re.search(r"name +2 +1$", out, re.MULTILINE)


def test_json_keeps_its_fields_and_adds_to_them(pair: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, *pair, "--key", "id", "--json")
    found = json.loads(out)
    assert code == 1
    assert [found[name] for name in ("lost", "repeated", "unexpected", "changed")] == [1, 1, 1, 2]
    assert {"format", "guarantee", "held", "expected_rows", "actual_rows", "samples", "exact"} <= set(found)
    assert (found["engine"], found["exact"], found["written"]) == ("arrow", True, [])
    assert found["columns"][0] == {
        "column": "price", "rows": 1, "greatest": 0.5, "relative": 0.2, "nulls": 0, "empty": 0
    }  # fmt: skip


def test_the_differences_are_written(pair: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "out"
    asked(capsys, *pair, "--key", "id", "--out", str(out), "--limit", "1")
    rows = pq.read_table(out / "differences.parquet").to_pylist()
    assert [(row["difference"], row["times"]) for row in rows] == [
        ("changed", 1), ("changed", 1), ("lost", 1), ("repeated", 1), ("unexpected", 1)
    ]  # fmt: skip
    assert (rows[0]["expected_price"], rows[0]["actual_price"]) == (2.0, 2.5)
    assert (rows[2]["expected_id"], rows[2]["actual_id"]) == (4, None)
    page = (out / "differences.html").read_text()
    assert "&lt;b&gt;&amp;" in page
    assert "<b>&" not in page
    assert "Content-Security-Policy" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "exactly-once is violated" in page
    assert "1 of 2 shown" in page


def test_tolerances_are_absolute_or_relative(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = ("--expected", written(tmp_path, "a.csv", "id,x\n1,100.0\n2,0.001\n"),
              "--actual", written(tmp_path, "b.csv", "id,x\n1,100.5\n2,0.0010001\n"), "--key", "id")  # fmt: skip
    for how, code in (
        (("--tolerance", "x=0.5"), 0),
        (("--tolerance", "x=0.4"), 1),
        (("--relative-tolerance", "x=0.01"), 0),
        (("--relative-tolerance", "x=1e-3"), 1),
        (("--relative-tolerance", "x=1e-3", "--tolerance", "x=0.5"), 0),
    ):
        assert asked(capsys, *tables, *how)[0] == code, how


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--delimiter", ";;"), "--delimiter takes one character"),
        (("--cast", "a"), "--cast takes COLUMN=TYPE, not 'a'"),
        (("--cast", "id=thing"), "there is no type 'thing' to cast to"),
        (("--engine", "arrow", "--where", "id > 1"), "--where is SQL, which only Spark knows"),
        (("--relative-tolerance", "id=x"), "--relative-tolerance id=x: 'x' is not a number"),
        (("--tolerance", "price=1"), "a tolerance needs a key"),
    ],
)
def test_wrong_words_are_one_line(
    pair: tuple[str, ...], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str
) -> None:
    code, out, err = asked(capsys, *pair, *words)
    assert (code, out) == (2, "")
    assert reason in err
    assert len(err.splitlines()) == 1


def test_delimiters_are_of_one_side_or_both() -> None:
    assert delimiters([";"]) == {"expected": ";", "actual": ";"}
    assert delimiters(["tab", "actual=|"]) == {"expected": "\t", "actual": "|"}


def test_a_type_may_have_commas() -> None:
    assert casts(["price=decimal(18,2)", "zip = string"]) == {"price": "decimal(18,2)", "zip": "string"}


def test_large_tables_go_to_spark(pair: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    request = CheckRequest(expected=Path(pair[1]), actual=Path(pair[3]))
    started: list[object] = []

    def start(**_: object) -> object:
        started.append(None)
        raise SparkUnavailable("not here")

    monkeypatch.setattr("cutproof.properties.spark.session.session.session", start)
    assert compared(request, "auto", Silent()).result.engine == "arrow"
    monkeypatch.setattr(limits, "SMALL_ROWS", 2)
    with pytest.raises(SparkUnavailable):
        compared(request, "auto", Silent())
    monkeypatch.undo()
    monkeypatch.setattr("cutproof.properties.spark.session.session.session", start)
    monkeypatch.setattr(limits, "MEMORY_BYTES", 10)
    with pytest.raises(SparkUnavailable):
        compared(request, "auto", Silent())
    assert compared(request, "arrow", Silent()).result.engine == "arrow"
    with pytest.raises(SparkUnavailable):
        compared(msgspec.structs.replace(request, where="id > 1"), "auto", Silent())
    assert len(started) == 3


def test_values_are_shown_without_control_characters_and_not_at_any_length(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = written(tmp_path, "a.csv", f'k,v\n1,"\x1b[31mred\nline"\n2,{"x" * 5000}\n')
    code, out, _ = asked(capsys, "--expected", one, "--actual", written(tmp_path, "b.csv", "k,v\n1,a\n2,b\n"))
    assert code == 1
    assert "\\x1b[31mred\\nline" in out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) < 100


def test_an_out_that_is_a_file_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = written(tmp_path, "a.csv", "k\n1\n")
    code, _, err = asked(capsys, "--expected", one, "--actual", one, "--out", one)
    assert (code, err.strip()) == (2, f"cutproof: --out {one} is a file; name a folder")
