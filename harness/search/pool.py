"""Where a search's work runs: in worker processes, or in this process."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Protocol, TypeVar

import msgspec

from ..runtime.cancellation import Cancellation, cancellable
from ..runtime.interruption import signals_blocked
from ..scenario.model import Scenario
from ..shrink.on_subject import Seen
from ..shrink.shrink import Shrunk
from ..subject.port import Subject
from . import worker
from .worker import Chunk, Plan, Worker

T = TypeVar("T")

_chunks = msgspec.msgpack.Decoder(Chunk)


class Pool(Protocol):
    """Runs chunks and shrinks, at once or later."""

    workers: int
    starts: bool
    """it has to start interpreters before it runs anything"""

    @property
    def lost(self) -> str:
        """Why nothing can be run any more, in one line; empty if something can, or if this is not known."""

    def chunk(self, first: int, end: int) -> Future[Encoded]:
        """Scenarios `first` to `end` - 1; `chunk_of` decodes the result."""

    def shrink(
        self, scenario: Scenario, invariant: str, difference: str, seen: Seen | None = None
    ) -> Future[Shrunk]: ...

    def stop(self) -> None:
        """End the work that is under way at once, without results."""

    def close(self) -> None: ...


Encoded = bytes | Chunk


def chunk_of(done: Encoded) -> Chunk:
    return _chunks.decode(done) if isinstance(done, bytes) else done


class Processes:
    """Worker processes; they are spawned, so they inherit no lock and no thread of this process."""

    starts = True
    lost = ""

    def __init__(self, plan: Plan, workers: int) -> None:
        self.workers = workers
        self._cancellation: Cancellation | None = None
        self._executor = ProcessPoolExecutor(
            workers, mp_context=multiprocessing.get_context("spawn"), initializer=worker.start, initargs=(plan,)
        )

    def chunk(self, first: int, end: int) -> Future[Encoded]:
        return self._submit(worker.chunk, first, end)

    def shrink(self, scenario: Scenario, invariant: str, difference: str, seen: Seen | None = None) -> Future[Shrunk]:
        return self._submit(worker.shrunk, scenario, invariant, difference, seen)

    def stop(self) -> None:
        if self._cancellation is None:
            self._cancellation = Cancellation(self._executor)

    def close(self) -> None:
        if self._cancellation is not None:
            self._cancellation.wait()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _submit(self, work: Callable[..., T], *arguments: object) -> Future[T]:
        """Submitting may start a process; signals to this process are not passed on to it."""
        with signals_blocked():
            return self._executor.submit(cancellable, work, *arguments)


class Here:
    """This process: for a subject that has no name under which a worker could import it, for one that asks PySpark
    itself, and for tests."""

    workers = 1
    starts = False
    lost = ""

    def __init__(self, plan: Plan, subject: Subject | None = None) -> None:
        self._worker = Worker(plan, subject)

    def chunk(self, first: int, end: int) -> Future[Encoded]:
        return _done(lambda: self._worker.chunk(first, end))

    def shrink(self, scenario: Scenario, invariant: str, difference: str, seen: Seen | None = None) -> Future[Shrunk]:
        return _done(lambda: self._worker.shrink(scenario, invariant, difference, seen))

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


def _done(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except Exception as error:  # raised when the result is asked for
        future.set_exception(error)
    return future
