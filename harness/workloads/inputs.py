"""Workloads from files: what the columns of a CSV or Parquet file become, and what is computed.

A workload file (`cutproof-workload/1`, TOML or JSON) names for each input the columns that are key, value and split,
and the operators in order.  If a key column is text, its distinct values are sorted and numbered.  That dictionary is
made once for all inputs before the engine or the judge gets the data, so the engine and PySpark get the same integers,
and no two readers of CSV can differ.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import msgspec

from ...properties.model.workload import (
    AnyOperator,
    Input,
    InputRecord,
    Node,
    Topology,
    User,
    Window,
    Workload,
    is_clocked,
    problems,
)
from ..runtime.exit_codes import UsageError
from ..scenario import topologies
from ..scenario.bounds import OPERATORS, SPLITS
from ..scenario.reading import TOML_LIMIT_BYTES, bytes_of, json_of, toml_of
from . import tables

FORMAT = "cutproof-workload/1"
VALUE_BOUND = 1 << 40
"""Values stay below this, so that no sum over a file can leave 64 bits."""
TIME_BOUND = 1 << 60
"""so do event times, so that watermarks and the ends of windows cannot either"""
WHAT = "a workload file"
TAG_BITS = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = Context(prec=100, traps=[])
"""enough for every decimal of a file times a scale; what is no number becomes NaN"""


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the values of a workload file."""


class InputColumns(Value, frozen=True, kw_only=True):
    """How the columns of one input become its records, in the file's order."""

    name: str
    key: str
    """text or whole numbers; an empty field is NULL"""
    value: str
    """whole numbers, or numbers that `scale` makes whole; an empty field is NULL"""
    file: str | None = None
    """CSV or Parquet, relative to the workload file's folder; `--input` replaces it"""
    split: str | None = None
    """a column whose distinct values are the splits; without it records are distributed to the splits round-robin"""
    splits: int = 2
    """how many splits there are, if no column names them"""
    event_time: str | None = None
    """a whole number, or a time, which becomes µs since 1970 (UTC where it names no zone); in every row"""
    delay: int = 0
    """by how much watermarks are behind, in the unit of the event time; a window takes no record that is later"""
    scale: int = 1
    """values are multiplied by this and must then be whole"""
    bounded: bool = True
    records: int | None = None
    """take only the first so many records"""


class Step(Value, frozen=True, kw_only=True):
    """One operator; without `inputs` it reads the previous step, and the first step reads the inputs."""

    name: str
    operator: AnyOperator
    inputs: tuple[str, ...] | None = None


class WorkloadFile(Value, frozen=True, kw_only=True):
    """A workload file: inputs, steps, and the parallelism of each (2 where none is given)."""

    format: str
    name: str
    inputs: tuple[InputColumns, ...]
    steps: tuple[Step, ...] = ()
    parallelism: dict[str, int] = {}


class LoadedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload with its data, and the dictionary of keys with which to read results."""

    workload: Workload
    topology: Topology | None = None
    """its layout if one was requested; else layouts are drawn"""
    keys: tuple[str, ...] = ()
    """text keys by number; empty where keys are numbers"""


def read_description(path: Path) -> WorkloadFile:
    """The workload file itself; raises UsageError in one line if it is not one."""
    if not path.exists():
        raise UsageError(f"there is no workload file {path}; `cutproof verify --workload list` names the built-in ones")
    try:
        if path.suffix == ".toml":
            description = msgspec.convert(toml_of(path, WHAT), WorkloadFile)
        else:
            data = json_of(bytes_of(path, TOML_LIMIT_BYTES), str(path))
            description = msgspec.json.decode(data, type=WorkloadFile)
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply to be {WHAT}") from error
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not {WHAT}: {error}") from error
    if description.format != FORMAT:
        raise UsageError(f"{path} has the format {description.format!r}; this version reads {FORMAT}")
    if not description.inputs:
        raise UsageError(f"{path} names no input")
    return description


def load(description: WorkloadFile, folder: Path, data: Path | None = None) -> LoadedWorkload:
    """Read the data that a description names; `data` replaces the files."""
    read: list[tuple[InputColumns, dict[str, list[Any]]]] = []
    for columns in description.inputs:
        path = data or (folder / columns.file if columns.file else None)
        if path is None:
            raise UsageError(f"the input {columns.name!r} of {description.name} names no file; give one with --input")
        read.append((columns, _columns(path, columns)))
    keys = _dictionary([table[columns.key] for columns, table in read])
    tags = _tags(description.name, sum(len(table[columns.key]) for columns, table in read))
    for bound, number in ((SPLITS, sum(_splits_of(columns, table) for columns, table in read)),
                          (OPERATORS, len(description.inputs) + len(description.steps))):  # fmt: skip
        if number > bound.most:
            raise UsageError(f"the workload {description.name} has {bound.refusal(number)}")
    timed = any(_goes_by_time(step.operator) for step in description.steps)
    inputs = tuple(_input(columns, table, keys, tags, timed=timed) for columns, table in read)
    workload = Workload(name=description.name, inputs=inputs, nodes=_nodes(description))
    topology = topologies.lay_out(workload, description.parallelism)
    wrong = problems(workload, topology)
    if wrong:
        raise UsageError(f"the workload {description.name} cannot run: {'; '.join(wrong)}")
    asked_for = topology if description.parallelism else None
    return LoadedWorkload(workload=workload, topology=asked_for, keys=tuple(keys or ()))


def _goes_by_time(operator: AnyOperator) -> bool:
    timed = isinstance(operator, Window) or (isinstance(operator, User) and operator.timed)
    return timed and not is_clocked(operator)


def _columns(path: Path, columns: InputColumns) -> dict[str, list[Any]]:
    for name, number in (("splits", columns.splits), ("records", columns.records)):
        if number is not None and number < 1:
            raise UsageError(f"the input {columns.name!r} has {name} = {number}; it must be at least 1")
    wanted = [name for name in (columns.key, columns.value, columns.split, columns.event_time) if name is not None]
    table = tables.read_columns(path, wanted)
    if columns.records is not None:
        table = {name: values[: columns.records] for name, values in table.items()}
    rows = len(table[columns.key])
    if rows == 0:
        raise UsageError(f"{path} has no rows")
    if rows > tables.LIMIT_ROWS:
        raise UsageError(f"{path} has more than {tables.LIMIT_ROWS:,} rows; take the first ones with `records`")
    table[columns.value] = list(_whole(path, columns, table[columns.value]))
    if columns.event_time is not None:
        table[columns.event_time] = list(_times(path, columns.event_time, table[columns.event_time]))
    return table


def _whole(path: Path, columns: InputColumns, values: Sequence[Any]) -> Iterator[int | None]:
    """The values as bounded whole numbers; raises UsageError on the first that is not."""
    for row, value in enumerate(values, start=1):
        if value is None:
            yield None
            continue
        # The decimal digits that the file has: as doubles, 34.48 * 100 is 3447.9999999999995.
        number = _DIGITS.create_decimal(value if isinstance(value, (int, Decimal)) else str(value))
        scaled = _DIGITS.multiply(number, columns.scale)
        if scaled.is_nan():
            raise UsageError(f"{path}, row {row}: {columns.value} is {value!r}, not a number")
        if abs(scaled) > VALUE_BOUND:
            raise UsageError(f"{path}, row {row}: {columns.value} is {value!r}, beyond what sums can hold")
        if scaled != scaled.to_integral_value():
            raise UsageError(
                f"{path}, row {row}: {columns.value} is {value!r}, not whole with the scale {columns.scale};"
                " a greater `scale` in the workload file makes it so"
            )
        yield int(scaled)


def _times(path: Path, name: str, values: Sequence[Any]) -> Iterator[int]:
    """The event times as whole numbers; raises UsageError on the first that is not."""
    for row, value in enumerate(values, start=1):
        try:
            time = datetime.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            raise UsageError(f"{path}, row {row}: {name} is {value!r}, not a time in ISO form") from None
        if time is None:
            raise UsageError(f"{path}, row {row}: {name} is empty; every record needs its event time")
        if isinstance(time, datetime) and time == time:  # not pandas' NaT
            zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
            yield (zoned - _EPOCH) // timedelta(microseconds=1)
        elif isinstance(time, (int, float)) and abs(time) <= TIME_BOUND and time == int(time):
            yield int(time)
        else:
            raise UsageError(f"{path}, row {row}: {name} is {value!r}, neither a whole number nor a time")


def _dictionary(columns: Sequence[Sequence[Any]]) -> dict[str, int] | None:
    """Numbers for text keys, by their sorted distinct values; None when all keys are whole numbers."""
    values = [value for column in columns for value in column if value is not None]
    if all(isinstance(value, int) for value in values):
        return None
    return {text: number for number, text in enumerate(sorted({str(value) for value in values}))}


def _tags(name: str, number: int) -> Iterator[int]:
    """Distinct random 40-bit tags, the same ones for the same workload."""
    return iter(random.Random(zlib.crc32(name.encode())).sample(range(1 << TAG_BITS), number))


def _input(
    columns: InputColumns, table: dict[str, list[Any]], keys: dict[str, int] | None, tags: Iterator[int], *, timed: bool
) -> Input:
    """`timed`: some window reads its event time; else nobody would receive its watermarks."""
    records: list[InputRecord] = []
    for key, value in zip(table[columns.key], table[columns.value], strict=True):
        number = key if keys is None or key is None else keys[str(key)]
        records.append((number, value, next(tags)))
    rows = _rows_by_split(columns, table)
    times = table[columns.event_time] if timed and columns.event_time is not None else None
    return Input(
        name=columns.name,
        splits=tuple(tuple(records[row] for row in split) for split in rows),
        times=tuple(tuple(times[row] for row in split) for split in rows) if times is not None else (),
        delay=columns.delay if times is not None else 0,
        bounded=columns.bounded,
    )


def _splits_of(columns: InputColumns, table: dict[str, list[Any]]) -> int:
    return columns.splits if columns.split is None else len(set(table[columns.split]))


def _rows_by_split(columns: InputColumns, table: dict[str, list[Any]]) -> list[Sequence[int]]:
    """The numbers of the rows of each split, in order."""
    count = len(table[columns.key])
    if columns.split is None:
        return [range(first, count, columns.splits) for first in range(columns.splits)]
    named = [str(value) for value in table[columns.split]]
    by_name: dict[str, list[int]] = {name: [] for name in sorted(set(named))}
    for row, name in enumerate(named):
        by_name[name].append(row)
    return list(by_name.values())


def _nodes(description: WorkloadFile) -> tuple[Node, ...]:
    before = tuple(columns.name for columns in description.inputs)
    nodes: list[Node] = []
    for step in description.steps:
        nodes.append(Node(name=step.name, operator=step.operator, inputs=step.inputs or before))
        before = (step.name,)
    return tuple(nodes)
