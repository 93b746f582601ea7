"""The library of named workloads: general ones, real data, and the documents' examples."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...properties.model.workload import (
    AnyOperator,
    Batch,
    Count,
    Dedup,
    Filter,
    FlatMap,
    Greater,
    Input,
    InputRecord,
    Join,
    Map,
    Model,
    Node,
    Rules,
    Sum,
    Tally,
    Union,
    Workload,
)
from .. import examples
from ..runtime.config import WORKLOAD_FILES, nearest
from ..runtime.exit_codes import UsageError
from ..scenario import topologies
from ..scenario.checks import problems_of
from ..scenario.model import Scenario
from ..scenario.slices import first_slice
from . import inputs
from .inputs import LoadedWorkload

DATA = Path(__file__).parent / "data"
BY_COLUMNS = "key-value"
"""the workload of `--input` without a workload file: columns called key and value, counted by key"""
RECORDS = 120
"""Records of a general workload: a scenario processes them in a few milliseconds."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `--workload list`."""

    name: str
    kind: str
    """workload, data or example"""
    about: str


def listing() -> list[Listed]:
    """Everything that has a name, those that can be run first."""
    return [
        *(Listed(name=name, kind="workload", about=about) for name, (about, _) in GENERAL.items()),
        *(Listed(name=name, kind="data", about=about) for name, about in FROM_DATA.items()),
        Listed(name=BY_COLUMNS, kind="data", about="your own file: --input FILE with columns key and value, counted"),
        *(Listed(name=name, kind="example", about=example.about) for name, example in examples.EVERY_EXAMPLE.items()),
    ]


def find(name: str, data: Path | None = None) -> LoadedWorkload | examples.AnyExample:
    """The workload, or the example, of a name or a workload file; raises UsageError in one line.

    `data` is a CSV or Parquet file that replaces the one that the workload names.
    """
    if name.endswith(WORKLOAD_FILES):
        path = Path(name)
        return _checked(name, inputs.load(inputs.read_description(path), path.parent, data))
    if name == BY_COLUMNS:
        return _checked(name, inputs.load(_by_columns(data), DATA, data))
    if name in FROM_DATA:
        return inputs.load(inputs.read_description(DATA / f"{name}.toml"), DATA, data)
    known = [*GENERAL, *FROM_DATA, BY_COLUMNS, *examples.EVERY_EXAMPLE]
    if name not in known:
        raise UsageError(f"there is no workload {name!r}{nearest(name, known)}")
    if data is not None:
        raise UsageError(f"the workload {name} brings its own data; --input goes with flights or with a workload file")
    if name in examples.EVERY_EXAMPLE:
        return examples.EVERY_EXAMPLE[name]
    return LoadedWorkload(workload=GENERAL[name][1]())


def _checked(name: str, loaded: LoadedWorkload) -> LoadedWorkload:
    """The workload itself, if scenarios over its slices can be run; raises UsageError."""
    first = first_slice(loaded).workload
    for problem in problems_of(Scenario(workload=first, topology=loaded.topology or topologies.lay_out(first))):
        raise UsageError(f"{name}: {problem}")
    return loaded


def _by_columns(data: Path | None) -> inputs.WorkloadFile:
    if data is None:
        raise UsageError(f"the workload {BY_COLUMNS} needs a file; name it with --input")
    return inputs.WorkloadFile(
        format=inputs.FORMAT,
        name=BY_COLUMNS,
        inputs=(inputs.InputColumns(name="input", key="key", value="value"),),
        steps=(inputs.Step(name="count", operator=Count()),),
    )


def _records(name: str, number: int, keys: int, values: range) -> tuple[InputRecord, ...]:
    """Drawn records, the same ones for the same name; the first keys occur more often than the last."""
    draw = random.Random(zlib.crc32(name.encode()))
    tags = draw.sample(range(1 << inputs.TAG_BITS), number)
    return tuple((int(draw.random() ** 2 * keys), draw.choice(values), tag) for tag in tags)


def _split(records: Sequence[InputRecord], splits: int) -> tuple[tuple[InputRecord, ...], ...]:
    return tuple(tuple(records[first::splits]) for first in range(splits))


def _split_by_key(records: Sequence[InputRecord], splits: int) -> tuple[tuple[InputRecord, ...], ...]:
    """Each key in one split, so that its records have one order."""
    return tuple(tuple(row for row in records if (row[0] or 0) % splits == split) for split in range(splits))


def _pipeline(name: str, source: Input, *steps: tuple[str, AnyOperator]) -> Workload:
    nodes: list[Node] = []
    before = source.name
    for step, operator in steps:
        nodes.append(Node(name=step, operator=operator, inputs=(before,)))
        before = step
    return Workload(name=name, inputs=(source,), nodes=tuple(nodes))


def _orders() -> Workload:
    source = Input(name="orders", splits=_split(_records("orders", RECORDS, 12, range(1, 100)), 3))
    return _pipeline("orders", source, ("count", Count()))


def _payments() -> Workload:
    source = Input(name="payments", splits=_split_by_key(_records("payments", RECORDS, 8, range(-50, 100)), 2))
    return _pipeline("payments", source, ("valid", Filter(modulus=10, drop=0)), ("balance", Sum()))


def _order_payments() -> Workload:
    orders = Input(name="orders", splits=_split(_records("order-payments/orders", RECORDS // 2, 40, range(1, 100)), 2))
    paid = Input(name="payments", splits=_split(_records("order-payments/paid", RECORDS // 2, 40, range(1, 100)), 2))
    joined = Node(name="match", operator=Join(), inputs=("orders", "payments"))
    return Workload(name="order-payments", inputs=(orders, paid), nodes=(joined,))


def _clicks() -> Workload:
    web = Input(name="web", splits=_split(_records("clicks/web", RECORDS // 2, 30, range(3)), 2))
    app = Input(name="app", splits=_split(_records("clicks/app", RECORDS // 2, 30, range(3)), 1))
    nodes = (
        Node(name="all", operator=Union(), inputs=("web", "app")),
        Node(name="expand", operator=FlatMap(fan=2), inputs=("all",)),
        Node(name="visitors", operator=Dedup(), inputs=("expand",)),
    )
    return Workload(name="clicks", inputs=(web, app), nodes=nodes)


def _parcels() -> Workload:
    source = Input(name="parcels", splits=_split(_records("parcels", RECORDS, 12, range(1, 20)), 3))
    return _pipeline("parcels", source, ("tally", Tally()), ("van", Batch(size=5)))


def _tariffs() -> Workload:
    weighed = Input(name="weighed", splits=_split(_records("tariffs/weighed", RECORDS // 2, 8, range(1, 30)), 2))
    tariffs = Input(name="tariffs", splits=_split(_records("tariffs/tariffs", RECORDS // 4, 8, range(100, 200)), 2))
    priced = Node(name="priced", operator=Rules(), inputs=("weighed", "tariffs"))
    return Workload(name="tariffs", inputs=(weighed, tariffs), nodes=(priced,))


def _levels() -> Workload:
    source = Input(name="readings", splits=_split_by_key(_records("levels", RECORDS, 6, range(-20, 40)), 3))
    return _pipeline("levels", source, ("level", Model()))


def _sensors() -> Workload:
    source = Input(name="readings", splits=_split_by_key(_records("sensors", RECORDS, 6, range(-20, 40)), 3))
    return _pipeline("sensors", source, ("celsius", Map(multiply=5, add=-160)), ("rising", Greater()))


GENERAL: dict[str, tuple[str, Callable[[], Workload]]] = {
    "orders": ("orders counted by customer", _orders),
    "payments": ("valid payments, and the running balance of each account", _payments),
    "order-payments": ("orders joined with their payments, two inputs", _order_payments),
    "clicks": ("clicks from web and app in one stream, each visitor once", _clicks),
    "parcels": ("parcels counted by town, the counts held as a union, and sent on in fives", _parcels),
    "tariffs": ("parcels priced by their town's tariff; tariffs come as they change, to every subtask", _tariffs),
    "levels": ("the level of each sensor, a model learnt from its readings", _levels),
    "sensors": ("readings converted, emitted while they rise", _sensors),
}
"""Description and maker of each general workload, by name."""

FROM_DATA: dict[str, str] = {
    "flights": "5,000 real flights of 2013, counted by carrier; drawn in slices (or --input of that form)",
    "flight-delays": "the same flights, the running sum of arrival delays by carrier",
}
"""Workloads that read the sample of flights that comes with the package: a workload file each."""
