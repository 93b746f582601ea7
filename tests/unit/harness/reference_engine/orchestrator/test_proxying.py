"""Whether the Toxiproxy server of a launcher has ended."""

from __future__ import annotations

import os
import subprocess
from typing import Any, cast

from cutproof.harness.reference_engine.orchestrator.proxying import OfLauncher

HOST = OfLauncher(cast(Any, None))
"""of a launcher that is not asked"""


def test_a_process_that_lives_has_not_ended() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        assert not HOST.has_ended(process.pid)


def test_a_process_has_ended_before_its_parent_asks_for_its_status() -> None:
    """Otherwise a killed server would be replaced or reported, by how fast a busy launcher is."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert HOST.has_ended(process.pid)


def test_a_process_whose_parent_has_its_status_has_ended() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        assert HOST.has_ended(process.pid)
