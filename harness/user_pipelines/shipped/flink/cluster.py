"""The processes of a Flink cluster, with little memory, and the jar of its jobs.

`cluster.py jobmanager|taskmanager NAME STATE REST RPC` becomes a process of a cluster: it has a name, a folder below
the run's state, and the ports of the job manager's REST interface and of its RPC.  `cluster.py jar STATE [FOLDER]`
compiles the jobs of this folder, or of another, into STATE/jobs.jar.  FLINK is the virtual environment that Flink is in
(`apache-flink-libraries`), CONNECTOR a folder with the jars of a connector, if there is one, and JAVA the home of Java.
Flink's own scripts are not used: they start a JVM only to compute memory settings.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NoReturn

FLINK = Path(os.environ.get("FLINK", ""))
CONNECTOR = os.environ.get("CONNECTOR", "")
JAVA = f"{os.environ.get('JAVA', '')}/bin/java"

UNUSED = ("flink-scala", "flink-cep", "flink-table-planner")
OPENED = ("lang", "lang.reflect", "io", "net", "nio", "text", "time", "util", "util.concurrent")
SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xss512k")
HEAP = {"jobmanager": ("-Xms128m", "-Xmx256m"), "taskmanager": ("-Xms96m", "-Xmx192m")}
MAIN = {
    "jobmanager": "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
    "taskmanager": "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
}
EVERYWHERE = {
    # How soon the loss of a process is noticed.
    "heartbeat.interval": "300",
    "heartbeat.timeout": "2500",
    # How soon a process looks again for a job manager that was not there.
    "cluster.registration.initial-timeout": "100",
    "cluster.registration.max-timeout": "500",
    "cluster.registration.error-delay": "200",
    "cluster.registration.refused-registration-delay": "200",
}
JOB_MANAGER = {
    "jobmanager.bind-host": "127.0.0.1",
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "taskmanager.load-balance.mode": "SLOTS",
    "slotmanager.redundant-taskmanager-num": "0",
    # What REST answers is not older than this.
    "web.refresh-interval": "100",
    "rest.cache.checkpoint-statistics.timeout": "100",
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


def classpath() -> str:
    """The jars of the distribution that a job of DataStreams uses, and those of its connector."""
    jars = sorted(FLINK.glob("lib/python*/site-packages/pyflink/lib/*.jar"))
    if not jars:
        sys.exit(f"there is no Flink in {FLINK}")
    connector = sorted(Path(CONNECTOR).glob("*.jar")) if CONNECTOR else []
    unused = UNUSED if connector else (*UNUSED, "flink-table")  # a connector may take Flink's RowData
    return ":".join(str(jar) for jar in (*jars, *connector) if not jar.name.startswith(unused))


def settings(kind: str, name: str, folder: Path, rest: str, rpc: str) -> dict[str, str]:
    own = JOB_MANAGER if kind == "jobmanager" else {**TASK_MANAGER, "taskmanager.resource-id": name}
    places = {"jobmanager.rpc.address": "127.0.0.1", "jobmanager.rpc.port": rpc, "rest.port": rest}
    return {**EVERYWHERE, **own, **places, "io.tmp.dirs": str(folder / "tmp"), "web.tmpdir": str(folder / "tmp")}


def become(kind: str, name: str, state: str, rest: str, rpc: str) -> NoReturn:
    """Become a process of the cluster."""
    folder = Path(state, name)
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    (folder / "log4j2.properties").write_text(LOG)
    (folder / "config.yaml").touch()
    command = [JAVA, *HEAP[kind], *SMALL, *(f"--add-opens=java.base/java.{one}=ALL-UNNAMED" for one in OPENED)]
    command += [f"-Dlog4j.configurationFile={folder}/log4j2.properties", f"-Djava.io.tmpdir={folder}/tmp"]
    command += ["-cp", classpath(), MAIN[kind], "--configDir", str(folder)]
    command += [f"-D{key}={value}" for key, value in settings(kind, name, folder, rest, rpc).items()]
    os.execv(command[0], command)


def jar(state: str, folder: str = "") -> None:
    """Compile the jobs: those of this folder, or those of another, which may use classes of this one.

    Their jar is kept beside the distribution that they were compiled against.
    """
    own = Path(__file__).parent
    sources = sorted(Path(folder or own).glob("*.java"))
    used = [*sorted(own.glob("*.java")), *sources]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in used)).hexdigest()[:16]
    kept = FLINK / f"jobs-{digest}.jar"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=FLINK) as classes:
            _compile(sources, own, classes)
            made = Path(classes, "jobs.jar")
            with zipfile.ZipFile(made, "w") as archive:
                for path in sorted(Path(classes).glob("*.class")):
                    archive.write(path, path.name)
            os.replace(made, kept)
    shutil.copy(kept, Path(state, "jobs.jar"))


def _compile(sources: list[Path], used: Path, classes: str) -> None:
    compiler = [JAVA, "-m", "jdk.compiler/com.sun.tools.javac.Main", "--release", "17"]
    places = ["-cp", classpath(), "-sourcepath", str(used), "-d", classes]
    done = subprocess.run([*compiler, *places, *map(str, sources)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(
            f"the jobs cannot be compiled; it takes a Java with its compiler (a JDK): {done.stderr or done.stdout}"
        )


def main(what: str, *arguments: str) -> None:
    if what == "jar":
        jar(*arguments)
    else:
        become(what, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
