"""What a task of a search does on an executor: a range of scenarios, or the shrinking of one."""

from __future__ import annotations

import functools
import gc

import msgspec

from ..runtime.exit_codes import CutproofError, one_line
from ..scenario.model import Scenario
from ..search.worker import Chunk, Plan, Worker, where
from ..shrink.on_subject import Seen
from ..shrink.shrink import Shrunk


class Shrinking(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario to be shrunk, and how it has to go on failing."""

    scenario: Scenario
    invariant: str
    difference: str
    seen: Seen | None = None
    """what the run that found the failure has shown"""


class ShrinkingDone(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a shrinking; without it the error, in one line."""

    shrunk: Shrunk | None = None
    error: str = ""


_encoder = msgspec.msgpack.Encoder()
_shrinking = msgspec.msgpack.Decoder(Shrinking)


def work(given: bytes, *, first: int, end: int, shrink: bytes | None) -> bytes:
    """An encoded `Chunk` of the plan `given`, or with `shrink` an encoded `ShrinkingDone`."""
    try:
        worker = _worker(given)
        if shrink is None:
            return _encoder.encode(worker.chunk(first, end))
        asked = _shrinking.decode(shrink)
        done = ShrinkingDone(shrunk=worker.shrink(asked.scenario, asked.invariant, asked.difference, asked.seen))
    except CutproofError as error:
        return _encoder.encode(_failed(one_line(error), shrinking=shrink is not None))
    except Exception as error:
        return _encoder.encode(_failed(where(error), shrinking=shrink is not None))
    return _encoder.encode(done)


def _failed(reason: str, *, shrinking: bool) -> Chunk | ShrinkingDone:
    return ShrinkingDone(error=reason) if shrinking else Chunk(ended=reason)


@functools.lru_cache(maxsize=1)
def _worker(given: bytes) -> Worker:
    """The worker of this process, which Spark uses for many tasks."""
    worker = Worker(msgspec.msgpack.decode(given, type=Plan))
    # What exists now stays for good. Runs leave garbage in cycles, and each collection would visit all modules as well.
    gc.collect()
    gc.freeze()
    return worker
