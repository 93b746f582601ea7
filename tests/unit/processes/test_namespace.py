"""A launcher in a network of its own: nobody else reaches what it starts, and its client does."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.reference_impl.processes.launching import launcher as launcher_module
from cutproof.reference_impl.processes.launching import namespace
from cutproof.reference_impl.processes.launching.cluster import Launcher, LauncherFailed
from unit.processes.toys import MODULE

WHY_NOT = namespace.why_not()


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    """In a network of its own, where the machine allows that."""
    with Launcher(module=MODULE, network="any") as made:
        yield made


def network_of(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/net")


def test_it_is_in_one_exactly_where_the_machine_allows_it(launcher: Launcher) -> None:
    assert launcher.is_apart is (WHY_NOT == "")
    assert (network_of(launcher.pid) != network_of(os.getpid())) is (WHY_NOT == "")


def test_its_client_reaches_its_ports_and_whoever_is_not_in_that_network_does_not(launcher: Launcher) -> None:
    port = launcher.listen("a")
    launcher.fork("echo", "echo", b"said", ("a",))
    with launcher.new_socket() as inside:
        inside.settimeout(10)
        inside.connect(("127.0.0.1", port))
        assert inside.recv(4) == b"said"
    if launcher.is_apart:
        with socket.socket() as outside, pytest.raises(ConnectionRefusedError):
            outside.connect(("127.0.0.1", port))


def test_sockets_are_handed_to_its_owner_alone(launcher: Launcher) -> None:
    door = launcher.folder() / launcher_module.DOOR
    assert door.exists() is launcher.is_apart
    if launcher.is_apart:
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
        assert stat.S_IMODE(door.parent.stat().st_mode) in (0o700, 0o711)


def test_where_one_is_demanded_and_cannot_be_had_it_reports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's answer is played by a module that the launcher finds in the place of the true one."""
    (tmp_path / "no_network.py").write_text(
        "from cutproof.reference_impl.processes.launching import launcher, namespace\n"
        "namespace.why_not = lambda: 'Operation not permitted'\n"
        "launcher.main({})\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(LauncherFailed, match=r"allows no network of their own .*: Operation not permitted"):
        Launcher(module="no_network", network="own")
    with Launcher(module="no_network", network="any") as made:
        assert not made.is_apart


def test_one_that_was_not_asked_to_stays_in_the_machines() -> None:
    with Launcher(module=MODULE) as made:
        assert not made.is_apart
        assert network_of(made.pid) == network_of(os.getpid())


def test_to_ask_leaves_this_process_where_it_is() -> None:
    before = network_of(os.getpid())
    namespace.why_not()
    assert network_of(os.getpid()) == before
