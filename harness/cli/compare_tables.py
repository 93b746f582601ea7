"""Two tables compared on the engine that suits their size, and the differences written to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..runtime.progress import Progress

if TYPE_CHECKING:
    from ...properties.checking.differing import Compared
    from ...properties.checking.request import CheckRequest

ENGINES = ("auto", "arrow", "spark")
PARQUET = "differences.parquet"
PAGE = "differences.html"


def compared(request: CheckRequest, engine: str, progress: Progress, master: str | None = None) -> Compared:
    """Compare in this process if both tables are small enough, else on Spark; a condition is SQL, so it needs Spark.

    With `master`, the Spark cluster of this URL compares them, however small they are.

    Raises CheckInputError, TableUnreachable, and the errors of a start of Spark.
    """
    from ...properties.checking.comparison import compare
    from ...properties.checking.errors import CheckInputError, TooLarge
    from ...properties.checking.pair import Pair
    from ...properties.checking.request import demand_request

    demand_request(request)
    if request.where and engine == "arrow":
        raise CheckInputError("--where is SQL, which only Spark knows; leave out --engine arrow")
    progress.step("reading the tables")
    pair = Pair(request)
    if not request.where and master is None and (engine == "arrow" or (engine == "auto" and pair.small)):
        progress.step("comparing")
        try:
            return compare(pair, bounded=engine == "auto")
        except TooLarge:
            for side in pair.sides:
                side.release()
    from ...properties.spark.checking import check
    from ...properties.spark.session.session import TABLES, session

    progress.step("starting Spark")
    spark = session(master=master, settings=TABLES)
    progress.step("comparing on Spark")
    return check.compare(spark, pair)


def write_differences(found: Compared, request: CheckRequest, folder: Path) -> tuple[Path, Path]:
    """Write all differences as Parquet, and a page with the counts and the first rows of each kind."""
    import pyarrow.parquet

    from ...reports.table_differences import render_table_differences
    from ..runtime.version import package_version
    from ..scenario.files import write_whole

    folder.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(found.differences, folder / PARQUET)
    page = render_table_differences(
        found.result,
        guarantee=request.guarantee,
        expected=str(request.expected),
        actual=str(request.actual),
        version=package_version(),
        key=request.key,
    )
    write_whole(folder / PAGE, page.encode())
    return folder / PARQUET, folder / PAGE
