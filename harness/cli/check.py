"""`cutproof check`: two tables, expected against committed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from .terminal.options import add_master, count, progress_of
from .terminal.output import Output, printable

if TYPE_CHECKING:
    from ...properties.checking.request import CheckRequest, CheckResult, Sample
    from ...properties.checking.sources.addresses import PostgresTable

FORMAT = "cutproof-check/1"
KINDS = {
    "lost": ("expected row is lost:", "expected rows are lost:"),
    "repeated": ("row is committed more often than expected:", "rows are committed more often than expected:"),
    "unexpected": ("committed row was not expected:", "committed rows were not expected:"),
    "changed": ("row differs in value (expected -> committed):", "rows differ in value (expected -> committed):"),
}

MOST_CHARACTERS = 60
"""of a value, when it is printed"""

DESCRIPTION = """\
Compares two tables: the rows that were expected and the rows that a pipeline
committed, of any pipeline on any engine. Lists the rows that are lost, repeated
or unexpected, and, with --key, the rows that changed. The order of rows does
not matter.

A table is a file or a folder of files: CSV, JSON lines, Parquet, or Delta where
deltalake is installed, or Iceberg where pyiceberg is (a table's folder, or one
of its files of metadata). Or it is a table in PostgreSQL, read at one moment:
postgresql://user@host:port/database?table=schema.table
(a password may stand in the URL, in PGPASSWORD or in ~/.pgpass).

Tables of up to a million rows are compared in this process within seconds,
larger ones on Spark. Each conversion, such as texts in CSV to numbers, is reported
in a line."""

EXAMPLES = """\
examples:
  cutproof check --expected expected.parquet --actual committed/
  cutproof check --expected a.csv --actual b.csv --key order_id --ignore loaded_at --out differences/
  cutproof check --expected a.csv --actual b.csv --rename customer=cust --tolerance price=1e-9
  cutproof check --expected excel.csv --actual out.parquet --delimiter "expected=;" --null "" --null NA
  cutproof check --expected a.parquet --actual b.jsonl --cast zip=string --cast price="decimal(18,2)"
  cutproof check --expected day.parquet --actual table/ --where "day = '2013-02-08'" --guarantee at-least-once
  cutproof check --expected rows.jsonl --actual "postgresql://me@localhost:5432/shop?table=public.orders"

exit codes: 0 the guarantee held, 1 it did not, 2 bad input, 4 Spark did not start or PostgreSQL did not answer"""


GUARANTEES = ("exactly-once", "at-least-once", "at-most-once")


def configure(parser: argparse.ArgumentParser) -> None:
    tables = parser.add_argument_group("the tables")
    tables.add_argument(
        "--expected", metavar="A", required=True, help="what should be there: a file, a folder, a table's URL"
    )
    tables.add_argument(
        "--actual", metavar="B", required=True, help="what was committed: a file, a folder, a table's URL"
    )
    tables.add_argument("--ignore", metavar="COLS", action="append", default=[], help="columns to leave out (a,b,c)")
    tables.add_argument("--where", metavar="EXPR", help="compare only the rows of both tables that "
                        "this SQL condition selects (evaluated by Spark)")  # fmt: skip
    tables.add_argument("--rename", metavar="A=B", action="append", default=[],
                        help="the expected table's column A is called B in the other; may be repeated")  # fmt: skip
    tables.add_argument("--cast", metavar="COL=TYPE", action="append", default=[],
                        help="compare this column as string, bigint, double, decimal(P,S), boolean, date, timestamp, "
                        "timestamp(ns), time or binary; may be repeated")  # fmt: skip
    tables.add_argument("--delimiter", metavar="CHAR", action="append", default=[],
                        help="the character between the fields of CSV (default: a comma; write tab for a tab); "
                        "expected=CHAR or actual=CHAR is for one table only")  # fmt: skip
    tables.add_argument("--null", metavar="TEXT", action="append", default=[],
                        help="the unquoted text that means NULL in CSV (default: the empty one); may be repeated, "
                        'as in --null "" --null NA')  # fmt: skip
    tables.add_argument("--empty-is-null", action="store_true",
                        help="take every empty text of both tables for NULL: in the CSV of pandas and Excel they "
                        "look the same")  # fmt: skip
    judging = parser.add_argument_group("how they are judged")
    judging.add_argument("--key", metavar="COLS", action="append", default=[],
                         help="the columns that name a row (a,b): a lost and an unexpected row with the same key "
                         "are one changed row")  # fmt: skip
    judging.add_argument("--guarantee", default="exactly-once", choices=GUARANTEES,
                         help="exactly-once: each row as often as expected (default); at-least-once: repeats are "
                         "allowed; at-most-once: losses are allowed")  # fmt: skip
    judging.add_argument("--tolerance", metavar="COL=X", action="append", default=[],
                         help="numbers in this column may differ by X; may be repeated")  # fmt: skip
    judging.add_argument("--relative-tolerance", metavar="COL=X", action="append", default=[],
                         help="numbers in this column may differ by this share of the greater one (1e-6); may be "
                         "repeated")  # fmt: skip
    judging.add_argument("--engine", default="auto", choices=("auto", "arrow", "spark"),
                         help="auto: up to a million rows in this process, more on Spark (default)")  # fmt: skip
    add_master(judging, "compare on a Spark cluster, whose executors have to see the tables, and the folder for "
               "temporary files (TMPDIR), under the same paths")  # fmt: skip
    judging.add_argument("--exact", action="store_true",
                         help="have Spark compare every row; without it Spark takes tables with equal 128-bit sums "
                         "of hashes for equal")  # fmt: skip
    judging.add_argument("--limit", metavar="N", type=count, default=20, help="list at most N rows of each kind (20)")
    judging.add_argument("--out", metavar="DIR", type=Path,
                         help="write the differences to DIR: differences.parquet and differences.html")  # fmt: skip


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    from ...properties.checking.errors import TableUnreachable
    from ...properties.checking.request import CheckRequest
    from .compare_tables import compared, write_differences

    if options.out and options.out.exists() and not options.out.is_dir():
        raise UsageError(f"--out {options.out} is a file; name a folder")
    if options.master is not None and options.engine == "arrow":
        raise UsageError("--master does not go with --engine arrow, which compares in this process")
    request = CheckRequest(
        expected=existing(options.expected),
        actual=existing(options.actual),
        key=columns(options.key),
        guarantee=options.guarantee,
        ignore=columns(options.ignore),
        where=options.where,
        rename=pairs("--rename", options.rename),
        cast=casts(options.cast),
        tolerance=tolerances("--tolerance", options.tolerance),
        relative_tolerance=tolerances("--relative-tolerance", options.relative_tolerance),
        delimiters=delimiters(options.delimiter),
        nulls=tuple(options.null) or ("",),
        empty_is_null=options.empty_is_null,
        limit=options.limit,
        exact=options.exact,
    )
    written: list[str] = []
    with progress_of(options) as progress:
        try:
            found = compared(request, options.engine, progress, options.master)
        except TableUnreachable as error:
            raise HarnessFailed(str(error)) from error
        if options.out:
            progress.step("writing the differences")
            written = [str(path) for path in write_differences(found, request, options.out)]
    result = found.result
    _print(result, request, output)
    if written:
        output.say(f"the differences: {', '.join(written)}")
    output.result(
        {"format": FORMAT, "guarantee": request.guarantee, **msgspec.structs.asdict(result), "written": written}
    )
    return ExitCode.HELD if result.held else ExitCode.VIOLATED


def _print(result: CheckResult, request: CheckRequest, output: Output) -> None:
    for line in result.conversions:
        output.say(printable(line))
    for line in result.warnings:
        output.say(f"warning: {printable(line)}")
    if result.conversions or result.warnings:
        output.say()
    rows = f"row{'s' * (result.expected_rows != 1)}"
    output.say(f"{result.expected_rows:,} {rows} expected, {result.actual_rows:,} committed")
    for kind in KINDS:
        number = getattr(result, kind)
        if number:
            output.say()
            output.say(f"{number:,} {KINDS[kind][number > 1]}")
            _print_rows([sample for sample in result.samples if sample.kind == kind], output)
    _print_columns(result, output)
    output.say()
    sure = "" if result.exact else " (by 128-bit sums of hashes; --exact looks at every row)"
    output.say(f"{request.guarantee} {'held' if result.held else 'VIOLATED'}{sure if result.equal else ''}")


def _print_columns(result: CheckResult, output: Output) -> None:
    if not result.columns:
        return
    output.say()
    rows = [
        [
            _cell(one.column),
            f"{one.rows:,}",
            "" if one.greatest is None else f"{one.greatest:g}",
            "" if one.relative is None else f"{one.relative:.2g}",
            f"{one.nulls:,}" if one.nulls else "",
        ]
        for one in result.columns
    ]
    output.table(("column", "rows that differ", "by at most", "relative", "NULL on one side"), rows)


def _print_rows(samples: list[Sample], output: Output) -> None:
    names = list(samples[0].row) if samples else []
    rows: list[list[object]] = []
    for sample in samples:
        times = f"{sample.count} times" if sample.count > 1 else ""
        if sample.actual is None:
            rows.append([*(_cell(sample.row[name]) for name in names), times])
            continue
        changes = (
            _cell(sample.row[name])
            if sample.row[name] == sample.actual[name]
            else f"{_cell(sample.row[name])} -> {_cell(sample.actual[name])}"
            for name in names
        )
        rows.append([*changes, times])
    if rows:
        output.table((*map(_cell, names), ""), rows)


def _cell(value: object) -> str:
    """A value in a line of bounded length; a character that is not printable as its escape."""
    if value is None:
        return "NULL"
    text = str(value)[: MOST_CHARACTERS + 1]
    if len(text) > MOST_CHARACTERS:
        text = text[: MOST_CHARACTERS - 3] + "..."
    return printable(text)


def columns(given: list[str]) -> tuple[str, ...]:
    """The columns of options such as `--key a,b --key c`."""
    return tuple(name.strip() for words in given for name in words.split(",") if name.strip())


def pairs(option: str, given: list[str]) -> dict[str, str]:
    """The pairs of options such as `--rename a=b`; raises UsageError for a word that is no pair."""
    found: dict[str, str] = {}
    for words in given:
        for word in words.split(","):
            name, equals, value = word.partition("=")
            if not (name and equals and value):
                raise UsageError(f"{option} takes NAME=VALUE, not {word!r}")
            found[name.strip()] = value.strip()
    return found


def casts(given: list[str]) -> dict[str, str]:
    """The types of `--cast price=decimal(18,2)`, one for each option, since a type has commas; raises UsageError."""
    found: dict[str, str] = {}
    for words in given:
        name, equals, value = words.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise UsageError(f"--cast takes COLUMN=TYPE, not {words!r}")
        found[name.strip()] = value.strip()
    return found


def delimiters(given: list[str]) -> dict[str, str]:
    """The delimiters by side; raises UsageError for one that is not a single character."""
    found: dict[str, str] = {}
    for words in given:
        side, equals, sign = words.partition("=")
        sides = [side] if equals and side in ("expected", "actual") else ["expected", "actual"]
        text = sign if len(sides) == 1 else words
        text = "\t" if text in ("tab", "\\t") else text
        if len(text.encode()) != 1 or text in '"\r\n':
            raise UsageError(f"--delimiter takes one character, tab, or expected=CHAR and actual=CHAR, not {words!r}")
        found.update(dict.fromkeys(sides, text))
    return found


def tolerances(option: str, given: list[str]) -> dict[str, float]:
    """The tolerances by column; raises UsageError for one that is not a number of 0 or more."""
    found: dict[str, float] = {}
    for name, text in pairs(option, given).items():
        try:
            found[name] = float(text)
        except ValueError:
            raise UsageError(f"{option} {name}={text}: {text!r} is not a number") from None
        if not 0 <= found[name] < float("inf"):
            raise UsageError(f"{option} {name}={text}: it has to be 0 or more")
    return found


def existing(path: str) -> Path | PostgresTable:
    """A file, a folder, or a table by its URL; raises UsageError for a path or URL that cannot be one."""
    if "://" in path:
        return _table(path)
    if not Path(path).exists():
        raise UsageError(f"there is no {path}")
    return Path(path)


def _table(url: str) -> PostgresTable:
    from ...properties.checking.errors import CheckInputError
    from ...properties.checking.sources.addresses import table_of

    try:
        return table_of(url)
    except CheckInputError as error:
        raise UsageError(str(error)) from error
