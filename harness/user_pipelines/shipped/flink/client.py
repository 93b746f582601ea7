"""Submits a job to a Flink cluster through REST, watches it, and stops it: `client.py run|stop|drain STATE REST …`.

`run` submits the job, says what becomes of it, and ends when it has ended.  There is no high availability: a job
manager that was killed knows no job any more.  Then the client submits the job again, with its newest complete
checkpoint.  `stop` and `drain` stop the job with a savepoint, with which the next `run` begins.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

POLL_S = 0.05
STARTS_WITHIN_S = 60.0
ANSWERS_WITHIN_S = 10.0
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""whatever proxy the environment names: the cluster is on this machine"""
JOB = {
    "execution.checkpointing.interval": "250 ms",
    "execution.checkpointing.min-pause": "20 ms",
    "execution.checkpointing.timeout": "5 s",
    "execution.checkpointing.tolerable-failed-checkpoints": "1000",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.buffer-timeout.interval": "5 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "50 ms",
}
ALIGNMENT = {
    "aligned": {"execution.checkpointing.unaligned.enabled": "false"},
    "unaligned": {
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.aligned-checkpoint-timeout": "0 ms",
    },
    "timeout": {
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.aligned-checkpoint-timeout": "50 ms",
    },
}
BACKEND = {
    "hashmap": {"state.backend.type": "hashmap"},
    "rocksdb": {"state.backend.type": "rocksdb", "execution.checkpointing.incremental": "true"},
}
LONGEST = 500
"""how many characters of an exception are said"""
ENDED = ("FINISHED", "FAILED", "CANCELED")


def say(line: str) -> None:
    print(line, flush=True)


class Unreachable(Exception):
    """The job manager does not answer, or does not know the job."""


class Rest:
    """The REST interface of a job manager."""

    def __init__(self, port: str) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> Any:
        return self._ask(urllib.request.Request(self._url + path))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        data = json.dumps(body).encode()
        return self._ask(urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"}))

    def upload(self, jar: Path) -> str:
        """Upload a jar; returns its name for `run`."""
        mark = uuid.uuid4().hex
        head = f'--{mark}\r\nContent-Disposition: form-data; name="jarfile"; filename="{jar.name}"\r\n'
        kind = "Content-Type: application/x-java-archive\r\n\r\n"
        data = (head + kind).encode() + jar.read_bytes() + f"\r\n--{mark}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={mark}"}
        answer = self._ask(urllib.request.Request(self._url + "/jars/upload", data, headers))
        return str(answer["filename"]).rpartition("/")[2]

    def _ask(self, request: urllib.request.Request) -> Any:
        try:
            with DIRECTLY.open(request, timeout=ANSWERS_WITHIN_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Unreachable(f"{error.code}: {error.read().decode(errors='replace')}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unreachable(str(error)) from error


class Job:
    """A job of a cluster, and the snapshots that it has left in the run's folder."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._rest = Rest(options.rest)
        self._state = Path(options.state)
        self._current = self._state / "job"
        """a file: the id of the job that runs"""
        self._submitted = ""
        """the id of the job that this client has submitted"""

    @property
    def id(self) -> str:
        return self._current.read_text()

    def snapshot(self) -> Path | None:
        """The newest complete checkpoint or savepoint: one that has its metadata."""
        found = [*self._state.glob("checkpoints/*/chk-*/_metadata"), *self._state.glob("savepoints/*/_metadata")]
        return max(found, key=lambda path: path.stat().st_mtime_ns).parent if found else None

    def submit(self) -> None:
        """Submit the job, with its newest snapshot if there is one."""
        options = self._options
        checkpoints = {"execution.checkpointing.dir": f"file://{self._state}/checkpoints"}
        body: dict[str, Any] = {
            "entryClass": options.job[0],
            "programArgsList": options.job[1:],
            "parallelism": options.parallelism,
            "flinkConfiguration": {**JOB, **checkpoints, **ALIGNMENT[options.alignment], **BACKEND[options.backend]},
        }
        snapshot = self.snapshot()
        if snapshot is not None:
            body |= {"savepointPath": f"file://{snapshot}", "claimMode": "NO_CLAIM"}
        jar = self._rest.upload(self._state / "jobs.jar")
        self._submitted = self._rest.post(f"/jars/{jar}/run", body)["jobid"]
        self._current.write_text(self._submitted)
        say(f"submitted, {f'with {snapshot.name}' if snapshot is not None else 'without a snapshot'}")

    def run(self) -> int:
        """Submit the job and watch it until it has ended; returns the exit code."""
        tried = False
        while True:
            try:
                if not tried or not self._is_known():
                    self._wait_for_slots()
                    tried = True
                    self.submit()
                return self._watch()
            except Unreachable as error:
                say(f"the job manager does not answer: {error}")
                time.sleep(POLL_S)

    def _is_known(self) -> bool:
        """Whether the job manager knows the job.  One that was started anew does not.  One that was only slow does,
        even if it has not answered when the job was submitted."""
        jobs = self._rest.get("/jobs/overview")["jobs"]
        own = [one["jid"] for one in jobs if one["jid"] == self._submitted or one["state"] not in ENDED]
        if own:
            self._submitted = own[0]
            self._current.write_text(own[0])
        return bool(own)

    def _wait_for_slots(self) -> None:
        deadline = time.monotonic() + STARTS_WITHIN_S
        problem = ""
        while time.monotonic() < deadline:
            try:
                if self._rest.get("/overview")["slots-available"] >= self._options.parallelism:
                    return
                problem = "too few slots"
            except Unreachable as error:
                problem = str(error)
            time.sleep(POLL_S)
        sys.exit(f"the cluster was not there within {STARTS_WITHIN_S:g} s: {problem}")

    def _watch(self) -> int:
        """Say what the job does, until it has ended; raises Unreachable if it is lost."""
        restored, completed, failed = 0, None, 0
        while True:
            state = self._rest.get(f"/jobs/{self.id}")["state"]
            found = self._rest.get(f"/jobs/{self.id}/checkpoints")
            if found["counts"]["restored"] > restored:
                restored = found["counts"]["restored"]
                what = "savepoint" if found["latest"]["restored"]["is_savepoint"] else "checkpoint"
                say(f"restored from {what} {found['latest']['restored']['id']}")
            if (latest := found["latest"]["completed"]) is not None and latest["id"] != completed:
                completed = latest["id"]
                in_flight = latest.get("persisted_data", 0)
                say(f"checkpoint {completed} completed" + (f", {in_flight} bytes in flight" if in_flight else ""))
            if found["counts"]["failed"] != failed:
                failed = found["counts"]["failed"]
                say(f"checkpoints failed: {failed}")
            if state in ENDED:
                return self._ended(state)
            time.sleep(POLL_S)

    def _ended(self, state: str) -> int:
        say(f"the job is {state}")
        if state == "FINISHED":
            return 0
        entries = self._rest.get(f"/jobs/{self.id}/exceptions")["exceptionHistory"]["entries"]
        say(" ".join(entries[0]["stacktrace"].split())[:LONGEST] if entries else "it has no exception")
        return 1

    def stop(self, *, drain: bool) -> int:
        """Stop the job with a savepoint; with `drain` all input ends before it.  Returns the exit code."""
        job = self.id
        body = {"targetDirectory": f"file://{self._state}/savepoints", "drain": drain, "formatType": "CANONICAL"}
        trigger = self._rest.post(f"/jobs/{job}/stop", body)["request-id"]
        while (found := self._rest.get(f"/jobs/{job}/savepoints/{trigger}"))["status"]["id"] != "COMPLETED":
            time.sleep(POLL_S)
        operation = found["operation"]
        if "location" not in operation:
            say(" ".join(operation["failure-cause"]["stack-trace"].split())[:LONGEST])
            return 1
        self._until(lambda: self._rest.get(f"/jobs/{job}")["state"] in ENDED)
        say(f"stopped with {operation['location'].rpartition('/')[2]}")
        # A job that counts its records tells how many the savepoint covers.
        told = self._until(lambda: self._rest.get(f"/jobs/{job}/accumulators"))["user-task-accumulators"]
        for one in told:
            if one["name"] == "position":
                say(f"covers {one['value']} records")
        return 0

    @staticmethod
    def _until(asked: Callable[[], Any]) -> Any:
        """What a question is answered with, once that is something.  A job manager that is silent is asked again."""
        while True:
            with contextlib.suppress(Unreachable):
                if answer := asked():
                    return answer
            time.sleep(POLL_S)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=("run", "stop", "drain"))
    parser.add_argument("state", help="the folder of the run's state")
    parser.add_argument("rest", help="the port of the job manager's REST interface")
    parser.add_argument("job", nargs="*", help="the job's class, and its arguments")
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--alignment", choices=ALIGNMENT, default="aligned")
    parser.add_argument("--backend", choices=BACKEND, default="hashmap")
    options = parser.parse_intermixed_args(arguments)
    job = Job(options)
    try:
        return job.run() if options.action == "run" else job.stop(drain=options.action == "drain")
    except Unreachable as error:
        sys.exit(f"the job manager does not answer: {error}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
