"""Modules that an extra of the package installs, for formats of some pipelines' files."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

from ...runtime.exit_codes import UsageError
from ..description import PipelineFile

EXTRAS = {"confluent_kafka": "kafka", "deltalake": "delta", "pyiceberg": "iceberg"}
"""the extra that installs a module"""


def module(name: str) -> Any:
    """A module; raises UsageError, in one line, if it is not installed."""
    demand(name.partition(".")[0])
    return importlib.import_module(name)


def demand(name: str) -> None:
    """Raise UsageError if a module is not installed."""
    if importlib.util.find_spec(name) is None:
        raise UsageError(f"{name} is not installed; install it: pip install 'cutproof[{EXTRAS[name]}]'")


def modules_of(file: PipelineFile) -> Iterator[str]:
    """The modules without which a pipeline's file cannot be used."""
    if "kafka" in (file.feed.to, file.read.format):
        yield "confluent_kafka"
    if file.read.format == "delta":
        yield "deltalake"
    if file.read.format == "iceberg":
        yield "pyiceberg"
