"""Whether an aim is met, as it can be seen from outside."""

from __future__ import annotations

import os
import sqlite3
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from cutproof.harness.user_pipelines.aims import Lookout, tail
from cutproof.harness.user_pipelines.description import Aim


def sees(folder: Path, aim: Aim, log: str = "", since: int = 0) -> bool:
    (folder / "log").write_text(log)
    return Lookout(aim, {"state": str(folder)}).sees(lambda: tail(folder / "log", since))


def test_a_line_of_the_log_since_the_process_began(tmp_path: Path) -> None:
    aim = Aim(log="^batch [0-9]+ is written")
    assert sees(tmp_path, aim, "starting\nbatch 3 is written\n")
    assert not sees(tmp_path, aim, "starting: batch 3 is written\n")
    assert sees(tmp_path, aim, "[Stage 0:>      (0 + 1) / 1]\r                \rbatch 3 is written\n")
    before = "batch 3 is written\n"
    assert not sees(tmp_path, aim, before + "starting\n", since=len(before))


def test_a_file_without_its_namesake(tmp_path: Path) -> None:
    """The newest offsets of Spark without the commit of the same number."""
    aim = Aim(files="{state}/offsets/*", without="{state}/commits/*")
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    assert not sees(tmp_path, aim)
    for number in range(12):
        path = tmp_path / "offsets" / str(number)
        path.touch()
        os.utime(path, ns=(number, number))
        assert sees(tmp_path, aim), "the newest is not committed"
        (tmp_path / "commits" / str(number)).touch()
        assert not sees(tmp_path, aim)
    assert sees(tmp_path, Aim(files="{state}/offsets/1?"))


def test_a_query(tmp_path: Path) -> None:
    aim = Aim(query="SELECT count(*) > 1 FROM rows", database="{state}/a.db")
    assert not sees(tmp_path, aim)
    writer = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    assert not sees(tmp_path, aim)
    writer.execute("CREATE TABLE rows (key INT)")
    writer.execute("INSERT INTO rows VALUES (1)")
    assert not sees(tmp_path, aim)
    writer.execute("INSERT INTO rows VALUES (2)")
    assert sees(tmp_path, aim)
    writer.execute("PRAGMA locking_mode = exclusive")
    writer.execute("BEGIN EXCLUSIVE")
    assert not sees(tmp_path, aim), "who cannot look does not see"
    writer.close()


class Counts(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"counts": {"restored": 1}}')

    def log_message(self, *_: Any, **__: Any) -> None:
        return


def test_a_url_is_asked_without_the_proxies_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setattr(urllib.request, "_opener", None)  # it remembers the proxies of its first use
    with HTTPServer(("127.0.0.1", 0), Counts) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/"
            assert sees(tmp_path, Aim(url=url, json="counts.restored"))
            assert not sees(tmp_path, Aim(url=url, json="counts.completed"))
        finally:
            server.shutdown()
