"""What a pipeline needs is fetched once, whole or not at all; nothing is fetched here."""

from __future__ import annotations

import fcntl
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from cutproof.harness.runtime.exit_codes import HarnessFailed, ServiceMissing
from cutproof.harness.runtime.progress import Silent
from cutproof.harness.user_pipelines.description import Pipeline
from cutproof.harness.user_pipelines.needs import supplies
from cutproof.harness.user_pipelines.needs.supplies import COMPLETE, missing, supplied
from cutproof.harness.user_pipelines.reading import read_pipeline
from unit.harness.user_pipelines.toys import toy

NEEDS = '[parameters]\nversion = "3.9"\n\n[needs]\njars = ["some.group:broker:{version}"]\n\n[computes]'


class Fetching:
    """In place of the commands that fetch: each leaves a file in the folder that it is to fill."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.failure: str | None = None

    def __call__(self, command: list[str], failure: str) -> None:
        self.commands.append(command)
        folder = Path(command[3])
        assert list(folder.iterdir()) == [], "the folder is empty"
        (folder / "broker.jar").touch()
        if self.failure is not None:
            raise HarnessFailed(f"{failure}: {self.failure}")


@pytest.fixture
def fetching(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fetching:
    found = Fetching()
    monkeypatch.setattr(supplies, "_run", found)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return found


def pipeline(folder: Path, **parameters: str) -> Pipeline:
    return read_pipeline(toy(folder, ("[computes]", NEEDS)), parameters)


def test_a_java_without_a_compiler_is_no_jdk(
    fetching: Fetching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
    monkeypatch.setenv("PATH", str(java.parent))
    needy = read_pipeline(toy(tmp_path, ("[computes]", "[needs]\njava = [17]\njdk = true\n\n[computes]")))
    with pytest.raises(ServiceMissing, match=r"a JDK of Java 17 is needed, with `javac`: install one"):
        supplied(needy)
    java.with_name("javac").touch()
    assert set(supplied(needy)) == {"java_home"}
    assert fetching.commands == []


def test_what_is_needed_is_fetched_once(fetching: Fetching, tmp_path: Path) -> None:
    assert missing(pipeline(tmp_path)) == ["some.group:broker:3.9"]
    places = supplied(pipeline(tmp_path))
    assert set(places) == {"jars"}
    assert {one.name for one in Path(places["jars"]).iterdir()} == {"broker.jar", COMPLETE}
    assert missing(pipeline(tmp_path)) == []
    assert supplied(pipeline(tmp_path)) == places
    assert len(fetching.commands) == 1
    assert fetching.commands[0][-1] == "some.group:broker:3.9"


def test_without_a_cache_that_can_be_written_it_is_fetched_once_in_a_process(
    fetching: Fetching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    places = supplied(pipeline(tmp_path))
    assert missing(pipeline(tmp_path)) == []
    assert supplied(pipeline(tmp_path)) == places
    assert len(fetching.commands) == 1
    assert len(list(temporary.iterdir())) == 1


def test_another_version_is_kept_beside_it(fetching: Fetching, tmp_path: Path) -> None:
    first = supplied(pipeline(tmp_path))["jars"]
    assert missing(pipeline(tmp_path, version="4.1")) == ["some.group:broker:4.1"]
    assert supplied(pipeline(tmp_path, version="4.1"))["jars"] != first
    assert len(fetching.commands) == 2


def test_what_was_fetched_by_half_is_fetched_anew(fetching: Fetching, tmp_path: Path) -> None:
    fetching.failure = "no such version"
    with pytest.raises(HarnessFailed) as raised:
        supplied(pipeline(tmp_path))
    assert str(raised.value) == "some.group:broker:3.9 cannot be fetched from Maven Central: no such version"
    assert missing(pipeline(tmp_path)) == ["some.group:broker:3.9"]
    fetching.failure = None
    assert Path(supplied(pipeline(tmp_path))["jars"], COMPLETE).exists()
    assert len(fetching.commands) == 2


def test_who_comes_second_waits_and_fetches_nothing(fetching: Fetching, tmp_path: Path) -> None:
    folder = Path(supplied(pipeline(tmp_path))["jars"])
    (folder / COMPLETE).unlink()
    waits = threading.Event()

    class Progress(Silent):
        def step(self, what: str) -> None:
            if what.startswith("waiting for another process"):
                waits.set()

    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        second = threading.Thread(target=supplied, args=(pipeline(tmp_path), Progress()))
        second.start()
        assert waits.wait(10)
        (folder / COMPLETE).touch()
    second.join(10)
    assert not second.is_alive()
    assert len(fetching.commands) == 1


def test_a_lock_that_is_never_given_back_is_said(
    fetching: Fetching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(supplied(pipeline(tmp_path))["jars"])
    (folder / COMPLETE).unlink()
    monkeypatch.setattr(supplies, "LONGEST_S", 0.05)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        with pytest.raises(HarnessFailed, match="another process has not ended fetching"):
            supplied(pipeline(tmp_path))


def test_packages_have_an_environment_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(supplies, "_run", lambda command, failure: commands.append(command))
    monkeypatch.setattr(supplies.venv, "create", lambda folder, **_: folder.mkdir())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    one = read_pipeline(toy(tmp_path, ("[computes]", '[needs]\npython = ["my-queue==2"]\n\n[computes]')))
    assert missing(one) == ["my-queue==2"]
    places = supplied(one)
    assert commands[0][0] == f"{places['venv']}/bin/python"
    assert commands[0][-1] == "my-queue==2"
    assert missing(one) == []


def test_a_command_that_fails_is_said_with_the_end_of_what_it_printed() -> None:
    with pytest.raises(HarnessFailed) as raised:
        supplies._run(["sh", "-c", "echo first; echo last >&2; exit 3"], "it cannot be had")
    assert str(raised.value) == "it cannot be had: last"
    with pytest.raises(HarnessFailed, match="it cannot be had: it printed nothing"):
        supplies._run(["false"], "it cannot be had")
    with pytest.raises(HarnessFailed, match="it cannot be had: FileNotFoundError"):
        supplies._run(["no-such-program"], "it cannot be had")


def test_fetching_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supplies, "LONGEST_S", 0.05)
    with pytest.raises(HarnessFailed, match=f"it cannot be had: {subprocess.TimeoutExpired.__name__}"):
        supplies._run(["sleep", "5"], "it cannot be had")
