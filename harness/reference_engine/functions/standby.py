"""Records with an even tag pass; the others wait until the end of all input.  They are in state of the subtask, which
has no key and is redistributed when the job is rescaled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import ClassVar

from ....properties.model.workload import END_OF_TIME
from ....properties.semantics.user_functions import ExpectedRow, KeyRecord
from ....reference_impl.core.operators.user_functions import Context, Function, Out, Taken, items_of
from .base import UserFunction, in_sql


class Standby(Function):
    """Emits the records themselves."""

    timed = True
    states: ClassVar = {"waiting": items_of(str)}
    """[key, value, tag, tag2] as JSON; it has the key, because the item may be redistributed to another subtask"""

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        if record.tag % 2 == 0:
            yield record.value, record.tag, record.tag2
        else:
            context.put("waiting", [*context.get("waiting"), json.dumps(record[:4])])

    def on_close(self, context: Context) -> Iterator[tuple[int | None, int | None, int, int]]:
        yield from map(json.loads, context.get("waiting"))
        context.clear("waiting")


def expected(records: Sequence[KeyRecord], watermark: int) -> Iterator[ExpectedRow]:
    yield from (record[:3] for record in records if record.tag % 2 == 0 or watermark >= END_OF_TIME)


SQL = "select scope, key, value, tag, tag2 from {records} where tag % 2 = 0 or watermark >= {end}"

STANDBY = UserFunction(name="cutproof/standby", function=Standby, expected=expected, spark=in_sql(SQL, end=END_OF_TIME))
