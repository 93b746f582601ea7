"""Which network a run's processes are to have, as its user says."""

from __future__ import annotations

import pytest

from cutproof.harness.reference_engine.services import network, postgres
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.reference_impl.processes.launching import namespace


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (network.VARIABLE, postgres.DSN_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("name", "wanted"), [("", "any"), ("own", "own"), ("host", "host")])
def test_it_is_one_of_their_own_unless_set_otherwise(name: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(network.VARIABLE, name)
    assert network.wanted() == wanted


def test_a_server_of_the_users_is_reached_from_the_machines_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(postgres.DSN_VARIABLE, "host=somewhere")
    assert network.wanted() == "host"
    monkeypatch.setenv(network.VARIABLE, "own")
    with pytest.raises(UsageError, match="cannot be reached from there; unset one"):
        network.wanted()


def test_anything_else_is_bad_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(network.VARIABLE, "none" * 1000)
    with pytest.raises(UsageError, match="neither own nor host") as raised:
        network.wanted()
    assert len(str(raised.value)) < 300


def test_doctor_states_which_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace, "why_not", lambda: "")
    assert network.describe() == "one of their own"
    monkeypatch.setattr(namespace, "why_not", lambda: "Operation not permitted")
    assert network.describe() == "the machine's (Operation not permitted): passwords keep others out"
    monkeypatch.setenv(network.VARIABLE, "host")
    assert network.describe() == "the machine's, since CUTPROOF_NETWORK is set: passwords keep others out"
