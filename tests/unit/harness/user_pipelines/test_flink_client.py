"""The client of the Flink pipelines, against a REST interface that is played: what it requests, says and returns."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cutproof.harness.user_pipelines.aims import Lookout
from cutproof.harness.user_pipelines.library import SHIPPED
from cutproof.harness.user_pipelines.reading import read_pipeline
from cutproof.harness.user_pipelines.shipped.flink import client, cluster

Answer = dict[str, Any] | None
"""None: the job manager knows nothing of it (404)"""


class Played:
    """A job manager: by path the answers in their order; the last one is given again and again."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.bodies: list[tuple[str, Any]] = []
        """what was posted, and where to"""
        played = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                is_json = self.headers["Content-Type"] == "application/json"
                played.bodies.append((self.path, json.loads(data) if is_json else data))
                self._answer()

            def _answer(self) -> None:
                waiting = played.answers.get(self.path, [None])
                answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                self.send_response(404 if answer is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps(answer or {"errors": ["not found"]}).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self) -> str:
        return str(self.server.server_address[1])

    def posted_to(self, path: str) -> list[Any]:
        return [body for where, body in self.bodies if where == path]


@pytest.fixture
def played() -> Iterator[Played]:
    one = Played()
    one.answers = {
        "/overview": [{"slots-available": 0}, {"slots-available": 4}],
        "/jars/upload": [{"filename": "/tmp/web/7f_jobs.jar"}],
        "/jars/7f_jobs.jar/run": [{"jobid": "a"}, {"jobid": "b"}],
        "/jobs/overview": [{"jobs": []}],
    }
    yield one
    one.server.shutdown()
    one.server.server_close()


def seen(
    restored: int | None = None,
    completed: int | None = None,
    *,
    times: int = 0,
    savepoint: bool = False,
    in_flight: int = 0,
    failed: int = 0,
) -> Answer:
    """The answer about checkpoints: the one that was restored last, and the newest that is complete."""
    latest = {
        "restored": None if restored is None else {"id": restored, "is_savepoint": savepoint},
        "completed": None if completed is None else {"id": completed, "persisted_data": in_flight},
    }
    return {"counts": {"restored": times, "failed": failed}, "latest": latest}


@pytest.fixture
def run(played: Played, tmp_path: Path) -> Callable[..., int]:
    (tmp_path / "jobs.jar").write_bytes(b"a jar")
    return lambda *arguments: client.main([arguments[0], str(tmp_path), played.port, *arguments[1:]])


def snapshot(path: Path, at: int) -> None:
    path.mkdir(parents=True)
    (path / "_metadata").touch()
    os.utime(path / "_metadata", ns=(at, at))


def test_a_job_is_submitted_and_watched_until_it_has_finished(
    played: Played, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    played.answers["/jobs/a"] = [
        {"state": state} for state in ("CREATED", "RUNNING", "RUNNING", "RUNNING", "RUNNING", "FINISHED")
    ]
    played.answers["/jobs/a/checkpoints"] = [
        seen(),
        seen(completed=1),
        seen(completed=1, restored=1, times=1),
        seen(completed=1, restored=1, times=1, failed=1),
        seen(completed=2, restored=1, times=1, failed=1, in_flight=80),
    ]
    assert (
        run("run", "Count", "in", "out", "--alignment", "unaligned", "--backend", "rocksdb", "--parallelism", "3") == 0
    )
    printed = capsys.readouterr().out
    assert printed.splitlines() == [
        "submitted, without a snapshot",
        "checkpoint 1 completed",
        "restored from checkpoint 1",
        "checkpoints failed: 1",
        "checkpoint 2 completed, 80 bytes in flight",
        "the job is FINISHED",
    ]
    for name in ("flink-count", "flink-windows"):
        counters = read_pipeline(SHIPPED[name].path).file.counters
        shown = {name: Lookout(one, {}).value(lambda: printed) for name, one in counters.items() if one.log}
        assert shown == {"restores": 1, "checkpoints-completed": 2, "checkpoints-failed": 1, "bytes-in-flight": 80}
    (body,) = played.posted_to("/jars/7f_jobs.jar/run")
    assert (body["entryClass"], body["programArgsList"], body["parallelism"]) == ("Count", ["in", "out"], 3)
    assert "savepointPath" not in body
    settings = body["flinkConfiguration"]
    assert settings["execution.checkpointing.unaligned.enabled"] == "true"
    assert settings["state.backend.type"] == "rocksdb"
    assert settings["execution.checkpointing.incremental"] == "true"
    (uploaded,) = played.posted_to("/jars/upload")
    assert b'name="jarfile"; filename="jobs.jar"' in uploaded
    assert b"\r\n\r\na jar\r\n--" in uploaded


def test_a_job_that_fails_is_told_with_its_exception(
    played: Played, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    played.answers["/jobs/a"] = [{"state": "FAILED"}]
    played.answers["/jobs/a/checkpoints"] = [seen()]
    trace = "java.lang.IllegalStateException: no\n\tat Count.main"
    played.answers["/jobs/a/exceptions"] = [{"exceptionHistory": {"entries": [{"stacktrace": trace}]}}]
    assert run("run", "Count") == 1
    assert capsys.readouterr().out.splitlines()[-1] == "java.lang.IllegalStateException: no at Count.main"


def test_a_new_job_manager_is_given_the_newest_complete_checkpoint(
    played: Played, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job manager that was killed is played by a 404: the new one does not know the job."""
    snapshot(tmp_path / "savepoints" / "savepoint-1", at=5)
    snapshot(tmp_path / "checkpoints" / "a" / "chk-9", at=8)
    snapshot(tmp_path / "checkpoints" / "a" / "chk-10", at=9)
    (tmp_path / "checkpoints" / "a" / "chk-11").mkdir()
    played.answers["/jobs/a"] = [{"state": "RUNNING"}, None]
    played.answers["/jobs/a/checkpoints"] = [seen(completed=10)]
    played.answers["/jobs/b"] = [{"state": "RUNNING"}, {"state": "FINISHED"}]
    played.answers["/jobs/b/checkpoints"] = [seen(restored=10, times=1)]
    (tmp_path / "savepoints" / "savepoint-1" / "_metadata").rename(tmp_path / "later")
    assert run("run", "Count") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "submitted, with chk-10"
    assert printed[2].startswith("the job manager does not answer: 404")
    assert printed[3:] == ["submitted, with chk-10", "restored from checkpoint 10", "the job is FINISHED"]
    bodies = played.posted_to("/jars/7f_jobs.jar/run")
    assert [body["savepointPath"] for body in bodies] == [f"file://{tmp_path}/checkpoints/a/chk-10"] * 2


def test_a_job_manager_that_was_only_slow_gets_no_second_job(
    played: Played, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two jobs would write the same rows.  The answer to the submission is lost, and later one about the job."""
    played.answers["/jars/7f_jobs.jar/run"] = [None]
    played.answers["/jobs/overview"] = [{"jobs": [{"jid": "a", "state": "RUNNING"}]}]
    played.answers["/jobs/a"] = [{"state": "RUNNING"}, None, {"state": "RUNNING"}, {"state": "FINISHED"}]
    played.answers["/jobs/a/checkpoints"] = [seen()]
    assert run("run", "Count") == 0
    assert len(played.posted_to("/jars/7f_jobs.jar/run")) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "the job is FINISHED"


def test_a_savepoint_that_is_newer_than_all_checkpoints_is_continued_from(
    played: Played, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot(tmp_path / "checkpoints" / "a" / "chk-12", at=8)
    snapshot(tmp_path / "savepoints" / "savepoint-1", at=9)
    played.answers["/jobs/a"] = [{"state": "FINISHED"}]
    played.answers["/jobs/a/checkpoints"] = [seen(restored=13, times=1, savepoint=True)]
    assert run("run", "Count") == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["submitted, with savepoint-1", "restored from savepoint 13"]


@pytest.mark.parametrize("drain", [False, True])
def test_a_stopped_job_says_how_many_records_its_savepoint_covers(
    drain: bool, played: Played, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job").write_text("a")
    place = {"location": f"file:{tmp_path}/savepoints/savepoint-a-1"}
    done = {"status": {"id": "COMPLETED"}, "operation": place}
    played.answers |= {
        "/jobs/a/stop": [{"request-id": "r"}],
        "/jobs/a/savepoints/r": [{"status": {"id": "IN_PROGRESS"}}, done],
        "/jobs/a": [{"state": "RUNNING"}, {"state": "FINISHED"}],
        "/jobs/a/accumulators": [{"user-task-accumulators": [{"name": "position", "value": "17"}]}],
    }
    assert run("drain" if drain else "stop") == 0
    assert capsys.readouterr().out.splitlines() == ["stopped with savepoint-a-1", "covers 17 records"]
    (body,) = played.posted_to("/jobs/a/stop")
    assert (body["drain"], body["targetDirectory"]) == (drain, f"file://{tmp_path}/savepoints")


def test_a_stop_that_is_refused_is_told_with_its_cause(
    played: Played, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job").write_text("a")
    failure = {"failure-cause": {"stack-trace": "CheckpointException:\n not all tasks are running"}}
    played.answers["/jobs/a/stop"] = [{"request-id": "r"}]
    played.answers["/jobs/a/savepoints/r"] = [{"status": {"id": "COMPLETED"}, "operation": failure}]
    assert run("stop") == 1
    assert capsys.readouterr().out == "CheckpointException: not all tasks are running\n"


def test_a_cluster_that_never_comes_is_told(
    played: Played, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "STARTS_WITHIN_S", 0.2)
    played.answers["/overview"] = [{"slots-available": 1}]
    with pytest.raises(SystemExit, match=r"the cluster was not there within 0\.2 s: too few slots"):
        run("run", "Count")
    played.answers["/overview"] = [None]
    with pytest.raises(SystemExit, match=r"within 0\.2 s: 404"):
        run("run", "Count")


def test_the_processes_of_a_cluster_have_names_and_ports_of_their_own(tmp_path: Path) -> None:
    manager = cluster.settings("jobmanager", "jobmanager", tmp_path, "1", "2")
    worker = cluster.settings("taskmanager", "taskmanager1", tmp_path, "1", "2")
    for one in (manager, worker):
        assert (one["rest.port"], one["jobmanager.rpc.port"], one["heartbeat.timeout"]) == ("1", "2", "2500")
    assert worker["taskmanager.resource-id"] == "taskmanager1"
    assert "taskmanager.resource-id" not in manager
