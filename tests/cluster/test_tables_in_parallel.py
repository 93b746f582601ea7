"""Tables of many files: Spark reads them in as many tasks as there are files, and nothing passes through the driver."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cutproof.properties.checking.comparison import compare
from cutproof.properties.checking.errors import CheckInputError
from cutproof.properties.checking.pair import Pair
from cutproof.properties.checking.request import CheckRequest, CheckResult
from cutproof.properties.spark.checking import inputs
from cutproof.properties.spark.checking.check import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 5
ROWS = 20
"""rows of each file"""
TEXT = pa.string()
Inputs = Callable[..., tuple[CheckResult, list[int]]]


@pytest.fixture
def checked(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inputs]:
    """Checks two tables, and says of how many tasks each is read; a table that this process reads counts as 0."""
    size = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(size)
    spark.conf.set(size, str(16 << 10))  # more than a file has: a split is a file
    tasks: dict[str, int] = {}
    monkeypatch.setattr(inputs, "_written", _counted(inputs._written, tasks, lambda frame: 0))
    monkeypatch.setattr(inputs, "_from_files", _counted(inputs._from_files, tasks, _tasks))

    def run(expected: Path, actual: Path, **how: Any) -> tuple[CheckResult, list[int]]:
        request = CheckRequest(expected=expected, actual=actual, **how)
        result = check(spark, request)
        quickly = result if request.where else compare(Pair(request)).result
        assert (result.equal, result.expected_rows, result.actual_rows, result.conversions) == (
            quickly.equal,
            quickly.expected_rows,
            quickly.actual_rows,
            quickly.conversions,
        )
        return result, [tasks["expected"], tasks["actual"]]

    yield run
    spark.conf.set(size, before or "128MB")


def _counted(make: Callable[..., Any], tasks: dict[str, int], count: Callable[[Any], int]) -> Callable[..., Any]:
    def made(spark: Any, pair: Any, side: Any, *more: Any) -> Any:
        frame = make(spark, pair, side, *more)
        tasks[side.name] = count(frame)
        return frame

    return made


def _tasks(frame: Any) -> int:
    return int(frame._jdf.rdd().getNumPartitions())


def rows(number: int = 0, **more: Any) -> dict[str, Any]:
    values = [ROWS * number + one for one in range(ROWS)]
    return {"id": values, "text": [f"{one}" for one in values]} | more


def one_file(path: Path, days: list[str | None]) -> Path:
    tables = [pa.table(rows(number=number) | {"day": pa.array([day] * ROWS, TEXT)}) for number, day in enumerate(days)]
    pq.write_table(pa.concat_tables(tables), path)
    return path


@pytest.mark.parametrize(
    ("days", "kind", "where_it_is"),
    [
        (["2024-01-01", "2024-01-02", "2024-01-03", "2024-02-01", None], pa.date32(), "left out of the files"),
        (["1", "2", "3", "10", None], pa.int64(), "in the files too"),
        (["01", "1", "007", "10", "2"], TEXT, "left out of the files"),
    ],
    ids=["dates", "numbers", "texts"],
)
def test_columns_in_the_names_of_folders(
    checked: Inputs, tmp_path: Path, days: list[str | None], kind: Any, where_it_is: str
) -> None:
    for number, day in enumerate(days):
        folder = tmp_path / "table" / f"day={day or '__HIVE_DEFAULT_PARTITION__'}"
        folder.mkdir(parents=True)
        included = {"day": pa.array([day] * ROWS, TEXT)} if where_it_is == "in the files too" else {}
        pq.write_table(pa.table(rows(number=number, **included)), folder / "part-0.parquet")
    flat = one_file(tmp_path / "flat.parquet", days)
    flat_table = pq.read_table(flat)
    place = flat_table.schema.get_field_index("day")
    typed = pa.compute.cast(flat_table.column("day"), kind)
    pq.write_table(flat_table.set_column(place, "day", typed), flat)
    result, tasks = checked(flat, tmp_path / "table")
    assert result.equal
    assert tasks == [1, FILES]
    if kind == pa.int64():
        result, _ = checked(flat, tmp_path / "table", where="day < 3")
        assert result.expected_rows == result.actual_rows == 2 * ROWS


def test_files_below_folders_that_name_no_column(checked: Inputs, tmp_path: Path) -> None:
    (tmp_path / "table" / "later" / "still").mkdir(parents=True)
    for number, place in enumerate(("", "later", "later/still")):
        pq.write_table(pa.table(rows(number=number)), tmp_path / "table" / place / "part.parquet")
    pq.write_table(pa.concat_tables(pa.table(rows(number=one)) for one in range(3)), tmp_path / "flat.parquet")
    result, tasks = checked(tmp_path / "flat.parquet", tmp_path / "table")
    assert result.equal
    assert tasks == [1, 3]


def delta() -> Any:
    return pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'cutproof[delta]'")


def test_a_partitioned_delta_table(checked: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deltalake = delta()
    flat = one_file(tmp_path / "flat.parquet", ["2024-01-01", "a:b", "x y", "100%", None])
    deltalake.write_deltalake(tmp_path / "table", pq.read_table(flat), partition_by=["day"])
    result, tasks = checked(flat, tmp_path / "table")
    assert (result.equal, tasks) == (True, [1, FILES])
    deltalake.DeltaTable(tmp_path / "table").delete("day = '2024-01-01'")
    result, tasks = checked(flat, tmp_path / "table")
    assert (result.lost, result.unexpected, tasks) == (ROWS, 0, [1, FILES - 1])
    monkeypatch.chdir(tmp_path)
    assert compare(Pair(CheckRequest(expected=flat, actual=Path("table")))).result.lost == ROWS
    deltalake.DeltaTable("table").delete()
    assert compare(Pair(CheckRequest(expected=flat, actual=Path("table")))).result.lost == ROWS * FILES


def test_a_delta_table_whose_files_hold_deleted_rows_is_refused(tmp_path: Path) -> None:
    deltalake = delta()
    pq.write_table(pa.table(rows()), tmp_path / "flat.parquet")
    deltalake.write_deltalake(tmp_path / "table", pa.table(rows()))
    log = tmp_path / "table" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7} | features
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    with pytest.raises(CheckInputError, match="table uses deletionVectors, which check cannot read; let the engine"):
        Pair(CheckRequest(expected=tmp_path / "flat.parquet", actual=tmp_path / "table"))


def test_an_iceberg_table(checked: Inputs, tmp_path: Path) -> None:
    from cluster.iceberg_tables import written

    parts = [pa.table(rows(number=number)) for number in range(FILES)]
    pq.write_table(pa.concat_tables(parts), tmp_path / "flat.parquet")
    table = written(tmp_path / "table", *parts)
    for place in (tmp_path / "table", Path(table.metadata_location.removeprefix("file://"))):
        result, tasks = checked(tmp_path / "flat.parquet", place)
        assert result.equal
        assert tasks == [1, FILES]
    before = Path(table.metadata_location.removeprefix("file://"))
    with table.update_schema() as update:  # the names of two columns change places: files are read by number
        update.rename_column("id", "was_id")
    with table.update_schema() as update:
        update.rename_column("was_id", "number")
    result, tasks = checked(tmp_path / "flat.parquet", tmp_path / "table", rename={"id": "number"})
    assert result.equal
    assert tasks == [1, 0]
    assert checked(tmp_path / "flat.parquet", before)[0].equal


def test_an_iceberg_table_without_rows_has_lost_all(checked: Inputs, tmp_path: Path) -> None:
    from cluster.iceberg_tables import Catalog

    pq.write_table(pa.table(rows()), tmp_path / "flat.parquet")
    Catalog("memory").create_table(("db", "rows"), pa.table(rows()).schema, (tmp_path / "table").as_uri())
    assert checked(tmp_path / "flat.parquet", tmp_path / "table")[0].lost == ROWS


def test_what_is_missing_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cluster.iceberg_tables import written

    pq.write_table(pa.table(rows()), tmp_path / "flat.parquet")
    metadata = Path(written(tmp_path / "table", pa.table(rows())).metadata_location.removeprefix("file://"))

    def refusal(actual: Path) -> str:
        with pytest.raises(CheckInputError) as raised:
            compare(Pair(CheckRequest(expected=tmp_path / "flat.parquet", actual=actual)))
        assert "\n" not in str(raised.value)
        return str(raised.value).replace(str(tmp_path), "")

    other = metadata.with_name("00001-another.metadata.json")
    other.write_bytes(metadata.read_bytes())
    assert refusal(tmp_path / "table").startswith("/table has two files of newest metadata, 00001-")
    other.unlink()
    for file in (tmp_path / "table" / "data").iterdir():
        file.unlink()
    assert refusal(tmp_path / "table").startswith("/table has lost the file /table/data/")
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    missing = "/table is an Iceberg table: reading it needs `pip install 'pyiceberg[pyarrow]'`"
    assert refusal(tmp_path / "table") == missing
    monkeypatch.undo()
    metadata.write_text("{}")
    assert refusal(tmp_path / "table").startswith("/table cannot be read as an Iceberg table: ")
