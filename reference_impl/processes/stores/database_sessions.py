"""Sessions with PostgreSQL: bounded in time, named after their writer and attempt, and ended by other sessions."""

from __future__ import annotations

import re
import zlib
from collections.abc import Generator
from time import monotonic, sleep
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from ...core.vocabulary.ids import CheckpointId

TIMEOUT_S = 2.0
"""How long one statement may take; also the least that libpq allows for connecting."""
LONGEST_GID = 199
LONGEST_APPLICATION_NAME = 63
POLL_S = 0.002

Answer = TypeVar("Answer")


class Silent(psycopg.OperationalError):
    """The server keeps the connection and does not answer."""


class Gid(msgspec.Struct, frozen=True, kw_only=True):
    """The name of a prepared transaction on the server, which all databases of the server share."""

    run: str
    writer: str
    checkpoint: CheckpointId | None
    """0 in the text if it was prepared for none"""
    name: str

    def text(self) -> str:
        """Raises ValueError when it is longer than the server takes."""
        text = f"{self.run}|{self.writer}|{self.checkpoint or 0}|{self.name}"
        if len(text.encode()) > LONGEST_GID:
            raise ValueError(f"the transaction's name is too long for PostgreSQL ({LONGEST_GID} bytes): {text}")
        return text

    @staticmethod
    def of(text: str) -> Gid:
        run, writer, number, name = text.split("|", 3)
        checkpoint = CheckpointId(int(number)) if int(number) else None
        return Gid(run=run, writer=writer, checkpoint=checkpoint, name=name)


class Session(psycopg.Connection[tuple[Any, ...]]):
    """A connection on which no statement waits longer than TIMEOUT_S.

    The server's own statement_timeout does not help where the link is silent.
    """

    def wait(self, gen: Generator[Any, Any, Answer], *arguments: Any, **options: Any) -> Answer:
        return super().wait(self._bounded(gen), *arguments, **options)

    def _bounded(self, gen: Generator[Any, Any, Answer]) -> Generator[Any, Any, Answer]:
        deadline = monotonic() + TIMEOUT_S * 1.25
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and monotonic() > deadline:
                    self.pgconn.finish()
                    raise Silent(f"PostgreSQL has not answered for {TIMEOUT_S:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            answer: Answer = end.value
            return answer


def connect(dsn: str, run: str, application: str) -> Session:
    """A session in the run's schema; raises psycopg.Error within TIMEOUT_S."""
    if not re.fullmatch("[a-z][a-z0-9_]{0,23}", run):
        raise ValueError(f"a run's name is at most 24 small letters, digits and underscores: {run!r}")
    limit = int(TIMEOUT_S * 1000)
    options = (
        f"{conninfo_to_dict(dsn).get('options') or ''} -c search_path={run} -c statement_timeout={limit} "
        "-c idle_in_transaction_session_timeout=0 -c synchronous_commit=on"
        " -c default_transaction_isolation=read\\ committed"
    )
    return Session.connect(
        dsn,
        autocommit=True,
        application_name=application,
        connect_timeout=max(2, int(TIMEOUT_S)),
        tcp_user_timeout=limit,
        options=options,
    )


def writers_label(run: str, writer: str) -> str:
    """How application_name begins in every session of a writer; at most 63 bytes with the attempt."""
    room = LONGEST_APPLICATION_NAME - len(run) - 12
    if len(writer) > room or not writer.isascii():
        writer = f"{zlib.crc32(writer.encode()):08x}"
    return f"{run}|{writer}|"


def prepared(session: Session, run: str) -> list[Gid]:
    """The run's prepared transactions, by when they were prepared."""
    query = (
        "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, %s)"
        " ORDER BY prepared, gid"
    )
    return [Gid.of(gid) for (gid,) in session.execute(query, (f"{run}|",))]


def end_sessions(session: Session, which: sql.Composed) -> None:
    """End the sessions that a condition names, and wait until the server has none left; raises `Silent`."""
    deadline = monotonic() + TIMEOUT_S
    end = sql.SQL(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND {}"
    ).format(which)
    while session.execute(end).fetchall():
        if monotonic() > deadline:
            raise Silent("sessions of an older attempt do not end")
        sleep(POLL_S)


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
