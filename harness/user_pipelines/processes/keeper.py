"""The processes of one run of a pipeline: started, killed and watched through a keeper (`keeper_script`)."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...runtime.exit_codes import HarnessFailed
from ...subject.port import SubjectFailed

KEEPER = Path(__file__).with_name("keeper_script.py")
ENDS_WITHIN_S = 10.0
Request = dict[str, Any]
"""to the keeper, as `keeper_script` says"""


class Keeper:
    """The keeper of one run.  `close` ends everything that it has started, and deletes the run's folder; so does the
    death of the harness."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise HarnessFailed("pipelines are run on Linux only: their processes are found through /proc")
        self.folder = Path(tempfile.gettempdir()) / f"cutproof-pipeline-{secrets.token_hex(6)}"
        """a folder of the run's own; the keeper makes it, so that no death of the harness can leave it behind"""
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(KEEPER), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a signal to the harness's process group must not end the keeper too
        )
        self._answer()
        self.temporary = self.folder / "tmp"
        """for the temporary files of what it starts: a process that is killed leaves its own behind"""
        self.temporary.mkdir()

    def start(
        self,
        command: Sequence[str],
        environment: dict[str, str],
        folder: Path,
        log: Path,
        output: Path | None = None,
        *,
        waits: bool = False,
        outlasts: bool = False,
    ) -> int:
        """Start a command in a session of its own; raises SubjectFailed if there is no such program.

        What it prints goes to the log; standard output goes to `output` instead, if that is given.  One that `waits`
        comes up, and gets the line of standard input that it waits for from `go`.  One that `outlasts` the others is
        there for the commands of `run_after`.
        """
        request = start_of(command, environment, folder, log, output)
        answer = self._ask({**request, "waits": waits, "outlasts": outlasts})
        if "error" in answer:
            raise SubjectFailed(f"the command {command[0]} cannot be started: {answer['error']}")
        return int(answer["pid"])

    def run_after(self, requests: Sequence[Request]) -> None:
        """Have commands (`start_of`) run if the harness dies, in place of those that were handed in before."""
        self._ask({"after": list(requests)})

    def go(self, pid: int) -> bool:
        """Have a command that waits go on; whether it still ran."""
        return bool(self._ask({"go": pid})["sent"])

    def has_unread_line(self, pid: int) -> bool:
        """Whether a command that waits was given its line, and has not read it."""
        return bool(self._ask({"unread": pid})["unread"])

    def kill(self, pid: int) -> bool:
        """Send SIGKILL to all processes of a command; whether the command still ran."""
        return bool(self._ask({"pid": pid, "signal": int(signal.SIGKILL)})["sent"])

    def pause(self, pid: int) -> bool:
        """Send SIGSTOP to all processes of a command; whether the command still ran."""
        return bool(self._ask({"pid": pid, "signal": int(signal.SIGSTOP)})["sent"])

    def resume(self, pid: int) -> None:
        """Send SIGCONT to all processes of a command."""
        self._ask({"pid": pid, "signal": int(signal.SIGCONT)})

    def terminate(self, pid: int) -> None:
        """Send SIGTERM to all processes of a command."""
        self._ask({"pid": pid, "signal": int(signal.SIGTERM)})

    def signal_at(self, port: int, number: int) -> bool:
        """Send a signal (0: none) to what listens at a TCP port, if the keeper has started it; whether there was such a
        process.

        No other process of the machine is hit.
        """
        return bool(self._ask({"port": port, "signal": number})["sent"])

    def exit_code(self, pid: int) -> int | None:
        """How a command ended (a signal as a negative number); None while it runs."""
        code = self._ask({"poll": pid})["code"]
        return None if code is None else int(code)

    def end(self, pid: int, *, strayed: bool = False) -> list[str]:
        """Kill what is left of a command in its session, and wait until it has ended.

        If `strayed`, also what has left the session, such as a daemon.  Then it returns the names of processes that may
        be the command's too: they have come since it was started, and have left its session and its environment.
        """
        strays: list[str] = self._ask({"end": pid, "strayed": strayed})["strays"]
        return strays

    def close(self) -> None:
        """Kill everything that was started, delete the folder, and wait for the keeper."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _ask(self, request: Request) -> dict[str, Any]:
        stdin = self._process.stdin
        try:
            if stdin is not None:
                stdin.write(json.dumps(request) + "\n")
                stdin.flush()
        except OSError as error:
            raise HarnessFailed(f"the keeper of a pipeline's processes has ended: {error}") from error
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        stdout = self._process.stdout
        try:
            answer: dict[str, Any] = json.loads(stdout.readline() if stdout is not None else "")
        except (OSError, ValueError) as error:
            raise HarnessFailed(f"the keeper of a pipeline's processes has ended: {error}") from error
        return answer


def start_of(
    command: Sequence[str], environment: dict[str, str], folder: Path, log: Path, output: Path | None = None
) -> Request:
    """The request to start a command."""
    request: Request = {"start": list(command), "environment": environment, "folder": str(folder)}
    return request | {"log": str(log), "output": "" if output is None else str(output)}


def environment_of(extra: dict[str, str]) -> dict[str, str]:
    """The environment of a pipeline's commands: the harness's own, and what its file adds."""
    return {**os.environ, **extra}


def end_in_words(code: int | None) -> str:
    return "did not end" if code is None else f"ended with {code_in_words(code)}"


def code_in_words(code: int) -> str:
    """How a command has ended (`Keeper.exit_code`)."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
