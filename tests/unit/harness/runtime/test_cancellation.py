"""Work in worker processes that is not wanted any more: cancelled at once, by force where that is needed."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import pytest

from cutproof.harness.runtime.cancellation import Cancellation, WorkCancelled, cancellable, obey
from cutproof.harness.runtime.interruption import signals_blocked
from unit.harness.unwanted_work import deaf, sleep, swallow

SOON_S = 20.0
"""far below LONG_S, and enough for a machine that has other things to do"""


@pytest.fixture
def pool() -> Iterator[ProcessPoolExecutor]:
    executor = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=obey)
    yield executor
    executor.shutdown(wait=True, cancel_futures=True)


def begin(pool: ProcessPoolExecutor, task: Callable[[Path], None], sign: Path) -> Future[None]:
    with signals_blocked():
        return pool.submit(cancellable, task, sign)


def wait_for(sign: Path) -> None:
    until = time.monotonic() + SOON_S
    while not sign.exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_work_ends_where_it_stands(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    under_way, next_one = (begin(pool, sleep, tmp_path / name) for name in ("a", "b"))
    wait_for(tmp_path / "a")
    began = time.monotonic()
    Cancellation(pool).wait(SOON_S)
    assert time.monotonic() - began < SOON_S
    assert isinstance(under_way.exception(), WorkCancelled)
    assert next_one.cancelled() or isinstance(next_one.exception(), WorkCancelled)
    assert (tmp_path / "a.ended").exists()
    assert not (tmp_path / "b").exists()


def test_the_pool_has_settled_every_future_and_is_over(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    notified: list[str] = []

    def note(future: Future[None]) -> None:
        time.sleep(0.8)
        notified.append("settled")

    begin(pool, deaf, tmp_path / "a").add_done_callback(note)
    wait_for(tmp_path / "a")
    Cancellation(pool).wait(0.2)
    assert notified == ["settled"]


def test_it_does_not_get_lost_in_a_finalizer(
    pool: ProcessPoolExecutor, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    under_way = begin(pool, swallow, tmp_path / "a")
    wait_for(tmp_path / "a")
    Cancellation(pool).wait(SOON_S)
    assert isinstance(under_way.exception(), WorkCancelled)
    assert capfd.readouterr() == ("", "")


def test_a_worker_that_is_only_being_started_ends_in_order(
    pool: ProcessPoolExecutor, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begin(pool, sleep, tmp_path / "a")
    Cancellation(pool).wait(SOON_S)
    assert not (tmp_path / "a").exists()
    assert capfd.readouterr() == ("", "")


def test_a_worker_that_receives_nothing_is_killed_and_what_it_had_started_is_waited_for(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    begin(pool, deaf, tmp_path / "a")
    wait_for(tmp_path / "a")
    Cancellation(pool).wait(0.2)
    assert (tmp_path / "a.gone").exists()


def test_where_nothing_is_under_way_nothing_happens(pool: ProcessPoolExecutor) -> None:
    assert pool.submit(cancellable, int, "7").result() == 7
    Cancellation(pool).wait()
