"""The Toxiproxy of a run forwards to the run's own ports, and is killed when somebody else has told it something."""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from cutproof.faults.injectors.toxics import Stall
from cutproof.faults.injectors.toxiproxy import Active, Proxy, ToxiproxyFailed
from cutproof.harness.reference_engine.orchestrator.services import Services
from cutproof.harness.reference_engine.services import network, postgres
from cutproof.harness.runtime.exit_codes import HarnessFailed
from cutproof.harness.toxiproxy import server
from unit.standstill import stop

pytestmark = pytest.mark.usefixtures("toxiproxy_server")


@pytest.fixture(params=["own", "host"])
def services(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """In the machine's network, and in one of their own where the machine allows it."""
    monkeypatch.delenv(postgres.DSN_VARIABLE, raising=False)
    if request.param == "host":
        monkeypatch.setenv(network.VARIABLE, "host")
    made = Services()
    yield made
    made.close()


def answers_with(services: Services, method: str, path: str, answer: object = None) -> str:
    """Somebody else does, who has read the control port from the server's command line; what the server says to it."""
    words = Path(f"/proc/{services.proxies.pid}/cmdline").read_text().split("\0")
    link = HTTPConnection("127.0.0.1")
    link.sock = services.launcher.new_socket()
    link.sock.settimeout(5)
    link.sock.connect(("127.0.0.1", int(words[words.index("-port") + 1])))
    link.request(method, path, json.dumps(answer))
    response = link.getresponse()
    assert response.status in (200, 201, 204)
    text = response.read().decode()
    link.close()
    return text


def test_what_the_run_does_is_its_own_also_when_the_server_is_killed_and_back(services: Services) -> None:
    services.check_proxies()
    port = services.launcher.listen("a")
    proxies = services.proxies
    proxies.make("x>a", port)
    proxies.add("fault-0", "x>a", Stall())
    services.check_proxies()
    proxies.close_connections("x>a")
    services.check_proxies()
    proxies.kill()
    services.check_proxies()
    proxies.start()
    services.check_proxies()
    proxies.remove("fault-0")
    services.check_proxies()
    proxies.clear()
    services.check_proxies()
    assert proxies.is_up


@pytest.mark.parametrize(
    ("path", "answer", "reason"),
    [
        ("/proxies", {"name": "leak", "listen": "0.0.0.0:0", "upstream": "127.0.0.1:1"}, "the proxy 'leak' from "),
        (
            "/proxies/x>a/toxics",
            {"type": "latency", "attributes": {"latency": 9}},
            "with the toxic 'latency_downstream'",
        ),
        ("/proxies/x>a", {"enabled": False}, "the proxy 'x>a' from "),
    ],
    ids=["a proxy", "a toxic", "a closed proxy"],
)
def test_what_somebody_else_does_kills_it_and_is_no_verdict(
    services: Services, path: str, answer: dict[str, object], reason: str
) -> None:
    proxies = services.proxies
    proxies.make("x>a", services.launcher.listen("a"))
    pid = proxies.pid
    answers_with(services, "POST", path, answer)
    with pytest.raises(HarnessFailed) as raised:
        services.check_proxies()
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not proxies.is_up
    assert any(end.pid == pid for end in services.launcher.exits)


def test_it_forwards_to_no_port_that_is_not_the_runs(services: Services) -> None:
    given_up = services.launcher.listen("a")
    services.launcher.unlisten(["a"])
    for port in (given_up, 5432):
        with pytest.raises(HarnessFailed, match=f"a proxy to port {port} is refused"):
            services.proxies.make("x>a", port)


def test_what_distinguishes_it_from_others_is_on_no_command_line(services: Services) -> None:
    proxies = services.proxies
    (mark,) = json.loads(answers_with(services, "GET", "/proxies"))
    assert mark.startswith("cutproof-mark-")
    assert mark.encode() not in Path(f"/proc/{proxies.pid}/cmdline").read_bytes()
    (file,) = services.launcher.folder().glob("toxiproxy*.json")
    assert mark.removeprefix("cutproof-mark-") in file.read_text(encoding="ascii")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_no_secret_of_the_database_is_where_others_may_look(services: Services) -> None:
    """Command lines, and files that another user could open."""
    database = services.database
    password = database.dsn.partition("password=")[2].split()[0].strip("'")
    assert len(password) >= 32
    read = 0
    for pid in [*_children(services.launcher.pid), services.launcher.pid]:
        for place in ("cmdline", "environ"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a process that has ended meanwhile
                assert password.encode() not in Path(f"/proc/{pid}/{place}").read_bytes()
                read += 1
    assert read > 4
    folder = services.launcher.folder()
    for path in folder.rglob("*"):
        if path.is_file():
            assert password.encode() not in path.read_bytes(), path
    shut = {path for path in folder.iterdir() if stat.S_IMODE(path.stat().st_mode) & 0o077}
    assert {path.name for path in shut} <= {"postgres-binaries"}


def _children(pid: int) -> list[int]:
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]
    return [*found, *(one for child in found for one in _children(child))]


FOREIGN_TOXIC = {"name": "theirs", "type": "latency", "toxicity": 0.5, "attributes": {"latency": 9}}


@pytest.mark.parametrize("with_a_proxy", [True, False], ids=["a proxy", "a toxic"])
def test_a_server_that_is_to_be_replaced_is_looked_at_before(services: Services, with_a_proxy: bool) -> None:
    """A new one shows nothing of what somebody has told the one before."""
    proxies = services.proxies
    proxies.make("x>a", services.launcher.listen("a"))
    proxies.add("fault-0", "x>a", Stall())
    if with_a_proxy:
        answers_with(services, "POST", "/proxies", {"name": "leak", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:1"})
        answers_with(services, "DELETE", "/proxies/x>a/toxics/fault-0", {})
    else:
        answers_with(services, "POST", "/proxies/x>a/toxics", FOREIGN_TOXIC)
    pid = proxies.pid
    with pytest.raises(HarnessFailed, match="'leak'" if with_a_proxy else "'theirs'"):
        proxies.remove("fault-0")
    assert not proxies.is_up
    assert any(end.pid == pid for end in services.launcher.exits)


def test_a_last_look_that_is_not_answered_is_no_verdict(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHECK_WITHIN_S", "LAST_CHECK_WITHIN_S"):
        monkeypatch.setattr(server, name, 0.02)
    stop(services.proxies.pid)
    services.check_proxies()
    with pytest.raises(HarnessFailed, match="did not list its proxies"):
        services.check_proxies(is_last=True)


def test_a_server_that_answers_no_look_for_long_ends_the_run(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CHECK_WITHIN_S", 0.02)
    stop(services.proxies.pid)
    with pytest.raises(HarnessFailed, match="did not list its proxies"):  # noqa: PT012 - at which is not said
        for _ in range(20):
            services.check_proxies()


def test_what_was_done_and_not_answered_is_nobody_elses(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    proxies = services.proxies
    proxies.make("x>a", services.launcher.listen("a"))

    def is_lost(_: Proxy) -> tuple[Active, ...]:
        raise ToxiproxyFailed("it did not answer")

    active = Proxy.active
    monkeypatch.setattr(Proxy, "active", is_lost)
    with pytest.raises(ToxiproxyFailed, match="did not answer"):
        proxies.add("fault-0", "x>a", Stall())
    services.check_proxies()
    monkeypatch.setattr(Proxy, "active", active)
    answers_with(services, "POST", "/proxies/x>a/toxics", FOREIGN_TOXIC)
    with pytest.raises(HarnessFailed, match="'theirs'"):
        services.check_proxies()
