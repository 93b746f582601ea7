"""Where a search's work is done: worker processes, or this process alone."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, Protocol, TypeVar

import msgspec

from . import worker
from .scenario import Scenario
from .shrink import Shrunk
from .subject import Subject
from .worker import Chunk, Plan, Worker

T = TypeVar("T")

_chunks = msgspec.msgpack.Decoder(Chunk)


class Pool(Protocol):
    """Runs chunks and shrinks; what it is given it may do at once, or later."""

    workers: int

    def chunk(self, first: int, end: int) -> Future[Chunk]: ...

    def shrink(self, scenario: Scenario, invariant: str, difference: str) -> Future[Shrunk]: ...

    def close(self) -> None: ...


class Processes:
    """Worker processes: spawned, so that no lock or thread of this process is inherited."""

    def __init__(self, plan: Plan, workers: int) -> None:
        self.workers = workers
        self._executor: Executor = ProcessPoolExecutor(
            workers, mp_context=multiprocessing.get_context("spawn"), initializer=worker.start, initargs=(plan,)
        )

    def chunk(self, first: int, end: int) -> Future[Chunk]:
        return _then(self._executor.submit(worker.chunk, first, end), _chunks.decode)

    def shrink(self, scenario: Scenario, invariant: str, difference: str) -> Future[Shrunk]:
        return self._executor.submit(worker.shrunk, scenario, invariant, difference)

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)


class Here:
    """This process: for a subject that cannot be named to another, and for tests."""

    workers = 1

    def __init__(self, plan: Plan, subject: Subject | None = None) -> None:
        self._worker = Worker(plan, subject)

    def chunk(self, first: int, end: int) -> Future[Chunk]:
        return _done(lambda: self._worker.chunk(first, end))

    def shrink(self, scenario: Scenario, invariant: str, difference: str) -> Future[Shrunk]:
        return _done(lambda: self._worker.shrink(scenario, invariant, difference))

    def close(self) -> None:
        pass


def _done(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except Exception as error:  # told to whoever asks for the result
        future.set_exception(error)
    return future


def _then(future: Future[Any], change: Callable[[Any], T]) -> Future[T]:
    """A future of the changed result."""
    changed: Future[T] = Future()

    def pass_on(done: Future[Any]) -> None:
        if done.cancelled():
            changed.cancel()
            changed.set_running_or_notify_cancel()
            return
        error = done.exception()
        if error is not None:
            changed.set_exception(error)
            return
        try:
            changed.set_result(change(done.result()))
        except Exception as failure:
            changed.set_exception(failure)

    future.add_done_callback(pass_on)
    return changed
