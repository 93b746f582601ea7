"""The external transaction store as a real one: PostgreSQL, with PREPARE TRANSACTION and COMMIT PREPARED.

`Database.handle` means what `TransactionStore.handle` means in the simulator.
Where a database differs: an open transaction lives in a session and ends with
it, so that a fence hears of sealed ones only; rows are signed 64-bit integers.

Why no zombie escapes a fence.  A fence commits its row, then lists the sessions
of older attempts (they carry their writer and attempt in application_name from
the moment they connect), ends them and waits until the server has none left.
A session that is not in the list gets its name after the list was made, so
after the row was committed; it reads the fences before its first request, and
sees that row.  A session in the list is ended by the server, however its
process fares.  What it had under way is then done or undone, so that the list
of prepared transactions, taken last, changes no more by its hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from time import sleep
from typing import Any

import psycopg
from psycopg import errors

from ..core.ids import AttemptId, TaskId
from ..core.transactions import (
    AbortTransaction,
    AnyRequest,
    Append,
    Begin,
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
"""How often one request is asked of a server that breaks off, within some 30 ms."""
LONGEST_BACKLOG = 100_000
"""Plain and idempotent rows that may wait for a server that does not answer."""

REFUSED = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError, psycopg.NotSupportedError)
"""What asking again does not change: a value that does not fit, a run whose tables are gone."""


ACTIONS: dict[type, Callable[[WriterSession, Any], Outcome]] = {
    Fence: WriterSession.fence,
    Begin: WriterSession.begin,
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
    """One process's way into the store of a run; `create` makes the store.

    Not for several threads.  A row whose `Append` or `Upsert` gets `NoAnswer` is kept and
    goes in with a later request: it is not to be sent again, and `Flush` says when it is in.
    """

    def __init__(self, dsn: str, run: str, passing: Collection[TaskId] = ()) -> None:
        """`passing` are writers whose transactions a reader of the job's output is not shown."""
        self._dsn, self._run = dsn, run
        self._passing = passing
        self._sessions: dict[tuple[TaskId, AttemptId], WriterSession] = {}

    def handle(self, request: AnyRequest) -> Outcome:
        """Do what is asked, or deny it; `NoAnswer` when the server is away, within some TIMEOUT_S."""
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
        """A connection that broke may have done so long ago: a new one shows why, or is asked
        instead.  A fence that is under way may end that one too.  Each request may be asked again."""
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
