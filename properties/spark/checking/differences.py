"""How two tables differ as multisets of rows.

Every expected row counts +1 and every actual row -1.  The rows are grouped by all
columns, and a group whose sum is not zero differs.  Nothing depends on order, NULL
equals NULL, and the loss of another row does not hide a repeated row.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...checking.request import COUNT, IS_EXPECTED, OURS

_SIGN = f"{OURS}sign"
BUCKETS = 1024


def differences(expected: DataFrame, actual: DataFrame) -> DataFrame:
    """The rows that one side has more often.

    `COUNT` says how many times more often expected has the row (below 0: actual);
    `IS_EXPECTED` says whether expected has it at all.
    """
    signed = _signed(expected, actual)
    columns = [F.col(_quoted(name)) for name in expected.columns]
    counted = signed.groupBy(*columns).agg(F.sum(_SIGN).alias(COUNT), F.max(_SIGN).alias(IS_EXPECTED))
    return counted.where(F.col(COUNT) != 0).withColumn(IS_EXPECTED, F.col(IS_EXPECTED) == 1)


def differing_buckets(expected: DataFrame, actual: DataFrame) -> tuple[list[int], int, int]:
    """The buckets whose rows differ, and the number of rows of each side; one pass over both.

    A bucket's rows are summed as 128-bit hashes, each in four 32-bit parts so that
    no sum overflows.  A sum, unlike XOR, shows how often a row is there.  Buckets
    with different sums differ; buckets with equal sums are equal, except with a
    probability of about 2^-128.
    """
    names = expected.columns
    hashed = _signed(expected, actual).select(
        F.col(_SIGN), _hash(names, 1).alias("one"), _hash(names, 2).alias("two"), bucket(names).alias("bucket")
    )
    parts = [part for name in ("one", "two") for part in (F.shiftrightunsigned(name, 32), F.col(name).bitwiseAND(_LOW))]
    sums = [F.sum(F.col(_SIGN) * part).alias(f"sum{index}") for index, part in enumerate(parts)]
    sides = [F.count_if(F.col(_SIGN) == sign).alias(name) for name, sign in (("expected", 1), ("actual", -1))]
    found = hashed.groupBy("bucket").agg(*sums, *sides).collect()
    differing = [
        row["bucket"] for row in found if row["expected"] != row["actual"] or any(row[f"sum{i}"] for i in range(4))
    ]
    return sorted(differing), sum(row["expected"] for row in found), sum(row["actual"] for row in found)


_LOW = 0xFFFF_FFFF


def bucket(names: list[str]) -> Column:
    """The number of a row's bucket, below `BUCKETS`: equal rows are in the same bucket."""
    return _hash(names, 1).bitwiseAND(BUCKETS - 1).cast("int")


def _hash(names: list[str], salt: int) -> Column:
    """A 64-bit hash of a row.  xxhash64 skips NULLs, so the hash also covers which columns are NULL."""
    masks = [_null_mask(names[start : start + 63]) for start in range(0, len(names), 63)]
    return F.xxhash64(F.lit(salt), *masks, *(F.col(_quoted(name)) for name in names))


def _null_mask(names: list[str]) -> Column:
    bits = [F.col(_quoted(name)).isNull().cast("long") * (1 << index) for index, name in enumerate(names)]
    return reduce(lambda one, other: one.bitwiseOR(other), bits)


def _signed(expected: DataFrame, actual: DataFrame) -> DataFrame:
    return expected.withColumn(_SIGN, F.lit(1).cast("long")).union(
        actual.select(*(F.col(_quoted(name)) for name in expected.columns)).withColumn(_SIGN, F.lit(-1).cast("long"))
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


quoted = _quoted
