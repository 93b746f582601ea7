"""Threads that nobody waits for: they are ended before the interpreter is, or the interpreter is not."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from cutproof.harness.runtime import background
from cutproof.harness.runtime.background import in_background
from cutproof.properties.spark.session import session

READING = """
import atexit, io, sys, time
import pyarrow
from cutproof.harness.runtime.background import in_background
from cutproof.harness.cli.entry import leave

class Peer(io.RawIOBase):
    def readable(self):
        return True

    def read(self, size=-1):
        began.append(size)
        while True:
            time.sleep(0.001)

began = []
in_background(pyarrow.ipc.open_stream, Peer())
while not began:
    time.sleep(0.001)
atexit.register(print, "registered")
print("told")
leave(130)
"""
"""As PySpark's answers are read: PyArrow calls Python for the next bytes of a stream, which do not come."""


def test_a_thread_in_a_native_call_does_not_abort_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", READING], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "told\nregistered\n", "")


KILLING = """
import logging, pathlib, sys, threading
from pyspark import java_gateway
from cutproof.harness.runtime.background import in_background
from cutproof.harness.cli.entry import leave
from cutproof.properties.spark.session import janitor, session

killed = threading.Event()

def ask():
    killed.wait()
    logging.error("Exception while sending command.", exc_info=ConnectionError("reset"))
    logging.getLogger("py4j.clientserver").error("Error while sending or receiving")

session.find_java = lambda: pathlib.Path("java")
java_gateway.launch_gateway = lambda *_, **__: 1 // 0
assert "division" in str(session.start_in_background().exception())
janitor.started_with = lambda folder: [1]
janitor.kill = lambda started: killed.set()
in_background(ask)
print("interrupted", file=sys.stderr)
leave(130)
"""
"""As py4j tells that the Java it has asked is gone."""


def test_what_a_killed_spark_leaves_unanswered_prints_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", KILLING], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end kills the Spark that is asked: not that of the other tests of this process."""
    monkeypatch.setattr(session, "abandon", lambda within_s, asked: True)


@pytest.mark.usefixtures("no_spark")
def test_the_end_waits_for_what_is_under_way() -> None:
    begun, go = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        go.wait()
        return "done"

    future = in_background(work)
    assert begun.wait(10)
    assert not background.end(0.05)
    threading.Timer(0.05, go.set).start()
    assert background.end(10)
    assert future.result(0) == "done"


@pytest.mark.usefixtures("no_spark")
def test_what_it_raises_is_reported_and_the_thread_is_over() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    future = in_background(fail)
    with pytest.raises(ZeroDivisionError):
        future.result(10)
    assert background.end(10)
