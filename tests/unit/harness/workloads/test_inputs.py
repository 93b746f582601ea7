"""Workload files and their data: what columns become, and what is refused in one line."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.workloads.inputs import LoadedWorkload, load, read_description
from cutproof.properties.model.workload import Count, Join

TOML = """
format = "cutproof-workload/1"
name = "sales"
[[inputs]]
name = "sales"
file = "sales.csv"
key = "shop"
value = "price"
split = "till"
scale = 100
[[steps]]
name = "count"
operator = { kind = "count" }
"""
CSV = "shop,price,till\nnorth,1.25,b\nsouth,,a\n,3,b\nnorth,-2.5,a\n"


def _load(folder: Path, toml: str = TOML, csv: str = CSV) -> LoadedWorkload:
    (folder / "sales.csv").write_text(csv)
    path = folder / "sales.toml"
    path.write_text(toml)
    return load(read_description(path), folder)


def test_columns_become_records(tmp_path: Path) -> None:
    loaded = _load(tmp_path)
    (source,) = loaded.workload.inputs
    assert loaded.keys == ("north", "south")
    assert [[(key, value) for key, value, _ in split] for split in source.splits] == [
        [(1, None), (0, -250)],
        [(0, 125), (None, 300)],
    ]
    assert loaded.workload.nodes[0].operator == Count()
    assert loaded.topology is None


def test_a_value_is_scaled_by_its_decimal_digits(tmp_path: Path) -> None:
    """As doubles, 34.48 * 100 is 3447.9999999999995, and 0.29 * 100 is 28.999999999999996."""
    cents = [*range(0, 6000, 7), 3448, 29, -3448]
    rows = [f"n,{cent / 100},a" for cent in cents]
    (source,) = _load(tmp_path, csv="\n".join(["shop,price,till", *rows, ""])).workload.inputs
    assert [value for _, value, _ in source.splits[0]] == cents


def test_decimals_of_parquet_are_scaled_exactly(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    prices = pa.array([Decimal("34.48"), Decimal("0.29"), None], pa.decimal128(38, 20))
    data = tmp_path / "decimals.parquet"
    pyarrow.parquet.write_table(pa.table({"shop": ["n"] * 3, "price": prices, "till": ["a"] * 3}), data)
    (tmp_path / "sales.toml").write_text(TOML)
    (source,) = load(read_description(tmp_path / "sales.toml"), tmp_path, data).workload.inputs
    assert [value for _, value, _ in source.splits[0]] == [3448, 29, None]


def test_a_parallelism_that_is_given_makes_the_layout(tmp_path: Path) -> None:
    topology = _load(tmp_path, TOML + "[parallelism]\ncount = 3\n").topology
    assert topology is not None
    assert topology.parallelism == {"sales": 2, "count": 3, "sink": 2}
    assert topology.edge("sales", "count").partitioning == "hash"


def test_tags_are_distinct_and_the_same_every_time(tmp_path: Path) -> None:
    first, second = _load(tmp_path), _load(tmp_path)
    tags = [tag for split in first.workload.inputs[0].splits for _, _, tag in split]
    assert len(set(tags)) == 4
    assert first == second


def test_two_inputs_share_one_dictionary(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,v\nx,1\nz,2\n")
    (tmp_path / "b.csv").write_text("k,v\ny,1\nz,2\n")
    (tmp_path / "w.toml").write_text(
        'format = "cutproof-workload/1"\nname = "pairs"\n'
        '[[inputs]]\nname = "a"\nfile = "a.csv"\nkey = "k"\nvalue = "v"\nsplits = 1\n'
        '[[inputs]]\nname = "b"\nfile = "b.csv"\nkey = "k"\nvalue = "v"\nsplits = 1\n'
        '[[steps]]\nname = "match"\noperator = { kind = "join" }\n'
    )
    loaded = load(read_description(tmp_path / "w.toml"), tmp_path)
    assert loaded.workload.nodes[0].operator == Join()
    assert [[key for key, _, _ in source.splits[0]] for source in loaded.workload.inputs] == [[0, 2], [1, 2]]


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    from_csv = _load(tmp_path)
    data = tmp_path / "other.parquet"
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(tmp_path / "sales.csv"), data)
    again = load(read_description(tmp_path / "sales.toml"), tmp_path, data)
    assert [len(split) for split in again.workload.inputs[0].splits] == [2, 2]
    assert again.keys[-2:] == from_csv.keys


@pytest.mark.parametrize(
    ("csv", "reason"),
    [
        ("", "is empty"),
        ("shop,price,till\n", "has no rows"),
        ("shop,prize,till\nn,1,a\n", "has no column 'price'; did you mean 'prize'?"),
        ("shop,price,till\nn,cheap,a\n", "row 1: price is 'cheap', not a number"),
        ("shop,price,till\nn,1.005,a\n", "row 1: price is 1.005, not whole with the scale 100"),
        ("shop,price,till\nn,1e400,a\n", "beyond what sums can hold"),
        ("shop,price,till\nn,1e999999999,a\nn,x,a\n", "beyond what sums can hold"),
        ("shop,price,till\nn,nan,a\n", "not a number"),
        ("shop,price,till\nn,99999999999999999,a\n", "beyond what sums can hold"),
        ("shop,price,till\nn,1\n", "cannot be read as CSV"),
    ],
)
def test_wrong_data_is_one_line(tmp_path: Path, csv: str, reason: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]*$") as caught:
        _load(tmp_path, csv=csv)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("toml", "reason"),
    [
        (TOML.replace("/1", "/9"), "has the format 'cutproof-workload/9'"),
        (TOML.replace("count", "cuont"), "is not a workload file: Invalid value 'cuont'"),
        (TOML.replace("split =", "spilt ="), "unknown field `spilt`"),
        (TOML.replace('kind = "count"', 'kind = "join"'), "has 1 inputs, its kind takes 2"),
        (TOML.replace('file = "sales.csv"', ""), "names no file; give one with --input"),
        ("[[", "is not a workload file"),
    ],
)
def test_a_wrong_workload_file_is_one_line(tmp_path: Path, toml: str, reason: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]*$") as caught:
        _load(tmp_path, toml=toml)
    assert reason in str(caught.value)


def test_a_deeply_nested_workload_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(UsageError, match="deep"):
        read_description(path)


WINDOWED = TOML.replace("scale = 100", 'event_time = "at"\ndelay = 5').replace(
    '{ kind = "count" }', '{ kind = "tumbling", size = 60000000 }'
)


def test_a_window_is_given_event_times(tmp_path: Path) -> None:
    csv = "shop,price,till,at\nn,1,a,1970-01-01T00:00:01\nn,1,b,1970-01-01T01:00:02+01:00\nn,1,a,1969-12-31\n"
    (source,) = _load(tmp_path, WINDOWED, csv).workload.inputs
    assert (source.times, source.delay) == (((1_000_000, -86_400_000_000), (2_000_000,)), 5)
    (source,) = _load(tmp_path, WINDOWED, "shop,price,till,at\nn,1,a,7\nn,1,b,-3\n").workload.inputs
    assert source.times == ((7,), (-3,))


def test_without_a_window_nobody_asks_for_event_times(tmp_path: Path) -> None:
    toml = TOML.replace("scale = 100", 'event_time = "at"')
    (source,) = _load(tmp_path, toml, "shop,price,till,at\nn,1,a,7\n").workload.inputs
    assert (source.times, source.delay) == ((), 0)


def test_event_times_must_be_whole(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"row 1: at is 1.5, neither a whole number nor a time"):
        _load(tmp_path, WINDOWED, "shop,price,till,at\nn,1,a,1.5\n")


def test_event_times_must_be_times(tmp_path: Path) -> None:
    toml = TOML.replace("scale = 100", 'event_time = "at"')
    with pytest.raises(UsageError, match="row 2: at is 'soon', not a time"):
        _load(tmp_path, toml, "shop,price,till,at\nn,1,a,2013-02-07T05:00\nn,1,a,soon\n")
