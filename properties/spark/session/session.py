"""The one Spark session of a process, tuned for many small batches.

A JVM takes seconds to start, so each process has one, and it can start in the
background while scenarios run.  The session is always created on a thread of its
own: there PySpark does not replace the process's Ctrl-C handler.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

from . import class_archive, janitor
from .errors import SparkUnavailable
from .java import cache_folder, find_java, wrapper_home
from .masters import demand_answering, is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[2]"

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
SETTINGS: Mapping[str, str | None] = {
    DRIVER_OPTIONS: (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m -Xms512m -Xmn256m "
        "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    ),
    "spark.driver.memory": "2g",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.debug.maxToStringFields": "0",
    "spark.sql.defaultSizeInBytes": "8",
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    "spark.sql.maxPlanStringLength": "64",
    "spark.sql.maxSinglePartitionBytes": str(2**63 - 1),
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.shuffle.compress": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings for small batches.  Plans are interpreted, and hardly described in words.  Tables are neither written into
the plan nor broadcast; those of one partition, which all count as small, are joined without an exchange of rows.  Java
has room for its classes from the start: it would collect all garbage each time that it needs more.  It does not verify
the bytecode of Spark's ten thousand classes; a Java that has no option for this verifies it."""

TABLES: Mapping[str, str | None] = {
    DRIVER_OPTIONS: "-XX:+UseParallelGC",
    "spark.driver.memory": "4g",
    "spark.sql.autoBroadcastJoinThreshold": None,
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.constraintPropagation.enabled": None,
    "spark.sql.debug.maxToStringFields": None,
    "spark.sql.defaultSizeInBytes": None,
    "spark.sql.execution.arrow.localRelationThreshold": None,
    "spark.sql.execution.arrow.maxRecordsPerBatch": None,
    "spark.sql.maxPlanStringLength": None,
    "spark.sql.maxSinglePartitionBytes": None,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.subexpressionElimination.enabled": None,
    "spark.sql.ui.explainMode": None,
}
"""Settings for a few passes over large tables: Java's second compiler, compiled plans, and more memory."""

QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark logs to these, on standard error and with Java's stack, the errors that it also raises."""

AT_HOME = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""For a local master only: a cluster's workers must find the driver."""

KILL_AGAIN_S = 0.1
"""interval at which a Java that is still being started is looked for, and killed"""

_lock = threading.Lock()
_session: Future[SparkSession] | None = None
_master = ""
_janitor: subprocess.Popen[str] | None = None
_starting: threading.Thread | None = None
_kept: Path | None = None
"""the folder of the Spark that is running, or being started"""
_lost: tuple[str, SparkSession] | None = None
"""a session whose cluster is gone, and the reason"""


def session(master: str | None = None, settings: Mapping[str, str | None] | None = None) -> SparkSession:
    """The session of this process, which is started if there is none; raises SparkUnavailable if it does not start.

    `master` is a Spark master's URL, by default two threads of this machine.
    If the session is started now, `settings` override those for small batches; None leaves one to Spark.
    """
    return start_in_background(master, settings).result()


def start_in_background(
    master: str | None = None,
    settings: Mapping[str, str | None] | None = None,
    then: Callable[[SparkSession], None] | None = None,
) -> Future[SparkSession]:
    """Begin to start the session, if there is none; `then` warms up the session before anybody gets it."""
    global _session, _master, _starting
    with _lock:
        if _session is None:
            _session, _master = Future(), master or LOCAL
            work = (_session, _master, overridden(settings or {}), then)
            _starting = threading.Thread(target=_fill, args=work, daemon=True, name="spark-start")
            _starting.start()
        elif master not in (None, _master):
            raise SparkUnavailable(f"this process already has a Spark session on {_master}, not on {master}")
        return _session


def stop() -> None:
    """Stop the session and its JVM, if there is one; a later `session()` starts a new one."""
    global _session, _lost
    with _lock:
        stopping, _session, former, _lost = _session, None, _lost, None
    if former is not None:
        _shut_down(former[1])
    elif stopping is not None and stopping.exception() is None:
        _shut_down(stopping.result())


def declare_lost(reason: str) -> None:
    """End the session, since its cluster is gone: whoever asks for a session gets SparkUnavailable with this reason."""
    global _session, _lost
    with _lock:
        if _session is None or _lost is not None or not _session.done() or _session.exception() is not None:
            return
        _lost = (reason, _session.result())
        _session = Future()
        _session.set_exception(SparkUnavailable(reason))
    with contextlib.suppress(Exception):  # Java may have ended
        _lost[1].sparkContext._jsc.sc().stop()


def lost() -> str:
    """Why the session's cluster is gone; empty if it is not."""
    return _lost[0] if _lost is not None else ""


def abandon(within_s: float, *, asked: bool = False) -> bool:
    """Before the interpreter ends, kill the Java of a Spark that is still being started, or is computing (`asked`).

    A caller that waits for Spark gets an error, and py4j would log its traceback: so all logging is disabled.
    Returns whether the thread that starts Spark has ended.
    """
    starting = _starting
    if starting is None:
        return True
    deadline = time.monotonic() + within_s
    while asked or starting.is_alive():
        if _kept is not None:
            logging.disable(logging.CRITICAL)
            janitor.kill(janitor.started_with(_kept))
        starting.join(min(KILL_AGAIN_S, max(0.0, deadline - time.monotonic())))
        asked = False
        if time.monotonic() >= deadline:
            break
    return not starting.is_alive()


def overridden(settings: Mapping[str, str | None]) -> dict[str, str]:
    """The settings for small batches with others in their place."""
    given = {**SETTINGS, **settings}
    return {name: value for name, value in given.items() if value is not None}


def _fill(
    future: Future[SparkSession],
    master: str,
    settings: Mapping[str, str],
    then: Callable[[SparkSession], None] | None,
) -> None:
    try:
        started = _start(master, settings)
        if then is not None:
            then(started)
    except BaseException as error:  # the callers that wait for the session get any failure
        future.set_exception(error)
    else:
        future.set_result(started)


def _start(master: str, settings: Mapping[str, str]) -> SparkSession:
    demand_answering(master)
    java = find_java()
    if importlib.util.find_spec("pyspark") is None:
        raise SparkUnavailable("PySpark is not installed: `pip install pyspark`")
    log = _folder() / "spark.log"
    try:
        return _launch(master, settings, java, log)
    except Exception as error:
        raise SparkUnavailable(f"Spark did not start on {master}: {_reason(error, log)}") from error


def _folder() -> Path:
    """A folder for Spark's log and files; the janitor process removes it when this process has ended."""
    global _janitor, _kept
    if _janitor is not None:
        _janitor.communicate()
    _janitor = subprocess.Popen(
        [sys.executable, "-I", "-S", janitor.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    if _janitor.stdout is None:
        raise SparkUnavailable("the process that keeps Spark's folder did not report the folder's path")
    _kept = Path(_janitor.stdout.readline().rstrip("\n"))
    return _kept


def _launch(master: str, settings: Mapping[str, str], java: Path, log: Path) -> SparkSession:
    """The session; Spark's launcher, Java and Spark print into `log`."""
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.sql import SparkSession

    from . import update_server

    update_server.install()
    settings = dict(settings) | (AT_HOME if is_local(master) else {})
    settings["spark.local.dir"] = str(log.parent)
    given = settings.get(DRIVER_OPTIONS, "")
    options = f"{given} {class_archive.added(java, given)} -Djava.io.tmpdir={log.parent}"
    settings[DRIVER_OPTIONS] = options.strip()
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("cutproof").setAll(list(settings.items()))
    # The executors of a cluster may have their Python elsewhere.
    python = sys.executable if is_local(master) else os.environ.get("PYSPARK_PYTHON", sys.executable)
    environment = _environment(JAVA_HOME=str(wrapper_home(java, cache_folder())), PYSPARK_PYTHON=python)
    with log.open("wb") as file, environment, _temporary_files_in(log.parent, java_gateway):
        streams = {"stdout": file, "stderr": file}
        gateway = java_gateway.launch_gateway(conf, popen_kwargs=streams)  # type: ignore[no-untyped-call]
        context = SparkContext(conf=conf, gateway=gateway)
    context.setLogLevel("ERROR")
    for name in QUERY_LOGGERS:
        logging.getLogger(name).disabled = True
    logging.getLogger().addFilter(_is_not_of_py4j)
    return SparkSession(context)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """A filter: py4j logs on the root logger, with a traceback, each error of its connection that it also raises."""
    return Path(record.pathname).parent.name != "py4j"


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Set environment variables that the launcher reads, only while it starts."""
    saved = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, old in saved.items():
            if old is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = old


@contextlib.contextmanager
def _temporary_files_in(folder: Path, module: ModuleType) -> Iterator[None]:
    """Make PySpark's launcher create its temporary folder in `folder`; the launcher has no parameter for this.

    The folder is removed there even if this process is killed just then.
    """
    true = module.tempfile
    made_here = functools.partial(tempfile.mkdtemp, dir=folder)
    module.tempfile = SimpleNamespace(mkdtemp=made_here, mkstemp=tempfile.mkstemp)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.tempfile = true  # type: ignore[attr-defined]


def _reason(error: Exception, log: Path) -> str:
    """The most informative line: the first error in Java's log, else the exception's first line and the log's last."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()] if log.exists() else []
    errors = [line for line in lines if "rror" in line or "xception" in line]
    if errors:
        return errors[0]
    first = (str(error).splitlines() or [type(error).__name__])[0]
    last = next((line for line in reversed(lines) if line), None)
    return f"{first} (Java's last words: {last})" if last is not None else first


def _shut_down(running: SparkSession) -> None:
    """Stop Spark and its JVM, so that a new session can have other settings."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    ended = process is not None and process.poll() is not None
    with contextlib.suppress(Py4JError, OSError) if ended else contextlib.nullcontext():
        running.stop()  # fails if the JVM has ended by itself
    if ended:
        SparkContext._active_spark_context = None
        type(running)._instantiatedSession = None
    if gateway is None:
        return
    with contextlib.suppress(Py4JError, OSError) if ended else contextlib.nullcontext():
        gateway.shutdown()
    if process is not None:
        process.stdin.close()
        process.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None
