"""What a pipeline counts itself: the value of each kind of counter, and when it is taken."""

from __future__ import annotations

import io
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.user_pipelines import aims, counters
from cutproof.harness.user_pipelines.aims import Lookout, Value
from cutproof.harness.user_pipelines.counters import Counters
from cutproof.harness.user_pipelines.description import Aim
from cutproof.properties.model.history import Counted

LINES = "batch 1 had 10 rows\nbegun\nbatch 2 had 7 rows\nbatch 3 had none\n" + f"huge {'1' * 400}\n"


def value(counter: Aim, places: Mapping[str, str] | None = None) -> Value | None:
    return Lookout(counter, places or {}).value(lambda: LINES)


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("^batch [0-9]+ had", 3),
        ("^batch [0-9]+ had ([0-9]+) rows", 7),
        ("^batch 3 had (.*)", "none"),
        ("^huge ([0-9]+)", "1" * 60),
        ("^never ([0-9]+)", None),
        ("^never", 0),
    ],
)
def test_a_log_shows_how_many_lines_match_or_the_group_of_the_last_that_does(pattern: str, shown: Value | None) -> None:
    assert value(Aim(log=pattern)) == shown


def test_files_are_counted_and_those_that_others_have_are_not(tmp_path: Path) -> None:
    for name in ("offsets/0", "offsets/1", "offsets/2", "commits/0", "commits/1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    places = {"state": str(tmp_path)}
    assert value(Aim(files="{state}/offsets/*"), places) == 3
    assert value(Aim(files="{state}/offsets/*", without="{state}/commits/*"), places) == 1
    assert value(Aim(files="{state}/nothing/*"), places) == 0


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("max(n)", 4),
        ("avg(n)", 2.5),
        ("max(word)", "x"),
        ("'12'", 12),
        ("NULL", None),
        ("9e999", "inf"),
        ("x'00ff'", "b'\\x00\\xff'"),
    ],
)
def test_a_query_shows_its_first_value(query: str, shown: Value | None, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "it.db") as store:
        store.execute("CREATE TABLE t (n INT, word TEXT)")
        store.executemany("INSERT INTO t VALUES (?, 'x')", [(1,), (4,)])
    store.close()
    assert value(Aim(query=f"SELECT {query} FROM t", database=str(tmp_path / "it.db"))) == shown


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"counts": {"failed": 2}}, 2),
        ({"counts": {"failed": [{}, {}, {}]}}, 3),
        ({"counts": {"failed": True}}, 1),
        ({"counts": {}}, None),
        (None, None),
    ],
)
def test_a_url_shows_what_is_in_its_answer(
    answer: object, shown: Value | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cutproof.harness.user_pipelines.aims.answer_of", lambda _: answer)
    assert value(Aim(url="http://127.0.0.1:1/", json="counts.failed")) == shown


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ('{"n": NaN}', "nan"),
        ('{"n": -Infinity}', "-inf"),
        ('{"n": 1e400}', "inf"),
        (f'{{"n": {"1" * 400}}}', "1" * 60),
        (f'{{"n": {"[" * 100_000}', None),
    ],
    ids=["nan", "infinity", "too large for a float", "400 digits", "nested deeply"],
)
def test_no_answer_of_a_server_harms_the_run_or_its_history(
    answer: str, shown: Value | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aims._DIRECTLY, "open", lambda *_, **__: io.BytesIO(answer.encode()))
    looked = Counters({"n": Aim(url="http://127.0.0.1:1/", json="n")}, {}, lambda _: "", lambda: 0)
    looked.begin()
    looked.finish()
    saved = msgspec.json.decode(msgspec.json.encode(looked.taken), type=dict[str, list[Counted]])
    assert [taken.value for taken in saved["n"]] == ([] if shown is None else [shown])


def test_a_counter_is_looked_at_again_and_keeps_the_values_that_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "EVERY_S", 0.001)
    printed = ["", "line\n", "line\n", "line\n" * 2, "line\n" * 2]
    all_were_seen = threading.Event()

    def told(role: str) -> str:
        assert role == "broker"
        if len(printed) == 1:
            all_were_seen.set()
            return printed[0]
        return printed.pop(0)

    clock = iter(range(1_000_000))
    looked = Counters({"lines": Aim(log="^line", role="broker")}, {}, told, lambda: next(clock))
    looked.begin()
    assert all_were_seen.wait(10)
    assert looked.close()
    printed[0] = "line\n" * 3
    looked.finish()
    assert [(taken.at_us, taken.value) for taken in looked.taken["lines"]] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert not looked.problems


def test_a_counter_that_cannot_be_read_says_why_and_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "it.db").write_text("no database at all, but a text that is long enough to be taken for one" * 20)
    wrong = Aim(query="SELECT 1 FROM t", database=str(tmp_path / "it.db"))
    looked = Counters({"wrong": wrong, "right": Aim(log="^a")}, {}, lambda _: "a\n", lambda: 0)
    looked.begin()
    looked.finish()
    assert "it.db cannot be read" in looked.problems["wrong"]
    assert [taken.value for taken in looked.taken["right"]] == [1]


def test_a_run_that_never_began_has_nothing_to_end(tmp_path: Path) -> None:
    looked = Counters({"one": Aim(log="^a")}, {}, lambda _: "a\n", lambda: 0)
    looked.finish()
    assert looked.taken == {"one": []}


def test_a_counter_that_takes_long_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "ENDS_WITHIN_S", 0.05)
    waits, may_go = threading.Event(), threading.Event()

    def printed(_: str) -> str:
        waits.set()
        may_go.wait(10)
        return ""

    looked = Counters({"slow": Aim(log="^a")}, {}, printed, lambda: 0)
    looked.begin()
    assert waits.wait(10)
    looked.finish()
    assert looked.taken == {"slow": []}
    may_go.set()
    assert looked.close()
