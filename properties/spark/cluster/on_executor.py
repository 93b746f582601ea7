"""The part of a task that Spark sends to the executors: it finds the package there, and calls the work by its name.

Spark's workers of Python cannot import the package before its archive is on their path.
So this module is sent by value, and imports nothing of the package at its top.
"""

from __future__ import annotations

import importlib
import socket
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable

ANSWERS = "answer binary, problem string"
"""the columns of an answer: one of the two is null"""


def tasks(archive: str, work: tuple[str, str], given: bytes) -> Callable[[Iterable[pd.DataFrame]], Iterator[Any]]:
    """A function for `mapInPandas`: for each row it calls `work(given, **row)`, which returns bytes.

    `archive` is the name under which Spark unpacks the package, `work` is a module and a function in it.
    """

    def run(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            for row in frame.to_dict("records"):
                answer, problem = _answer(archive, work, given, row)
                yield pd.DataFrame({"answer": [answer], "problem": [problem]})

    return run


def _answer(archive: str, work: tuple[str, str], given: bytes, row: dict[str, Any]) -> tuple[bytes | None, str | None]:
    """The work's bytes, or the reason why there are none: an exception would be raised again in three more attempts."""
    from pyspark import SparkFiles

    folder = SparkFiles.get(archive)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        function = getattr(importlib.import_module(work[0]), work[1])
    except ImportError as error:
        return None, f"the executor on {socket.gethostname()} lacks a dependency of cutproof: {error}"
    try:
        return function(given, **row), None
    except Exception as error:
        return None, f"the executor on {socket.gethostname()} failed: {type(error).__name__}: {error}"
