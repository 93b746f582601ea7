"""An operator whose state is large: a text of `BYTES` for each key.  Real processes import it by this file's name."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from cutproof import Context, Function, KeyRecord, Taken, UserFunction, value_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BYTES = 4_000

Row = tuple[int | None, int, int]


class Documents(Function):
    """What the engine runs: it keeps the text of a key's latest record, and passes each record on."""

    states: ClassVar = {"text": value_of(str)}

    def on_record(self, record: Taken, context: Context) -> Iterator[Row]:
        context.put("text", text(record.tag))
        yield record.value, record.tag, record.tag2


def text(seed: int) -> str:
    """A text that no compression makes small."""
    return random.Random(seed).randbytes(BYTES // 2).hex()


def expected(records: Sequence[KeyRecord], watermark: int) -> Iterator[Row]:
    return ((record.value, record.tag, record.tag2) for record in records)


def spark(records: DataFrame) -> DataFrame:
    return records.select("scope", "key", "value", "tag", "tag2")


DOCUMENTS = UserFunction(name="documents", function=Documents, expected=expected, spark=spark)
