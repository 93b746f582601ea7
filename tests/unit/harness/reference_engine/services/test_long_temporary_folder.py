"""A Unix socket's path has 107 bytes: a temporary folder that is too long for it is refused before anything starts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from cutproof.harness.reference_engine.services import postgres
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.runtime.exit_codes import UsageError

LONGEST = 107 - len("/cutproof-12345678/db/.s.PGSQL.1")


def of_length(bytes_long: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", "/" + "t" * (bytes_long - 1))
    return Path(tempfile.gettempdir())


@pytest.mark.parametrize(("too_long", "message"), [(1, "1 byte too long"), (8, "8 bytes too long")])
def test_one_that_is_too_long_is_reported_by_how_much(
    monkeypatch: pytest.MonkeyPatch, too_long: int, message: str
) -> None:
    monkeypatch.delenv(postgres.DSN_VARIABLE, raising=False)
    folder = of_length(LONGEST + too_long, monkeypatch)
    with pytest.raises(UsageError) as raised:
        ProcessesSubject().check()
    assert str(raised.value) == f"TMPDIR ({folder}) is {message} for Unix sockets; name a shorter one"


@pytest.mark.usefixtures("toxiproxy_server")
def test_one_of_the_greatest_length_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(postgres.DSN_VARIABLE, raising=False)
    of_length(LONGEST, monkeypatch)
    ProcessesSubject().check()
