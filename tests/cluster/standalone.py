"""A standalone Spark cluster of this machine: a master and workers as processes, from the installed pyspark."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark

from cutproof.properties.spark.session.java import cache_folder, find_java, wrapper_home

HOST = "127.0.0.1"
START_S = 120.0
POLL_S = 0.05
END_S = 20.0
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Cluster:
    """A cluster in a folder; `close` ends its processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.master = ""
        self._start("master", "org.apache.spark.deploy.master.Master", "--host", HOST, "--port", "0")
        self.master = self._said("master", r"Starting Spark master at (spark://\S+)")

    def have(self, *names: str) -> None:
        """Start those of these workers that are not there."""
        for name in names:
            if name not in self._processes:
                self._add_worker(name)

    def _add_worker(self, name: str, cores: int = 1) -> None:
        """Start a worker, and wait until the master knows it."""
        work = str(self._folder / f"work-{name}")
        kind = "org.apache.spark.deploy.worker.Worker"
        self._start(name, kind, "--host", HOST, "-c", str(cores), "-m", "1g", "--work-dir", work, self.master)
        self._said(name, r"(Successfully registered) with master")

    def executors(self, name: str) -> list[int]:
        """The processes of a worker's executors."""
        return [int(pid) for pid in _children(self._processes[name].pid) if b"CoarseGrained" in _words(pid)]

    def wait_for_executor(self, name: str) -> None:
        self._until(lambda: bool(self.executors(name)), f"{name} has no executor")

    def kill(self, name: str) -> None:
        """Kill a worker and its executors, as if their machine were lost."""
        for pid in [*self.executors(name), self._processes[name].pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._processes.pop(name).wait()

    def close(self) -> None:
        for one in self._processes.values():
            one.terminate()
        for one in self._processes.values():
            try:
                one.wait(END_S)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        self._processes.clear()
        self._until(lambda: not processes_of(self._folder), "a process is left")

    def _start(self, name: str, kind: str, *words: str) -> None:
        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "JAVA_HOME": str(wrapper_home(find_java(), cache_folder())),
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": JAVA,
            "SPARK_LOCAL_DIRS": str(self._folder),
            "SPARK_LOCAL_IP": HOST,
        }
        command = [str(home / "bin" / "spark-class"), kind, "--webui-port", "0", *words]
        with self._log(name).open("wb") as log:
            self._processes[name] = subprocess.Popen(
                command, env=environment, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _said(self, name: str, pattern: str) -> str:
        """The first group of the pattern in a process's log, once it is there."""
        found: list[str] = []

        def look() -> bool:
            found.extend(re.findall(pattern, self._log(name).read_text(errors="replace")))
            return bool(found) or self._processes[name].poll() is not None

        self._until(look, f"{name} does not start")
        assert found, self._log(name).read_text(errors="replace")[-2000:]
        return found[0]

    @staticmethod
    def _until(look: Callable[[], bool], why: str) -> None:
        deadline = time.monotonic() + START_S
        while not look():
            assert time.monotonic() < deadline, why
            time.sleep(POLL_S)


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster without workers, which are of one core each."""
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.close()


def processes_of(folder: Path) -> list[int]:
    """The processes that were started with a cluster's folder in their environment, at any remove."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended
            if f"={folder}\0".encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
    return found


def _children(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return " ".join(lists).split()
    return []


def _words(pid: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
