"""What a user's SQL text yields, and which texts are refused before anything of them is resolved."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cutproof.properties.spark import query
from cutproof.properties.spark.query import Query, QueryRefused

RECORDS = [(0, 5, 1), (1, 7, 2), (0, None, 3), (None, 4, 4)]
SAME = "SELECT key, value, tag FROM input"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (SAME, [(0, 5, 1, 0), (1, 7, 2, 0), (0, None, 3, 0), (None, 4, 4, 0)]),
        ("SELECT key, value % 2 AS value, tag, key AS tag2 FROM INPUT WHERE value > 4", [(0, 1, 1, 0), (1, 1, 2, 1)]),
        (f"WITH a AS ({SAME} WHERE tag < 2) SELECT * FROM a UNION ALL SELECT * FROM a", [(0, 5, 1, 0)] * 2),
        ("SELECT key, v AS value, tag FROM input LATERAL VIEW explode(array(1, 2)) AS v WHERE key = 1",
         [(1, 1, 2, 0), (1, 2, 2, 0)]),
    ],
    ids=["same", "filter", "union", "explode"],
)  # fmt: skip
def test_rows_that_each_record_yields_by_itself(text: str, rows: list[object], spark: SparkSession) -> None:
    one = Query(text, {}, {})
    assert one.by_record
    assert sorted(one.rows(RECORDS), key=str) == sorted(rows, key=str)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT key, count(*) AS value, 0 AS tag FROM input GROUP BY key",
         {(0, 2, 0, 0), (1, 1, 0, 0), (None, 1, 0, 0)}),
        ("SELECT key, row_number() OVER (PARTITION BY key ORDER BY tag) AS value, tag FROM input WHERE key = 0",
         {(0, 1, 1, 0), (0, 2, 3, 0)}),
        ("SELECT key, (SELECT max(value) FROM input) AS value, tag FROM input WHERE tag = 1", {(0, 7, 1, 0)}),
        ("SELECT DISTINCT key, 0 AS value, 0 AS tag FROM input WHERE key = 0", {(0, 0, 0, 0)}),
    ],
    ids=["group", "window", "subquery", "distinct"],
)  # fmt: skip
def test_rows_that_other_records_may_replace(text: str, rows: set[object], spark: SparkSession) -> None:
    one = Query(text, {}, {})
    assert not one.by_record
    one.demand_no_order(RECORDS)
    assert set(one.rows(RECORDS)) == rows
    assert len(one.rows(RECORDS)) == len(rows)


def test_the_columns_are_those_of_the_file(spark: SparkSession) -> None:
    text = "SELECT customer, sum(amount) AS total FROM input GROUP BY customer"
    one = Query(text, {"key": "customer", "value": "amount"}, {"key": "customer", "value": "total", "tag": ""})
    assert set(one.rows(RECORDS[:3])) == {(0, 5, 0, 0), (1, 7, 0, 0)}
    with pytest.raises(QueryRefused, match="`tag` cannot be resolved"):
        Query(SAME, {"tag": ""}, {})


def test_the_query_of_the_page_about_pipelines_can_be_used(spark: SparkSession) -> None:
    page = Path(__file__).parents[3] / "docs" / "pipelines.md"
    (text,) = [one for one in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL) if "sql = " in one]
    file = tomllib.loads(text)
    one = Query(file["computes"]["sql"], file["feed"]["columns"], file["read"]["columns"])
    assert set(one.rows(RECORDS[:3])) == {(0, 5, 0, 0), (1, 7, 0, 0)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELEC key FROM input", r"Spark says: .* Syntax error at or near 'SELEC'"),
        ("", "unexpected empty statement"),
        (f"{SAME}; {SAME}", "Syntax error at or near 'SELECT'"),
        ("SELECT key, worth AS value, tag FROM input", "Spark says: .*`worth` cannot be resolved"),
        ("DROP TABLE input", "DropTable is not allowed"),
        ("CREATE TABLE t AS SELECT * FROM input", "CreateTableAsSelect is not allowed"),
        ("INSERT INTO t SELECT * FROM input", "InsertIntoStatement is not allowed"),
        ("SET spark.sql.ansi.enabled = false", "SetCommand is not allowed"),
        ("ADD JAR '/tmp/x.jar'", "AddJarsCommand is not allowed"),
        ("BEGIN SELECT 1; END", "CompoundBody is not allowed"),
        ("SELECT TRANSFORM (key) USING 'cat' AS (key) FROM input", "ScriptTransformation is not allowed"),
        ("SELECT * FROM range(3)", "UnresolvedTableValuedFunction is not allowed"),
        ("SELECT * FROM IDENTIFIER('text.`/etc/passwd`')", "it reads text./etc/passwd|Identifier is not allowed"),
        ("SELECT * FROM csv.`/etc/passwd`", "it reads csv./etc/passwd; it can read the view 'input' alone"),
        ("SELECT * FROM input WHERE key IN (SELECT _c0 FROM text.`/etc/passwd`)", "it reads text./etc/passwd"),
        ("WITH a AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM a", "it reads text./etc/passwd"),
        ("SELECT * FROM spark_catalog.default.t", "it reads spark_catalog.default.t"),
        ("SELECT * FROM records", "it reads records"),
        ("SELECT key, value, ${env:UID} AS tag FROM input", "it has a variable"),
        ("SELECT reflect('java.lang.System', 'lineSeparator') AS key FROM input", "function reflect is not allowed"),
        ("SELECT key FROM input WHERE EXISTS (SELECT java_method('a.B', 'c'))", "java_method is not allowed"),
        ("SELECT transform(array(1), x -> TRY_REFLECT('a.B', 'c')) AS key FROM input", "try_reflect is not allowed"),
        ("SELECT system.builtin.reflect('a.B', 'c') AS key FROM input", "system.builtin.reflect is not allowed"),
        ("SELECT IDENTIFIER('reflect')('a.B', 'c') AS key FROM input", "IDENTIFIER is not allowed"),
        ("SELECT key FROM input ORDER BY IDENTIFIER('input_file' || '_name')()", "IDENTIFIER is not allowed"),
        ("SELECT input_file_name() AS key FROM input", "input_file_name is not allowed"),
        ("SELECT key, CAST(10 * rand() AS INT) AS value, tag FROM input", "has another value each time"),
        ("SELECT key, unix_timestamp() AS value, tag FROM input", "has another value each time"),
        ("SELECT key, value, tag FROM input WHERE current_date > DATE '2000-01-01'", "has another value each time"),
        ("SELECT key, value FROM input", "it yields no column 'tag': its columns are key, value .*read.columns.tag = "),
        ("SELECT key, value, tag, 1 AS more FROM input", "its column 'more' is none of a row: key, value, tag, tag2"),
        ("SELECT key, value, tag, tag FROM input", "it yields the column 'tag' twice"),
        ("SELECT key, value / 2 AS value, tag FROM input", "its column 'value' is double, and has to be"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_query_on_the_view_is_refused_in_one_line(text: str, said: str, spark: SparkSession) -> None:
    with pytest.raises(QueryRefused, match=said) as raised:
        Query(text, {}, {})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    ["SELECT key, first(value) AS value, 0 AS tag FROM input GROUP BY key", f"{SAME} LIMIT 2"],
    ids=["first", "limit"],
)
def test_rows_that_depend_on_the_order_of_the_view_are_refused(text: str, spark: SparkSession) -> None:
    one = Query(text, {}, {})
    with pytest.raises(QueryRefused, match="depend on the order"):
        one.demand_no_order(RECORDS)


def test_a_query_that_these_records_break_is_refused_in_one_line(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(QueryRefused, match=r"Spark says: \[DIVIDE_BY_ZERO\] Division by zero[^\n]*$"):
        Query("SELECT key, value DIV (tag - 1) AS value, tag FROM input", {}, {}).rows(RECORDS)
    monkeypatch.setattr(query, "MOST_ROWS", 3)
    with pytest.raises(QueryRefused, match="more than 3 rows"):
        Query(SAME, {}, {}).rows(RECORDS)
    monkeypatch.setattr(query, "MOST_ROWS", 100_000)
    monkeypatch.setattr(query, "MOST_S", 0.0)  # it is cancelled before its job begins, and again
    many = ", ".join(f"input AS t{number}" for number in range(12))
    with pytest.raises(QueryRefused, match="it takes more than 0 s"):
        Query(f"SELECT t0.key, count(*) AS value, 0 AS tag FROM {many} GROUP BY t0.key", {}, {}).rows(RECORDS * 10)
