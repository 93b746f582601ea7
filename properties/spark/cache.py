"""A cache of expected rows, by the content of the question: Spark computes each answer once."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from .operators import Meaning
from .tables import Expected, OracleJob


@functools.cache
def version() -> str:
    """A digest of the oracle's own source with its folders: any change to it invalidates every answer."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def key_of(job: OracleJob, meanings: Mapping[str, Meaning]) -> str:
    """The name of a job's question: a digest of exactly those values that determine the answer."""
    followed = (
        sorted(job.applies.items()),
        sorted(job.advances.items()),
        job.tip,
        sorted(job.scales.items()),
        job.periods,
    )
    question = (version(), sorted(meanings.items()), job.workload, job.cuts, *followed)
    return hashlib.sha256(msgspec.msgpack.encode(question)).hexdigest()


class Cache:
    """The newest `capacity` answers in memory, and all of them under `folder` if one is given.

    If a file cannot be read or written, the answer is computed again.
    """

    def __init__(self, folder: Path | None = None, capacity: int = 2_000) -> None:
        self._folder = folder
        self._capacity = capacity
        self._known: dict[str, Expected] = {}

    def get(self, key: str) -> Expected | None:
        """The answer to a question; None if it is not known."""
        if key not in self._known and self._folder is not None:
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                self._keep(key, msgspec.msgpack.decode((self._folder / key).read_bytes(), type=Expected))
        return self._known.get(key)

    def put(self, key: str, expected: Expected) -> None:
        self._keep(key, expected)
        if self._folder is not None:
            with contextlib.suppress(OSError):
                _write(self._folder / key, msgspec.msgpack.encode(expected))

    def _keep(self, key: str, expected: Expected) -> None:
        self._known[key] = expected
        while len(self._known) > self._capacity:
            del self._known[next(iter(self._known))]


def _write(path: Path, content: bytes) -> None:
    """Write a temporary file beside `path` and move it there: another process may read `path` at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(made).replace(path)
