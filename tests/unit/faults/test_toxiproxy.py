"""The typed layer over Toxiproxy, on a real server and real TCP connections: each toxic by its effect."""

from __future__ import annotations

import contextlib
import time

import pytest

from cutproof.faults.injectors.toxics import Latency, Limit, Reset, Slice, Stall, Timeout, Toxic
from cutproof.faults.injectors.toxiproxy import Active, Proxy
from unit.faults.proxies import NAME, Echo, Server, connect, receive, silent, transmit


def test_a_proxy_listens_where_it_reports_and_passes_everything_on(server: Server, echo: Echo, proxy: Proxy) -> None:
    assert (proxy.name, proxy.upstream_port) == (NAME, echo.port)
    with connect(proxy) as connection:
        assert transmit(connection, b"x" * 100_000) == b"x" * 100_000
    assert server.control.proxies() == (NAME,)
    assert proxy.toxics() == ()


def test_latency_delays_and_its_removal_delivers_at_once(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        name = proxy.add(Latency(ms=60))
        began = time.monotonic()
        assert transmit(connection, b"slow") == b"slow"
        assert time.monotonic() - began >= 0.06
        proxy.remove(name)
        proxy.add(Latency(ms=60_000), "sender")
        connection.sendall(b"held")
        assert silent(connection)
        proxy.remove("latency-sender")
        assert receive(connection, 4) == b"held"


@pytest.mark.parametrize("towards", ["receiver", "sender"])
def test_a_stall_holds_everything_and_loses_nothing(proxy: Proxy, echo: Echo, towards: str) -> None:
    with connect(proxy) as connection:
        assert transmit(connection, b"before") == b"before"
        proxy.add(Stall(), towards)
        connection.sendall(b"during")
        assert silent(connection)
        assert sum(echo.sizes) == (6 if towards == "receiver" else 12)
        proxy.remove(f"stall-{towards}")
        assert receive(connection, 6) == b"during"


def test_a_timeout_drops_and_closes_when_its_time_has_come(proxy: Proxy, echo: Echo) -> None:
    with connect(proxy) as connection:
        assert transmit(connection, b"before") == b"before"
        proxy.add(Timeout(ms=50))
        connection.sendall(b"lost")
        assert connection.recv(10) == b""
    assert echo.sizes == [6]


def test_a_timeout_without_a_time_closes_when_it_is_removed(proxy: Proxy, echo: Echo) -> None:
    with connect(proxy) as connection:
        assert transmit(connection, b"before") == b"before"
        name = proxy.add(Timeout(ms=0))
        connection.sendall(b"lost")
        assert silent(connection)
        proxy.remove(name)
        assert connection.recv(10) == b""
    assert echo.sizes == [6]


def test_a_reset_is_a_reset_and_only_for_later_connections(proxy: Proxy) -> None:
    with connect(proxy) as earlier:
        assert transmit(earlier, b"x") == b"x"
        proxy.add(Reset(ms=0), "sender")
        with connect(proxy) as later:
            later.sendall(b"x")
            with pytest.raises(ConnectionResetError):
                later.recv(1)


def test_slices_are_small_and_whole_together(proxy: Proxy, echo: Echo) -> None:
    with connect(proxy) as connection:
        proxy.add(Slice(average_size=4, delay_us=2_000))
        assert transmit(connection, bytes(range(64))) == bytes(range(64))
    assert len(echo.sizes) > 4
    assert sum(echo.sizes) == 64


def test_the_smallest_slices_leave_the_server_alive(server: Server, proxy: Proxy) -> None:
    with connect(proxy) as connection:
        proxy.add(Slice(average_size=1))
        assert transmit(connection, bytes(range(200))) == bytes(range(200))
    assert server.process.poll() is None


def test_a_limit_passes_so_many_bytes_from_now_on_and_closes(proxy: Proxy, echo: Echo) -> None:
    with connect(proxy) as connection:
        assert transmit(connection, b"free") == b"free"
        proxy.add(Limit(bytes=10), "sender")
        assert transmit(connection, bytes(range(25))) == bytes(range(10))
        assert connection.recv(1) == b""
    assert sum(echo.sizes) == 4 + 25


def test_a_disabled_proxy_closes_refuses_and_comes_back_on_its_port(proxy: Proxy) -> None:
    port = proxy.port
    with connect(proxy) as connection:
        assert transmit(connection, b"x") == b"x"
        proxy.disable()
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            connect(proxy)
    proxy.enable()
    assert proxy.port == port
    with connect(proxy) as connection:
        assert transmit(connection, b"again") == b"again"


def test_what_was_set_is_read_back_with_its_direction(proxy: Proxy) -> None:
    several: list[Toxic] = [
        Latency(ms=1),
        Stall(),
        Timeout(ms=60_000),
        Reset(ms=2),
        Slice(average_size=3, size_variation=2, delay_us=1),
        Limit(bytes=5),
    ]
    for toxic in several:
        proxy.add(toxic)
    proxy.add(Latency(ms=7), "sender", "another")
    assert proxy.toxics() == (*several, Latency(ms=7))
    assert proxy.active()[-1] == Active(name="another", towards="sender", toxic=Latency(ms=7))


def test_reset_heals_everything(server: Server, proxy: Proxy) -> None:
    proxy.add(Stall())
    proxy.disable()
    server.control.reset()
    assert proxy.toxics() == ()
    with connect(proxy) as connection:
        assert transmit(connection, b"healed") == b"healed"


def test_values_that_the_server_would_choke_on_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="crash the server"):
        Slice(average_size=0)
    with pytest.raises(ValueError, match="less than average_size"):
        Slice(average_size=4, size_variation=4)
    with pytest.raises(ValueError, match=r"Latency\.ms is -1"):
        Latency(ms=-1)
    with pytest.raises(ValueError, match=r"Limit\.bytes is True"):
        Limit(bytes=True)
