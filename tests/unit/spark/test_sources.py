"""Tables of PostgreSQL and folders of files, read by PySpark itself: addresses, types, slices, what is refused."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from cutproof.properties.checking.comparison import compare
from cutproof.properties.checking.errors import CheckInputError, TableUnreachable
from cutproof.properties.checking.pair import Pair
from cutproof.properties.checking.request import CheckRequest
from cutproof.properties.checking.sources import postgres
from cutproof.properties.checking.sources.addresses import PostgresTable, table_of
from cutproof.properties.checking.sources.postgres import table_bytes
from cutproof.properties.spark.checking.check import check
from cutproof.properties.spark.checking.sources import read_table
from unit.processes.stores import RunningServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "hush-hush"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    running = RunningServer(trusting=True)
    yield running
    running.close()


def run(server: RunningServer, *statements: str) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as link:
        for statement in statements:
            link.execute(statement.encode())


def at(server: RunningServer, table: str, database: str = "postgres") -> PostgresTable:
    return table_of(f"postgresql://cutproof:{SECRET}@127.0.0.1:{server.port}/{database}?table={table}")


def test_a_url_names_server_database_and_table() -> None:
    table = table_of("postgresql://me:p%40ss@db.example:5433/shop?table=sales.orders&sslmode=require")
    assert (table.schema, table.table) == ("sales", "orders")
    assert table.parameters == {
        "host": "db.example",
        "port": "5433",
        "dbname": "shop",
        "user": "me",
        "password": "p@ss",
        "sslmode": "require",
    }
    assert table_of("postgres://db.example/shop?table=orders").schema == ""


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@host/db",
        f"postgresql://me:{SECRET}@host/db?table=",
        f"postgresql://me:{SECRET}@host/db?table=.t",
        f"postgresql://me:{SECRET}@host/db?table=t&table=u",
        f"postgresql://me:{SECRET}@host/db?table=t&options=-cfoo",
        f"postgresql://me:{SECRET}@host/?table=t",
        f"postgresql://me:{SECRET}@/db?table=t",
        f"postgresql://me:{SECRET}@host:port/db?table=t",
        f"postgresql://me:1/{SECRET}@host/db?table=t",
        f"postgresql://me:1#{SECRET}@host/db?table=t",
        f"postgresql://me:1?{SECRET}@host/db?table=t",
        f"postgresql://me:{SECRET}@[host/db?table=t",
        f"mysql://me:{SECRET}@host/db?table=t",
    ],
)
def test_what_is_no_tables_url_is_one_line_without_the_password(url: str) -> None:
    with pytest.raises(CheckInputError, match=r"postgresql://user@host:port/database\?table=schema\.table") as raised:
        table_of(url)
    assert SECRET not in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_a_table_shows_itself_without_the_password() -> None:
    table = table_of(f"postgresql://me:{SECRET}@host:5433/db?table=s.t")
    assert str(table) == "s.t on host:5433"
    for text in (repr(table), repr(CheckRequest(expected=table, actual=table))):
        assert SECRET not in text
    with pytest.raises(CheckInputError) as raised:
        PostgresTable.at(f"host=x password='{SECRET}", schema="s", table="t")
    assert SECRET not in str(raised.value)


def test_each_type_comes_over_with_its_values_and_its_nulls(spark: SparkSession, server: RunningServer) -> None:
    kinds = (
        *("bigint", "integer", "smallint", "double precision", "real", "text", "varchar(9)", "boolean"),
        *("timestamp", "timestamptz", "date", "numeric(10,2)", "numeric"),
    )
    columns = ", ".join(f'"Column {index}" {kind}' for index, kind in enumerate(kinds))
    values = (
        "9223372036854775807, -2147483648, -32768, 'NaN', 'Infinity', 'drop \"t\"; €', '', true,"
        " '0001-01-01 00:00:00.000001', '2020-01-01 00:30:00+02', '2020-02-29', -1.25, 0.000000000000000001"
    )
    run(server, f"CREATE TABLE kinds ({columns})", f"INSERT INTO kinds VALUES ({values})",
        "INSERT INTO kinds DEFAULT VALUES")  # fmt: skip
    frame = read_table(spark, at(server, "public.kinds"))
    assert [field.dataType.simpleString() for field in frame.schema] == [
        *("bigint", "int", "smallint", "double", "float", "string", "string", "boolean"),
        *("timestamp_ntz", "timestamp", "date", "decimal(10,2)", "decimal(38,18)"),
    ]
    assert frame.columns == [f"Column {index}" for index in range(len(kinds))]
    full, empty = sorted(frame.toArrow().to_pylist(), key=lambda row: row["Column 0"] is None)
    assert list(empty.values()) == [None] * len(kinds)
    assert str(full.pop("Column 3")) == "nan"
    assert list(full.values()) == [
        *(2**63 - 1, -(2**31), -(2**15), float("inf"), 'drop "t"; €', "", True),
        *(datetime(1, 1, 1, 0, 0, 0, 1), datetime(2019, 12, 31, 22, 30, tzinfo=UTC), date(2020, 2, 29)),
        *(Decimal("-1.25"), Decimal("1E-18")),
    ]


def test_a_large_table_is_read_in_slices_each_row_once(
    spark: SparkSession, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(server, "CREATE TABLE large AS SELECT id FROM generate_series(1, 20000) AS id",
        "DELETE FROM large WHERE id % 7 = 0")  # fmt: skip
    monkeypatch.setattr(postgres, "PAGES_A_SLICE", 20)
    table = at(server, "large")
    frame = read_table(spark, table)
    assert frame.rdd.getNumPartitions() == 4
    assert sorted(row["id"] for row in frame.collect()) == [number for number in range(1, 20_001) if number % 7]
    assert table_bytes(table) >= 4 * 20 * 8192


@pytest.mark.parametrize(
    ("rows", "pages_a_slice", "number"),
    [(0, 1, 1), (1, 1, 1), (20_000, 90, 1), (20_000, 89, 1), (20_000, 28, 3), (20_000, 2, 44), (20_000, 1, 64)],
)
def test_slices_are_bounded_in_number_and_leave_no_gap(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, rows: int, pages_a_slice: int, number: int
) -> None:
    """Of tables of no page, of one, and of 89."""
    name = f"sliced_{rows}_{pages_a_slice}"
    run(server, f"CREATE TABLE {name} AS SELECT id FROM generate_series(1, {rows}) AS id")
    monkeypatch.setattr(postgres, "PAGES_A_SLICE", pages_a_slice)
    with postgres.opened(at(server, name)) as link:
        slices = postgres.plan_of(link, at(server, name)).slices
    assert len(slices) == number
    assert slices[0][0] == 0
    assert [first for first, _ in slices[1:]] == [behind for _, behind in slices[:-1]]
    assert all(behind is None or first < behind for first, behind in slices)
    assert slices[-1][1] is None


def test_what_is_written_later_does_not_move_the_rows(spark: SparkSession, server: RunningServer) -> None:
    run(server, "CREATE TABLE moving (a bigint)", "INSERT INTO moving VALUES (1), (2)")
    frame = read_table(spark, at(server, "moving"))
    run(server, "DELETE FROM moving WHERE a = 1", "INSERT INTO moving VALUES (3)")
    assert sorted(frame.collect()) == [(1,), (2,)]
    assert sorted(read_table(spark, at(server, "moving")).collect()) == [(2,), (3,)]


def test_a_partitioned_table_is_read_with_its_parts(spark: SparkSession, server: RunningServer) -> None:
    parts = [f"CREATE TABLE p{i} PARTITION OF parted FOR VALUES FROM ({10 * i}) TO ({10 * i + 10})" for i in range(2)]
    run(server, "CREATE TABLE parted (a bigint) PARTITION BY RANGE (a)", *parts,
        "INSERT INTO parted VALUES (1), (11)")  # fmt: skip
    assert sorted(read_table(spark, at(server, "parted")).collect()) == [(1,), (11,)]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("nowhere.kept", "there is no table nowhere.kept"),
        ("none", "there is no table none"),
        ("seen", "seen on .* is no table"),
        ("odd_json", "the column doc of odd_json is of type json"),
        ("odd_wide", r"the column n of odd_wide is of type numeric\(50,2\)"),
        ("odd_case", "differ in case only"),
        ("odd_nan", "the column n holds NaN, which is no decimal"),
        ("odd_date", "odd_date holds a value that cannot be read: date too large"),
    ],
)
def test_what_cannot_be_read_is_bad_input(spark: SparkSession, server: RunningServer, table: str, message: str) -> None:
    run(
        server,
        "DROP VIEW IF EXISTS seen",
        "DROP TABLE IF EXISTS kept, odd_json, odd_wide, odd_case, odd_nan, odd_date",
        "CREATE TABLE kept (a bigint)",
        "CREATE VIEW seen AS SELECT a FROM kept",
        "CREATE TABLE odd_json (doc json)",
        "CREATE TABLE odd_wide (n numeric(50,2))",
        'CREATE TABLE odd_case (a bigint, "A" bigint)',
        "CREATE TABLE odd_nan AS SELECT 'NaN'::numeric AS n",
        "CREATE TABLE odd_date AS SELECT 'infinity'::date AS d",
    )
    with pytest.raises(CheckInputError, match=message) as raised:
        read_table(spark, at(server, table))
    assert len(str(raised.value).splitlines()) == 1


def test_a_database_a_user_and_a_column_that_are_not_there(spark: SparkSession, server: RunningServer) -> None:
    run(server, "CREATE TABLE one (a bigint)", "CREATE ROLE poor LOGIN")
    with pytest.raises(CheckInputError, match='database "none" does not exist'):
        read_table(spark, at(server, "one", "none"))
    for user, message in (("nobody", 'role "nobody" does not exist'), ("poor", "may not be read by this user")):
        dsn = f"{server.dsn} user={user}".replace("user=cutproof ", "")
        with pytest.raises(CheckInputError, match=message):
            read_table(spark, PostgresTable.at(dsn, schema="public", table="one"))
    with pytest.raises(CheckInputError, match=r"public\.one has no column b; it has a"):
        read_table(spark, PostgresTable.at(server.dsn, schema="public", table="one", columns=("b",)))


def test_a_server_that_is_away_or_silent_is_no_bad_input(
    spark: SparkSession, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(server, "CREATE TABLE here (a bigint)")
    monkeypatch.setattr("cutproof.properties.checking.sources.postgres_link.CONNECT_TIMEOUT_S", 2)
    table = at(server, "here")
    server.stop(signal.SIGKILL)
    with pytest.raises(TableUnreachable, match=r"does not answer: .*Connection refused") as raised:
        read_table(spark, table)
    assert SECRET not in str(raised.value)
    server.start()
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(TableUnreachable, match=r"does not answer: .*timeout"):
            read_table(spark, table)
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert read_table(spark, table).count() == 0


def test_a_check_reads_tables_on_both_sides(spark: SparkSession, server: RunningServer) -> None:
    run(
        server,
        "CREATE TABLE owed AS SELECT id, id / 2.0::float8 AS half FROM generate_series(1, 1000) AS id",
        "CREATE TABLE given AS SELECT * FROM owed",
    )
    request = CheckRequest(expected=at(server, "owed"), actual=at(server, "given"), key=("id",))
    assert check(spark, request).equal
    run(server, "UPDATE given SET half = 0 WHERE id = 500", "DELETE FROM given WHERE id = 7")
    result = check(spark, request)
    assert (result.lost, result.repeated, result.unexpected, result.changed) == (1, 0, 0, 1)


def test_a_table_is_compared_without_spark_too(server: RunningServer, tmp_path: Path) -> None:
    run(
        server,
        "CREATE TABLE small AS SELECT id, id / 2.0::float8 AS half, (id / 4.0)::numeric(10,2) AS price,"
        " '2020-01-01'::timestamp + id * interval '1 second' AS ts FROM generate_series(1, 3) AS id",
    )
    (tmp_path / "a.csv").write_text(
        "id,half,price,ts\n1,0.5,0.25,2020-01-01T00:00:01\n2,1,0.5,2020-01-01T00:00:02\n3,1.5,0.75,2020-01-01T00:00:03\n"
    )
    where = at(server, "small")
    pair = Pair(CheckRequest(expected=tmp_path / "a.csv", actual=where, key=("id",)))
    assert pair.small
    assert compare(pair).result.equal
    run(server, "UPDATE small SET half = 7 WHERE id = 2", "DELETE FROM small WHERE id = 3")
    result = compare(Pair(CheckRequest(expected=tmp_path / "a.csv", actual=where, key=("id",)))).result
    assert (result.lost, result.changed, result.actual_rows) == (1, 1, 2)


def test_a_damaged_parquet_file_is_bad_input(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "junk.parquet").write_bytes(b"junk" * 100)
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(CheckInputError, match=r"junk.parquet cannot be read as Parquet: .*footer") as raised:
        check(spark, CheckRequest(expected=tmp_path / "a.csv", actual=tmp_path / "junk.parquet"))
    assert len(str(raised.value).splitlines()) == 1
