"""The external transaction store as a real one: PostgreSQL, with PREPARE TRANSACTION and COMMIT PREPARED.

`Database.handle` means what `TransactionStore.handle` means in the simulator.  A database differs in two ways.  An open
transaction lives in a session and ends with it, so a fence reports only sealed transactions.  Rows are signed 64-bit
integers.

Why no zombie escapes a fence.  A fence commits its row in the table `fences`.  Then it lists the sessions of older
attempts, ends them, and waits until the server has none left.  (A session carries its writer and attempt in
application_name from the moment it connects.)  A session that is not in the list got its name after the list was made,
so after the row was committed.  It reads the fences before its first request, and sees that row.  A session in the list
is ended by the server, whatever its process does.  What that session had under way is then done or undone.  So the list
of prepared transactions, which the fence takes last, changes no more by the zombie.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from time import sleep
from typing import Any

import psycopg
from psycopg import errors

from ...core.vocabulary.ids import AttemptId, TaskId
from ...core.vocabulary.transactions import (
    AbortTransaction,
    AnyRequest,
    Append,
    BeginTransaction,
    Commit,
    Denied,
    Fence,
    Finalise,
    Flush,
    NoAnswer,
    Outcome,
    PreCommit,
    Publish,
    Upsert,
    Write,
)
from .database_reader import Reader, create
from .database_sessions import Silent, one_line
from .database_writer import Shut, WriterSession

__all__ = ["Database", "Reader", "create"]

TRIES = 6
"""How often one request is sent again to a server that breaks the connection, within some 30 ms."""
LONGEST_BACKLOG = 100_000
"""Plain and idempotent rows that may wait for a server that does not answer."""

REFUSED = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError, psycopg.NotSupportedError)
"""Errors that come again however often one asks: a value out of range, a run whose tables were dropped."""


ACTIONS: dict[type, Callable[[WriterSession, Any], Outcome]] = {
    Fence: WriterSession.fence,
    BeginTransaction: WriterSession.begin,
    Write: WriterSession.write,
    PreCommit: WriterSession.pre_commit,
    Commit: WriterSession.commit,
    Finalise: WriterSession.finalise,
    Publish: WriterSession.publish,
    AbortTransaction: WriterSession.abort,
    Append: WriterSession.put_in,
    Upsert: WriterSession.put_in,
    Flush: WriterSession.put_in,
}


class Database:
    """The access of one process to the store of a run; `create` makes the store.  Not for several threads.

    A row whose `Append` or `Upsert` gets `NoAnswer` is kept and goes in with a later request: it is not to be sent
    again, and `Flush` reports when it is in.
    """

    def __init__(self, dsn: str, run: str, passing: Collection[TaskId] = ()) -> None:
        """`passing` are the writers whose transactions are not part of the job's output."""
        self._dsn, self._run = dsn, run
        self._passing = passing
        self._sessions: dict[tuple[TaskId, AttemptId], WriterSession] = {}

    def handle(self, request: AnyRequest) -> Outcome:
        """Do what is requested, or deny it; `NoAnswer` after some TIMEOUT_S, if the server does not answer."""
        key = (request.writer, request.attempt)
        if key not in self._sessions:
            self._sessions[key] = WriterSession(self._dsn, self._run, *key, passes_on=key[0] in self._passing)
        session = self._sessions[key]
        if isinstance(request, Append | Upsert):
            if len(session.backlog) >= LONGEST_BACKLOG:
                return Denied(reason=f"{LONGEST_BACKLOG} rows wait for a database that does not answer")
            session.wait_for(request)
        try:
            outcome = self._ask_again(session, request)
        except Shut:
            self._sessions.pop(key).close()
            return Denied(reason=f"{request.writer} has been fenced by a newer attempt")
        except (ValueError, *REFUSED) as error:
            if isinstance(request, Append | Upsert):
                session.backlog.popleft()
            return Denied(reason=one_line(error))
        except psycopg.Error as error:
            session.drop_broken()
            return NoAnswer(reason=one_line(error))
        if isinstance(request, Fence):
            self._forget_older(request)
        return outcome

    @staticmethod
    def _ask_again(session: WriterSession, request: AnyRequest) -> Outcome:
        """Ask again over a new connection.  The old one may have broken long ago; the new one is asked instead, or
        shows why it broke.

        A fence that is under way may end the new one too.  Each request may be asked again.
        """
        action = ACTIONS[type(request)]
        for tried in range(TRIES - 1):
            try:
                return action(session, request)
            except (Silent, errors.QueryCanceled, errors.ConnectionTimeout, *REFUSED):
                raise
            except psycopg.Error:
                session.give_up_sessions()
                sleep(0.001 * 2**tried)
        return action(session, request)

    def _forget_older(self, fence: Fence) -> None:
        for key in [key for key in self._sessions if key[0] == fence.writer and key[1] < fence.attempt]:
            self._sessions.pop(key).close()

    def close(self) -> None:
        """End the sessions; open transactions end with them."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
