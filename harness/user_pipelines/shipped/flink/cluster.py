"""Becomes a process of a Flink cluster, with little memory: `cluster.py jobmanager|taskmanager NAME JAVA VENV STATE REST RPC`.

Arguments: what it is, its name, the home of Java, the virtual environment that the distribution is
in (`apache-flink-libraries`), the folder of the run's state, and the ports of the job manager's
REST interface and of its RPC.  Flink's own scripts are not used: they compute memory settings with
a JVM of their own, and leave the JVM in another process than the one that was started.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

OPENED = ("lang", "lang.reflect", "io", "net", "nio", "text", "time", "util", "util.concurrent")
SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xss512k")
HEAP = {"jobmanager": ("-Xms128m", "-Xmx256m"), "taskmanager": ("-Xms96m", "-Xmx192m")}
MAIN = {
    "jobmanager": "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
    "taskmanager": "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
}
EVERYWHERE = {
    # How soon the loss of a process is noticed.
    "heartbeat.interval": "500 ms",
    "heartbeat.timeout": "2500 ms",
    # How soon a process looks again for a job manager that was not there.
    "cluster.registration.initial-timeout": "100 ms",
    "cluster.registration.max-timeout": "500 ms",
    "cluster.registration.error-delay": "200 ms",
    "cluster.registration.refused-registration-delay": "200 ms",
}
JOB_MANAGER = {
    "jobmanager.bind-host": "127.0.0.1",
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "taskmanager.load-balance.mode": "SLOTS",
    "slotmanager.redundant-taskmanager-num": "0",
    # What REST answers is not older than this.
    "web.refresh-interval": "100",
    "rest.cache.checkpoint-statistics.timeout": "100 ms",
    "rest.cache.checkpoint-statistics.size": "0",
}
TASK_MANAGER = {
    "taskmanager.host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "taskmanager.numberOfTaskSlots": "2",
    "taskmanager.cpu.cores": "2",
    "taskmanager.memory.framework.heap.size": "64m",
    "taskmanager.memory.task.heap.size": "64m",
    "taskmanager.memory.framework.off-heap.size": "32m",
    "taskmanager.memory.task.off-heap.size": "0m",
    "taskmanager.memory.managed.size": "48m",
    "taskmanager.memory.network.min": "16m",
    "taskmanager.memory.network.max": "16m",
    "taskmanager.memory.segment-size": "4kb",
    "taskmanager.memory.jvm-metaspace.size": "128m",
    "taskmanager.memory.jvm-overhead.min": "64m",
    "taskmanager.memory.jvm-overhead.max": "64m",
}
LOG = """
status = error
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
appender.console.type = CONSOLE
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} %m%n%throwable{12}
"""


def distribution(venv: str) -> Path:
    """The folder of Flink's distribution in a virtual environment."""
    found = sorted(Path(venv).glob("lib/python*/site-packages/pyflink"))
    if not found:
        sys.exit(f"there is no Flink in {venv}")
    return found[0]


def classpath(venv: str) -> str:
    """The jars of the distribution that a job of DataStreams uses."""
    jars = sorted(distribution(venv).glob("lib/*.jar"))
    return ":".join(str(jar) for jar in jars if not jar.name.startswith(("flink-table", "flink-scala", "flink-cep")))


def settings(kind: str, name: str, folder: Path, rest: str, rpc: str) -> dict[str, str]:
    own = JOB_MANAGER if kind == "jobmanager" else {**TASK_MANAGER, "taskmanager.resource-id": name}
    places = {"jobmanager.rpc.address": "127.0.0.1", "jobmanager.rpc.port": rpc, "rest.port": rest}
    return {**EVERYWHERE, **own, **places, "io.tmp.dirs": str(folder / "tmp"), "web.tmpdir": str(folder / "tmp")}


def main(kind: str, name: str, java: str, venv: str, state: str, rest: str, rpc: str) -> None:
    folder = Path(state, name)
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    (folder / "log4j2.properties").write_text(LOG)
    (folder / "config.yaml").touch()
    opened = [f"--add-opens=java.base/java.{one}=ALL-UNNAMED" for one in OPENED]
    command = [f"{java}/bin/java", *HEAP[kind], *SMALL, *opened, f"-Dlog4j.configurationFile={folder}/log4j2.properties"]
    command += ["-Djava.io.tmpdir=" + str(folder / "tmp"), "-cp", classpath(venv), MAIN[kind], "--configDir", str(folder)]
    command += [f"-D{key}={value}" for key, value in settings(kind, name, folder, rest, rpc).items()]
    os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
