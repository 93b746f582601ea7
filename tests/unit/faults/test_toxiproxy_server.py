"""The layer over Toxiproxy when the server refuses, hangs, dies or is another: one clear error, in bounded time."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from pathlib import Path

import pytest
import requests

from cutproof.faults.injectors.toxics import Slice, Stall
from cutproof.faults.injectors.toxiproxy import Proxy, Toxiproxy, ToxiproxyFailed
from cutproof.harness.toxiproxy import program as service
from unit.faults.proxies import NAME, TIMEOUT_S, Echo, Server, connect, transmit
from unit.standstill import stop

AT_ONCE_S = 8
"""On a busy machine: of four requests that wait in vain each takes two seconds, and a removal that hangs 25."""


def test_a_name_or_a_port_that_is_taken_is_one_clear_error(server: Server, proxy: Proxy, echo: Echo) -> None:
    with pytest.raises(ToxiproxyFailed, match=f"make the proxy {re.escape(NAME)}: it exists already"):
        server.control.proxy(NAME, echo.port)
    with pytest.raises(ToxiproxyFailed, match=r"500 .*address already in use"):
        server.control.proxy("other", echo.port, echo.port)
    proxy.add(Stall())
    with pytest.raises(ToxiproxyFailed, match="409 toxic already exists"):
        proxy.add(Stall())
    with pytest.raises(ToxiproxyFailed, match="404 toxic not found"):
        proxy.remove("nothing")
    assert server.control.proxies() == (NAME,)


def test_a_toxic_set_by_somebody_else_is_not_mistaken_for_one_of_ours(server: Server, proxy: Proxy) -> None:
    toxic = {"type": "latency", "stream": "upstream", "toxicity": 0.5, "attributes": {"latency": 1, "jitter": 0}}
    address = f"http://127.0.0.1:{server.port}/proxies/{proxy.name}/toxics"
    assert requests.post(address, json=toxic, timeout=TIMEOUT_S).status_code == 200
    with pytest.raises(ToxiproxyFailed, match="a toxic of another program"):
        proxy.toxics()


@pytest.mark.parametrize("name", ["", "a/b", "a?b", "a#b", "a%41", "a b", ".", ".."])
def test_names_that_would_lead_elsewhere_are_refused_before_they_are_sent(server: Server, name: str) -> None:
    with pytest.raises(ValueError, match="no name for Toxiproxy"):
        server.control.proxy(name, 1)


def test_two_servers_in_one_process_are_kept_apart(server: Server, own: Server, echo: Echo) -> None:
    here = own.control.proxy("here", echo.port)
    there = server.control.proxy("there", echo.port)
    here.add(Stall())
    assert (own.control.proxies(), server.control.proxies()) == (("here",), ("there",))
    assert there.toxics() == ()
    there.delete()


def test_proxy_settings_of_the_environment_are_ignored(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert server.control.version() == service.version(service.binary())


def test_the_servers_death_is_an_error_at_once(own: Server, echo: Echo) -> None:
    proxy = own.control.proxy(NAME, echo.port)
    own.kill()
    began = time.monotonic()
    for act in (proxy.toxics, proxy.disable, own.control.reset, own.control.version):
        with pytest.raises(ToxiproxyFailed, match=f"on port {own.port} has ended"):
            act()
    with pytest.raises(ToxiproxyFailed, match=r"no Toxiproxy came up within 0\.2 s"):
        own.control.wait_until_up(0.2)
    assert time.monotonic() - began < AT_ONCE_S


def test_a_server_that_does_not_answer_is_an_error_in_bounded_time(own: Server) -> None:
    hasty = Toxiproxy(own.port, timeout_s=0.2)
    stop(own.process.pid)
    began = time.monotonic()
    with pytest.raises(ToxiproxyFailed, match=r"did not answer within 0\.2 s$"):
        hasty.proxies()
    assert time.monotonic() - began < AT_ONCE_S


def test_a_killed_server_is_started_again_on_its_ports(own: Server, echo: Echo, tmp_path: Path) -> None:
    proxy = own.control.proxy(NAME, echo.port)
    with connect(proxy) as connection:
        assert transmit(connection, b"x") == b"x"
        own.kill()
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    again = Server(tmp_path, "own", own.port)
    try:
        own.control.wait_until_up(20)
        assert own.control.proxies() == ()
        renewed = own.control.proxy(NAME, echo.port, proxy.port)
        assert renewed.port == proxy.port
        with connect(renewed) as connection:
            assert transmit(connection, b"recovered") == b"recovered"
    finally:
        again.kill()


def _fill(connection: socket.socket) -> None:
    """Write until nothing more fits in: the reader at the other end does not read."""
    connection.settimeout(0.2)
    with contextlib.suppress(TimeoutError):
        while True:
            connection.send(b"x" * 65536)


def test_a_disabled_proxy_lets_go_of_what_nobody_reads(own: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        proxy = own.control.proxy(NAME, deaf.getsockname()[1])
        with connect(proxy) as connection:
            proxy.add(Slice(average_size=100))
            _fill(connection)
            proxy.disable()
            proxy.delete()
    assert own.control.proxies() == ()


def test_a_removal_that_hangs_is_bounded_and_a_new_server_goes_on(own: Server, echo: Echo, tmp_path: Path) -> None:
    """The server's own defect: version 2.12 hangs here for 25 s; one that does not is right as well."""
    hasty = Toxiproxy(own.port, timeout_s=0.3)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        proxy = hasty.proxy(NAME, deaf.getsockname()[1])
        with connect(proxy) as connection:
            name = proxy.add(Slice(average_size=100))
            _fill(connection)
            began = time.monotonic()
            with contextlib.suppress(ToxiproxyFailed):
                proxy.remove(name)
            assert time.monotonic() - began < AT_ONCE_S
    own.kill()
    again = Server(tmp_path, "again", own.port)
    try:
        renewed = again.up().proxy(NAME, echo.port, proxy.port)
        with connect(renewed) as connection:
            assert transmit(connection, b"goes on") == b"goes on"
    finally:
        again.kill()


def test_another_server_on_the_port_is_found_out(own: Server, tmp_path: Path) -> None:
    loser = Server(tmp_path, "loser", own.port)
    try:
        with pytest.raises(ToxiproxyFailed, match="belongs to another Toxiproxy server; choose another port"):
            loser.up()
    finally:
        loser.kill()
    own.up()


def test_what_is_no_toxiproxy_is_found_out(echo: Echo) -> None:
    with pytest.raises(ToxiproxyFailed, match="no Toxiproxy came up"):
        Toxiproxy(echo.port, timeout_s=0.2).wait_until_up(0.3)


def lists(server: Server) -> str:
    """What of it was not made by who controls it."""
    return server.control.not_ours(5)


def test_what_was_made_from_here_is_ours_whatever_was_done_to_it(server: Server, proxy: Proxy, echo: Echo) -> None:
    assert lists(server) == ""
    name = proxy.add(Stall())
    assert lists(server) == ""
    proxy.disable()
    assert lists(server) == ""
    proxy.enable()
    proxy.remove(name)
    server.control.proxy("second", echo.port).delete()
    assert lists(server) == ""
    proxy.add(Stall())
    proxy.disable()
    server.control.reset()
    assert lists(server) == ""


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        (
            "POST",
            "/proxies",
            {"name": "leak", "listen": "0.0.0.0:0", "upstream": "127.0.0.1:1"},
            r"the proxy 'leak' from (\[::\]|0\.0\.0\.0):\d+ to 127\.0\.0\.1:1",
        ),
        (
            "POST",
            "/proxies",
            {"name": "cutproof-mark-x", "listen": "127.0.0.1:0", "upstream": "x:1"},
            "cutproof-mark-x",
        ),
        ("POST", f"/proxies/{NAME}", {"upstream": "127.0.0.1:1"}, "to 127.0.0.1:1"),
        ("POST", f"/proxies/{NAME}", {"enabled": False}, "disabled"),
        (
            "POST",
            f"/proxies/{NAME}/toxics",
            {"type": "latency", "attributes": {"latency": 9}},
            "with the toxic 'latency_",
        ),
        ("DELETE", f"/proxies/{NAME}", None, f"the proxy '{re.escape(NAME)}' is missing"),
    ],
    ids=["a proxy", "one with a mark's name", "another upstream", "closed", "a toxic", "gone"],
)
def test_what_somebody_else_did_is_seen(
    own: Server, echo: Echo, method: str, path: str, body: dict[str, object] | None, message: str
) -> None:
    own.control.proxy(NAME, echo.port)
    assert lists(own) == ""
    requests.request(method, f"http://127.0.0.1:{own.control.port}{path}", json=body, timeout=5).raise_for_status()
    assert re.search(message, lists(own))
