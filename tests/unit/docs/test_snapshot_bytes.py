"""docs/format.md describes the files of a store byte for byte: what follows only the page reads and writes the same.

Nothing of the engine's own code encodes or decodes here, but on the other side of each comparison.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutproof.properties.model.workload import Count, Tumbling
from cutproof.reference_impl.core.vocabulary import events, formats, state
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint, JobRecord
from cutproof.reference_impl.core.vocabulary.formats import KeyedEdit, Manifest, decode, encode
from cutproof.reference_impl.core.vocabulary.state import EnumeratorState, Ref, TaskState
from cutproof.reference_impl.processes.disk.durable import sealed
from cutproof.reference_impl.processes.disk.files import DiskJobs, position_in
from unit.simulated.overtaken import job as overtaking
from unit.simulated.worlds import job, started

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
KEPT = ROOT / "tests" / "unit" / "core" / "vocabulary" / "snapshots"
CANONICAL = [*sorted(KEPT.glob("*.snapshot")), *sorted(KEPT.glob("*-store/snapshots/*/*/*"))]
RECORDS = sorted(KEPT.glob("*-store/records/*"))
JOBS = sorted(KEPT.glob("*-store/jobs/*"))
KEEPING: dict[str, Any] = {"retained_checkpoints": 20}


def table(section: str, title: str) -> list[list[str]]:
    """The cells of a table of the page, without its heading."""
    _, _, rest = TEXT.partition(f"{section}\n")[2].partition(f"| {title} |")
    rows = rest.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


FIELDS = table("### The canonical snapshot, byte for byte", "Field")
OF_A_CHECKPOINT = table("The record of a checkpoint, `records/chk-N`:", "Field")
OF_A_JOB = table("The record of a job, `jobs/job-J`:", "Field")
DEFAULTS = {name.strip("`"): json.loads(default.strip("`")) for name, _, default, *_ in FIELDS}


# -- the tables are those of the code ----------------------------------------------------


def words(hint: Any) -> str:
    """A type as the page writes it."""
    hint = getattr(hint, "__supertype__", hint)
    if isinstance(hint, type) and issubclass(hint, Ref):
        return f"[{', '.join(words(one) for one in get_type_hints(Ref).values())}]"
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (list, tuple) and parts[-1] is Ellipsis:
        return f"list of {words(parts[0])}"
    if origin is list:
        return f"list of {words(parts[0])}"
    if origin is tuple:
        return f"[{', '.join(words(one) for one in parts)}]"
    if origin is dict:
        return f"{{{words(parts[0])}: {words(parts[1])}}}"
    if origin in (Union, UnionType):
        return " or ".join(words(one) for one in parts)
    return {int: "int", str: "text", bool: "true or false", NoneType: "null"}.get(hint, "object")


def test_the_fields_of_a_snapshot_are_those_of_the_engine_in_its_order() -> None:
    """Another field, order, type or default is another version of the format."""
    hints = get_type_hints(TaskState)
    fresh = msgspec.structs.asdict(TaskState())
    assert [(name.strip("`"), kind, json.loads(default.strip("`"))) for name, kind, default, _ in FIELDS] == [
        (name, words(hints[name]), fresh[name]) for name in TaskState.__struct_fields__
    ]
    assert TaskState.__struct_config__.omit_defaults
    assert f"`cutproof-snapshot/{formats.VERSION} canonical`" in TEXT
    assert f"Version {formats.VERSION} is the one above" in TEXT


@pytest.mark.parametrize(("kind", "rows"), [(CompletedCheckpoint, OF_A_CHECKPOINT), (JobRecord, OF_A_JOB)])
def test_the_fields_of_a_record_are_those_of_the_engine_in_its_order(
    kind: type[msgspec.Struct], rows: list[list[str]]
) -> None:
    hints = get_type_hints(kind)
    known = {"flag": "true or false", "`finish`, `stop`, `drain` or null": "object or null", "object": "object"}
    found = [(name.strip("`"), known.get(what, what), missing) for name, what, missing, _ in rows]
    # what `CompletedCheckpoint.stored` converts
    stored = {"parallelism": ("parallelism", "{text: int}", "`{}`"), "key_groups": ("key_groups", "int", "`0`")}
    expected = []
    for field in msgspec.structs.fields(kind):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        missing = "refused" if field.required else f"`{msgspec.json.encode(default).decode()}`"
        expected.append(stored.get(field.name, (field.name, words(hints[field.name]), missing)))
    assert found == expected
    assert not kind.__struct_config__.omit_defaults


def test_the_parts_of_records_and_manifests_are_those_of_the_engine() -> None:
    assert EnumeratorState.__struct_fields__ == ("unassigned", "assigned")
    assert EnumeratorState.__struct_config__.omit_defaults
    assert events.Closure.__struct_fields__ == ("status", "cause")
    assert [str(end.value) for end in events.JobEnd] == ["finish", "stop", "drain"]
    assert Manifest.__struct_fields__ == ("state", "files", "layout")
    assert KeyedEdit.__struct_fields__ == ("entries", "panes", "held")


# -- files are read as the page says -------------------------------------------------------


def crc(data: bytes) -> bytes:
    return b"%08x" % zlib.crc32(data)


def body_of(data: bytes) -> bytes:
    """The JSON of a canonical file, of either version."""
    front, rest = data[:30], data[30:]
    if front == b"cutproof-snapshot/2 canonical ":
        assert rest[8:9] == b"\n"
        assert rest[:8] == crc(front + rest[9:])
        return rest[9:]
    return sealed_body(data)


def sealed_body(data: bytes) -> bytes:
    assert data[8:9] == b" "
    assert data[:8] == crc(data[9:])
    return data[9:]


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def built(found: object) -> dict[str, Any]:
    """What the engine holds, as JSON has it."""
    raw: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(found, str_keys=True)))
    return raw


@pytest.mark.parametrize("path", CANONICAL, ids=lambda path: path.relative_to(KEPT).as_posix())
def test_a_kept_file_is_read_as_the_page_says(path: Path) -> None:
    data = path.read_bytes()
    found = json.loads(body_of(data))
    assert list(found) == [name for name in DEFAULTS if name in found]
    assert found == built(decode(data))
    assert all(found[name] != DEFAULTS[name] for name in found)
    if data.startswith(b"cutproof-snapshot/2"):
        assert written({**DEFAULTS, **found}) == data


def test_kept_files_are_of_both_versions_and_many() -> None:
    firsts = {path.read_bytes()[:19] == b"cutproof-snapshot/2" for path in CANONICAL}
    assert firsts == {True, False}
    assert len(CANONICAL) >= 31
    assert len(RECORDS) >= 6
    assert len(JOBS) == 2


# -- and written as the page says ------------------------------------------------------------


def null_first(key: int | None) -> tuple[bool, int]:
    return key is not None, key or 0


ORDERS: Mapping[str, Callable[[Any], Any]] = {
    "entries": lambda one: (one[0], null_first(one[1])),
    "idle": lambda one: one,
    "timers": lambda one: (one[0], null_first(one[1]), one[2]),
    "alarms": lambda one: (one[0], null_first(one[1]), one[2]),
    "held": lambda one: (one[1] != "*", null_first(one[0]), one[1]),
}
"""of the lists whose order the page gives; maps come by number or name"""


def written(raw: Mapping[str, Any]) -> bytes:
    """The canonical file of a state."""
    ready = dict(raw)
    if len(raw["panes"]) == len(raw["entries"]):
        pairs = sorted(zip(raw["entries"], raw["panes"], strict=True), key=lambda one: ORDERS["entries"](one[0]))
        ready["panes"] = [pane for _, pane in pairs]
    for name, order in ORDERS.items():
        ready[name] = sorted(raw[name], key=order)
    for name, value in ready.items():
        if isinstance(value, dict):
            by = int if name != "declared" else str
            ready[name] = {key: value[key] for key in sorted(value, key=by)}
    front = b"cutproof-snapshot/2 canonical "
    body = as_json({name: ready[name] for name in DEFAULTS if ready[name] != DEFAULTS[name]})
    return front + crc(front + body) + b"\n" + body


numbers = st.integers(-(1 << 63), (1 << 63) - 1)
keys = st.none() | st.integers(-3, 3)


def lists(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.tuples(*parts), max_size=3)


def maps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[int, Any]]:
    return st.dictionaries(st.integers(-1, 12), values, max_size=3)


elements = st.lists(st.sampled_from([(1, None, 3, 0, 512, 7), (5,), ()]), max_size=3)
states = st.builds(
    TaskState,
    positions=maps(numbers),
    entries=lists(st.integers(-1, 2), keys, st.none() | numbers, numbers),
    transactions=lists(st.text(), numbers),
    watermark=st.just(state.BEGINNING) | numbers,
    times=st.lists(numbers, max_size=2),
    idle=st.lists(st.integers(0, 20), unique=True, max_size=3),
    maxima=maps(numbers),
    timers=lists(st.integers(0, 2), keys, numbers),
    alarms=lists(st.integers(0, 2), keys, numbers),
    held=lists(keys, st.sampled_from(["*", "a", "ä", "Z"]), st.text()),
    declared=st.dictionaries(st.text(max_size=2), st.text(), max_size=3),
    listed=lists(st.text(), st.text()),
    shared=lists(st.text(), st.text()),
    broadcast=lists(st.text(), st.text()),
    queued=maps(elements),
    unsent=maps(elements),
    replays=maps(st.lists(numbers, max_size=2)),
    spilled=maps(st.lists(st.builds(Ref, st.text(), numbers, numbers), max_size=2)),
    rotations=st.lists(numbers, max_size=2),
    turn=st.integers(0, 9),
    serial=st.integers(0, 9),
    ended=st.booleans(),
)


@st.composite
def with_panes(draw: st.DrawFn) -> TaskState:
    """Of windows, whose entries have panes; of others, which have none."""
    drawn = draw(states)
    wanted = len(drawn.entries) if draw(st.booleans()) else 0
    panes = draw(st.lists(st.tuples(numbers, numbers), min_size=wanted, max_size=wanted))
    return msgspec.structs.replace(drawn, panes=panes)


@settings(max_examples=300)
@given(with_panes())
def test_a_state_is_written_as_the_page_says(drawn: TaskState) -> None:
    assert encode(drawn) == written({**DEFAULTS, **built(drawn)})


def test_what_jobs_store_is_written_as_the_page_says() -> None:
    """In jobs whose snapshots hold windows and in-flight data."""
    windows, overtaken = job(60, Tumbling(size=20), Count(), **KEEPING), overtaking(**KEEPING)
    (source,) = windows.workload.inputs
    timed = msgspec.structs.replace(source, times=(tuple(range(0, 180, 3)),))
    windows = msgspec.structs.replace(windows, workload=msgspec.structs.replace(windows.workload, inputs=(timed,)))
    seen: set[str] = set()
    for scenario in (windows, overtaken):
        for data in started(scenario, 60_000).files.files.values():
            raw = {**DEFAULTS, **json.loads(body_of(data))}
            assert written(raw) == data
            seen |= {name for name in raw if raw[name] != DEFAULTS[name]}
    assert seen >= {"positions", "entries", "timers", "panes", "queued", "maxima", "transactions", "rotations"}


@pytest.mark.parametrize("path", [*RECORDS, *JOBS], ids=lambda path: path.relative_to(KEPT).as_posix())
def test_a_kept_record_is_read_as_the_page_says(path: Path) -> None:
    rows, kind = (OF_A_JOB, JobRecord) if path in JOBS else (OF_A_CHECKPOINT, CompletedCheckpoint)
    data = path.read_bytes()
    found = json.loads(sealed_body(data))
    names = [name.strip("`") for name, *_ in rows]
    assert list(found) == [name for name in names if name in found]
    missing = {
        name.strip("`"): json.loads(what.strip("`")) for name, _, what, _ in rows if name.strip("`") not in found
    }
    read: Any = msgspec.json.decode(data[9:], type=kind)
    stored = read.stored() if isinstance(read, CompletedCheckpoint) else read
    assert built(stored) == {**found, **missing}
    whole = {name: {**found, **missing}[name] for name in names}
    body = as_json(whole)
    assert sealed(stored) == crc(body) + b" " + body


def test_the_files_of_positions_are_as_the_page_says(tmp_path: Path) -> None:
    jobs = DiskJobs(tmp_path)
    jobs.save_position(3, 17, 2)
    jobs.trim(3, 12)
    for name, attempt, offset in (("split-3", 2, 17), ("begins-3", 0, 12)):
        data = (tmp_path / "positions" / name).read_bytes()
        line = re.fullmatch(rb"([0-9]{20}) ([0-9]{20}) ([0-9a-f]{8})\n", data)
        assert line is not None
        assert (len(data), int(line[1]), int(line[2]), line[3]) == (51, attempt, offset, crc(data[:41]))
    assert position_in(b"", 3) == (0, 0)
