"""The pipelines that come with the package, by name."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import msgspec

from ..runtime.config import nearest
from ..runtime.exit_codes import ServiceMissing, UsageError
from ..toxiproxy import program as toxiproxy
from .description import Pipeline
from .needs.supplies import demand_jdk, missing
from .reading import read_pipeline

FOLDER = Path(__file__).with_name("shipped")


class Shipped(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline of the package: its file, and the module without which its engine is not installed."""

    file: str
    module: str = ""
    """empty if the engine is fetched when the pipeline is first used"""
    extra: str = ""
    """of the package, that installs the engine; empty if the package itself needs it"""

    @property
    def path(self) -> Path:
        return FOLDER / self.file

    @property
    def is_installed(self) -> bool:
        """Whether the engine is there; one that is fetched counts as there once all of it is."""
        if self.module:
            return importlib.util.find_spec(self.module) is not None
        pipeline = read_pipeline(self.path)
        try:
            demand_jdk(pipeline)
        except ServiceMissing:
            return False
        return not missing(pipeline)


SHIPPED: dict[str, Shipped] = {
    "bytewax-count": Shipped(file="bytewax_count/pipeline.toml", module="bytewax", extra="bytewax"),
    "deltalake-appends": Shipped(file="tables/deltalake_appends.toml", module="deltalake", extra="delta"),
    "deltalake-transactions": Shipped(file="tables/deltalake_transactions.toml", module="deltalake", extra="delta"),
    "deltalake-two-writers": Shipped(file="tables/deltalake_two_writers.toml", module="deltalake", extra="delta"),
    "deltalake-zombie": Shipped(file="tables/deltalake_zombie.toml", module="deltalake", extra="delta"),
    "flink-count": Shipped(file="flink/count.toml"),
    "flink-iceberg": Shipped(file="iceberg_flink/pipeline.toml", module="pyiceberg", extra="iceberg"),
    "flink-iceberg-bounded": Shipped(file="iceberg_flink/bounded.toml", module="pyiceberg", extra="iceberg"),
    "flink-iceberg-paused": Shipped(file="iceberg_flink/paused.toml", module="pyiceberg", extra="iceberg"),
    "flink-windows": Shipped(file="flink/windows.toml"),
    "iceberg-spark": Shipped(file="iceberg_spark/pipeline.toml", module="pyiceberg", extra="iceberg"),
    "kafka-no-transaction": Shipped(file="kafka/no_transaction.toml", module="confluent_kafka", extra="kafka"),
    "kafka-offsets-outside": Shipped(file="kafka/offsets_outside.toml", module="confluent_kafka", extra="kafka"),
    "kafka-transactions": Shipped(file="kafka/transactions.toml", module="confluent_kafka", extra="kafka"),
    "pyiceberg-appends": Shipped(file="tables/pyiceberg_appends.toml", module="pyiceberg", extra="iceberg"),
    "pyiceberg-transactions": Shipped(file="tables/pyiceberg_transactions.toml", module="pyiceberg", extra="iceberg"),
    "pyiceberg-two-writers": Shipped(file="tables/pyiceberg_two_writers.toml", module="pyiceberg", extra="iceberg"),
    "pyiceberg-zombie": Shipped(file="tables/pyiceberg_zombie.toml", module="pyiceberg", extra="iceberg"),
    "pypaimon-appends": Shipped(file="tables/pypaimon_appends.toml"),
    "pypaimon-transactions": Shipped(file="tables/pypaimon_transactions.toml"),
    "pypaimon-two-writers": Shipped(file="tables/pypaimon_two_writers.toml"),
    "pypaimon-zombie": Shipped(file="tables/pypaimon_zombie.toml"),
    "spark-count": Shipped(file="spark/count.toml", module="pyspark"),
    "spark-dedup": Shipped(file="spark/dedup.toml", module="pyspark"),
    "spark-delta": Shipped(file="spark/delta.toml", module="deltalake", extra="delta"),
    "spark-file": Shipped(file="spark/file.toml", module="pyspark"),
    "spark-foreachbatch-append": Shipped(file="spark/append.toml", module="pyspark"),
    "spark-foreachbatch-idempotent": Shipped(file="spark/idempotent.toml", module="pyspark"),
    "spark-windows": Shipped(file="spark/windows.toml", module="pyspark"),
}


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the list."""

    name: str
    installed: bool
    fetches: tuple[str, ...]
    """what the first run would fetch: packages of PyPI, and jars of Maven Central"""
    about: str


def listed() -> list[Listed]:
    """All pipelines of the package."""
    return [_listed(name, one) for name, one in SHIPPED.items()]


def _listed(name: str, one: Shipped) -> Listed:
    pipeline = read_pipeline(one.path)
    return Listed(name=name, installed=one.is_installed, fetches=tuple(missing(pipeline)), about=pipeline.file.about)


def builds_server(pipeline: Pipeline) -> bool:
    """Whether the first run of a pipeline builds Toxiproxy, since the pipeline has proxies and no server is there.

    Raises ServiceMissing if there is one that does not work, which no run replaces.
    """
    if not pipeline.file.proxies:
        return False
    try:
        server = toxiproxy.binary()
    except ServiceMissing:
        if os.environ.get(toxiproxy.VARIABLE):
            raise
        return True
    toxiproxy.version(server)
    return False


def path_of(name: str) -> Path:
    """The file of a pipeline: one of the package by its name, or the path itself.

    Raises UsageError if there is neither, or if the engine is not installed; ServiceMissing if there is no JDK for one
    that needs it.
    """
    if name in SHIPPED:
        shipped = SHIPPED[name]
        demand_jdk(read_pipeline(shipped.path))
        if shipped.module and not shipped.is_installed:
            raise UsageError(f"{name} needs {shipped.module}; install it: pip install 'cutproof[{shipped.extra}]'")
        return shipped.path
    path = Path(name)
    if not path.suffix and not path.exists():
        raise UsageError(f"there is no pipeline {name!r}{nearest(name, SHIPPED)}; `cutproof pipeline list` names them")
    return path
