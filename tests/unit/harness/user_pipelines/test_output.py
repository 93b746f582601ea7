"""The committed output, as each format has it, and while it is being written."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.user_pipelines.description import Read
from cutproof.harness.user_pipelines.entries import Problem
from cutproof.harness.user_pipelines.journal import Journal
from cutproof.harness.user_pipelines.output import reader as reading_rows
from cutproof.harness.user_pipelines.output.formats import NotReadable, Output, query, query_sqlite
from cutproof.harness.user_pipelines.output.reader import Reader
from cutproof.harness.user_pipelines.reading import read_pipeline
from unit.harness.user_pipelines.toys import toy

ROWS = [(1, 2, 3, 0), (None, -4, 5, 6)]


def output(folder: Path, **read: object) -> Output:
    return Output(Read(**read), {"output": str(folder)})  # type: ignore[arg-type]


def test_json_lines_without_a_line_that_is_not_whole_yet(tmp_path: Path) -> None:
    lines = '{"key": 1, "value": 2, "tag": 3}\n{"key": null, "value": -4, "tag": 5, "tag2": 6}\n'
    (tmp_path / "a.jsonl").write_text(lines + '{"key": 7, "val')
    assert output(tmp_path, format="json-lines", path="{output}/*.jsonl").rows() == ROWS


def test_csv_with_other_names_of_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("customer,sum,tag,tag2\n1,2,3,0\n,-4,5,6\n")
    columns = {"key": "customer", "value": "sum"}
    assert output(tmp_path, format="csv", path="{output}/*.csv", columns=columns).rows() == ROWS
    (tmp_path / "a.csv").write_text("customer,sum,tag,tag2\n")
    assert output(tmp_path, format="csv", path="{output}/*.csv", columns=columns).rows() == []


@pytest.mark.parametrize("name", ["json-lines", "csv", "command"])
def test_the_last_line_counts_without_a_newline(name: str, tmp_path: Path) -> None:
    rows = [{"key": 1, "value": 2, "tag": 3}, {"key": 4, "value": 5, "tag": 6}]
    lines = ["key,value,tag", "1,2,3", "4,5,6"] if name == "csv" else [json.dumps(row) for row in rows]
    (tmp_path / "a").write_text("\n".join(lines))
    place: dict[str, object] = {"command": ("rows",)} if name == "command" else {"path": "{output}/a"}
    read = Output(Read(format=name, **place), {"output": str(tmp_path)}, (tmp_path / "a").read_text)  # type: ignore[arg-type]
    assert read.rows(at_rest=True) == [(1, 2, 3, 0), (4, 5, 6, 0)]
    # On the way 4,5,6 may be the beginning of 4,5,67; a JSON object has an end of its own.
    assert len(read.rows()) == (1 if name == "csv" else 2)
    if name != "command":
        (tmp_path / "a").write_text("\n".join(lines)[:-3])
        assert read.rows(at_rest=True) == [(1, 2, 3, 0)]


SQLITE = (
    'format = "sqlite"\npath = "{state}/toy.db"\nquery = "SELECT key, n AS value, 0 AS tag FROM rows"',
    'format = "json-lines"\npath = "{output}/a"',
)
TORN = '{"key": 2{"key": 2, "value": 3, "tag": 4}'


@pytest.mark.parametrize(
    ("rows_before", "fault", "judged"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_what_is_no_row_is_judged_if_a_fault_may_have_broken_it(
    rows_before: bool, fault: bool, judged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_rows, "WHOLE_WITHIN_S", 0.0)
    line = '{"key": 1, "value": 2, "tag": 3}\n'
    path = toy(tmp_path, SQLITE)
    journal = Journal()
    reader = Reader(read_pipeline(path).file, {"output": str(tmp_path)}, str, journal, records=9, expected=Counter())
    (tmp_path / "a").write_text(line * rows_before)
    reader.read()
    if fault:
        journal.fired(0, "kill", "halfway", "", 1)
    (tmp_path / "a").write_text(line * rows_before + TORN + "\n")
    if not judged:
        with pytest.raises(SubjectFailed, match=r"^a has a line that is not JSON: \{"):
            reader.read()
        return
    reader.read()
    assert reader.final_rows(lambda: None) == [(1, 2, 3, 0)]
    assert reader.broken == [f"a has a line that is not JSON: {TORN}"]


def test_half_a_file_of_parquet_is_no_row_once_the_run_is_over(tmp_path: Path) -> None:
    parquet.write_table(table((1, 2, 3)), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no end")
    broken: list[Problem] = []
    read = output(tmp_path, format="parquet", path="{output}/*.parquet")
    assert read.rows(at_rest=True, broken=broken) == [(1, 2, 3, 0)]
    assert broken[0].words.startswith("b.parquet is no whole Parquet file: ")


def table(*rows: tuple[int | None, int, int]) -> arrow.Table:
    return arrow.table({name: [row[number] for row in rows] for number, name in enumerate(("key", "value", "tag"))})


def test_parquet_and_a_file_that_is_not_whole_yet(tmp_path: Path) -> None:
    parquet.write_table(table((1, 2, 3)), tmp_path / "a.parquet")
    read = output(tmp_path, format="parquet", path="{output}/*.parquet")
    assert read.rows() == [(1, 2, 3, 0)]
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no end")
    with pytest.raises(NotReadable, match=r"b\.parquet is no whole Parquet file"):
        read.rows()


def test_of_a_folder_of_spark_only_what_its_log_names(tmp_path: Path) -> None:
    for name, row in (("a.parquet", (1, 2, 3)), ("b.parquet", (4, 5, 6)), ("c.parquet", (7, 8, 9))):
        parquet.write_table(table(row), tmp_path / name)
    (log := tmp_path / "_spark_metadata").mkdir()
    read = output(tmp_path, format="parquet", path="{output}/*.parquet")
    assert read.rows() == []
    added = {"path": f"file://{tmp_path}/a.parquet", "action": "add"}
    also = {"path": f"file://{tmp_path}/b.parquet", "action": "add"}
    (log / "0").write_text("v1\n" + json.dumps(added) + "\n" + json.dumps(also))
    (log / "1").write_text("v1\n" + json.dumps({**also, "action": "delete"}))
    (log / ".1.crc").write_text("nonsense")
    assert read.rows() == [(1, 2, 3, 0)]


def test_lines_of_a_folder_of_spark_only_if_its_log_names_their_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"key": 1, "value": 2, "tag": 3}\n')
    (tmp_path / "b.json").write_text('{"key": 4, "value": 5, "tag": 6}\n')
    (log := tmp_path / "_spark_metadata").mkdir()
    (log / "0").write_text("v1\n" + json.dumps({"path": f"file://{tmp_path}/b.json", "action": "add"}))
    assert output(tmp_path, format="json-lines", path="{output}/*.json").rows() == [(4, 5, 6, 0)]


def test_sqlite_before_its_table_exists_and_while_it_is_locked(tmp_path: Path) -> None:
    read = output(tmp_path, format="sqlite", path="{output}/a.db", query="SELECT key, value, 0 AS tag FROM rows")
    assert (read.rows(), read.absent) == ([], Problem("read.query", "there is no file a.db"))
    writer = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    assert (read.rows(), read.absent) == ([], Problem("read.query", "SQLite says: no such table: rows"))
    writer.execute("CREATE TABLE rows (key INT, value INT)")
    assert (read.rows(), read.absent) == ([], None)
    writer.execute("INSERT INTO rows VALUES (1, 2)")
    assert read.rows() == [(1, 2, 0, 0)]
    writer.execute("PRAGMA locking_mode = exclusive")
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(NotReadable, match=r"a\.db is locked"):
        read.rows()
    writer.close()


def test_a_file_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nothing")
    with pytest.raises(NotReadable):
        output(tmp_path, format="json-lines", path="{output}/*.jsonl").rows()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"key": 1, "tag": 3}', "the output has no column 'value'"),
        ('{"key": 1, "value": 3}', "no column 'tag' (if its rows have none, say read.columns.tag = \"\","),
        ('{"key": "x", "value": 2, "tag": 3}', "the column 'key' of the output is no whole number: 'x'"),
        ('{"key": 1.5, "value": 2, "tag": 3}', "the column 'key' of the output is no whole number: 1.5"),
        ('{"key": [1], "value": 2, "tag": 3}', "the column 'key' of the output is no whole number"),
        ("[1, 2, 3]", "no JSON object"),
        ('{"key": Infinity, "value": 2, "tag": 3}', "the column 'key' of the output is no whole number: 'inf'"),
        ("nonsense", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
    ids=["lacking", "no tag", "text", "fraction", "list", "array", "infinite", "nonsense", "nested deeply"],
)
def test_a_row_that_cannot_be_one_is_said_in_one_line(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(line + "\n")
    with pytest.raises(SubjectFailed) as raised:
        output(tmp_path, format="json-lines", path="{output}/*.jsonl").rows()
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_variable_that_the_environment_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SubjectFailed, match=r"read\.dsn: the environment of cutproof has no variable \$NOWHERE"):
        Output(Read(format="postgres", dsn="$NOWHERE", query="SELECT 1"), {}).rows()
    monkeypatch.setenv("NOWHERE", "postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(SubjectFailed, match=r"read\.query: PostgreSQL says: .*onnection"):
        Output(Read(format="postgres", dsn="$NOWHERE", query="SELECT 1"), {}).rows()
    with pytest.raises(SubjectFailed, match="PostgreSQL says"):
        query("$NOWHERE", "SELECT 1")


# -- Delta and commands -------------------------------------------------------------------


def test_a_delta_table_at_its_last_version(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'cutproof[delta]'")
    read = output(tmp_path, format="delta", path="{output}/rows")
    assert (read.rows(), read.absent) == ([], Problem("read.path", "there is no Delta table {output}/rows"))
    deltalake.write_deltalake(tmp_path / "rows", table((1, 2, 3)))
    assert (read.rows(), read.absent) == ([(1, 2, 3, 0)], None)
    deltalake.write_deltalake(tmp_path / "rows", table((4, 5, 6)), mode="overwrite")
    assert read.rows() == [(4, 5, 6, 0)]
    next((tmp_path / "rows" / "_delta_log").glob("*1.json")).write_text("nonsense")
    with pytest.raises(NotReadable, match=r"read\.path: Delta says"):
        read.rows()


def test_of_an_iceberg_table_in_a_catalog_what_the_catalog_has_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next commit's metadata is in the folder, and the catalog does not name it."""
    (folder := tmp_path / "rows" / "metadata").mkdir(parents=True)
    contents = {f"file://{folder}/{number}.metadata.json": (number, 0, 0) for number in range(2)}
    for path in contents:
        Path(path.removeprefix("file://")).touch()
    read = output(tmp_path, format="iceberg", path="{output}/rows", catalog="{output}/catalog.db")
    monkeypatch.setattr("cutproof.harness.user_pipelines.output.formats.module", lambda _: Iceberg(contents))
    assert (read.rows(), read.absent) == ([], Problem("read.path", "there is no Iceberg table in {output}/rows"))
    catalog = sqlite3.connect(tmp_path / "catalog.db")
    catalog.execute("CREATE TABLE iceberg_tables (metadata_location TEXT)")
    for known in (f"file://{tmp_path}/others/0.metadata.json", next(iter(contents))):
        catalog.execute("INSERT INTO iceberg_tables VALUES (?)", (known,))
    catalog.commit()
    assert (read.rows(), read.absent) == ([(0, 0, 0, 0)], None)
    catalog.close()


class Iceberg:
    """Stands for pyiceberg.table: tables by the places of their metadata."""

    def __init__(self, contents: dict[str, tuple[int, int, int]]) -> None:
        self._contents = contents
        self.StaticTable = self

    def from_metadata(self, path: str) -> Iceberg:
        return Iceberg({path: self._contents[path]})

    def scan(self) -> Iceberg:
        return self

    def to_arrow(self) -> arrow.Table:
        return arrow.concat_tables([table(row) for row in self._contents.values()])


def test_a_command_prints_the_rows() -> None:
    printed = ['{"key": 1, "value": 2, "tag": 3}\n{"key": 4, "val', "nonsense\n"]
    read = Output(Read(format="command", command=("rows",)), {}, lambda: printed.pop(0))
    assert read.rows() == [(1, 2, 3, 0)]
    with pytest.raises(SubjectFailed, match=r"read\.command: it has printed a line that is not JSON: nonsense"):
        read.rows()


KILLED_AMID = """
import os, signal, sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute("CREATE TABLE rows (key INT, value TEXT)")
store.executemany("INSERT INTO rows VALUES (?, ?)", [(number, "x" * 500) for number in range(50)])
store.execute("PRAGMA cache_size = 1")
store.execute("BEGIN")
store.execute("UPDATE rows SET value = value || 'y'")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_database_is_read_again_once_the_transaction_of_a_killed_writer_is_undone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "it.db"
    subprocess.run([sys.executable, "-c", KILLED_AMID, str(path)], check=False)
    with pytest.raises(NotReadable, match=r"it\.db next undoes an unfinished transaction"):
        query_sqlite(path, "SELECT count(*) AS n FROM rows WHERE value LIKE '%y'")
    with sqlite3.connect(path) as writer:
        writer.execute("INSERT INTO rows VALUES (0, 'z')")
    writer.close()
    assert query_sqlite(path, "SELECT count(*) AS n FROM rows WHERE value LIKE '%y'") == [{"n": 0}]
