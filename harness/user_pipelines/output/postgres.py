"""Sessions with a PostgreSQL of the user's: none waits for long, and no message holds what stands for `$NAME`.

One thread feeds, reads and watches a pipeline.  So a server that is paused, or a table that is
locked, must not keep it.
"""

from __future__ import annotations

import math
import os
import re
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ....properties.checking.sources.postgres_link import Link
from ...subject.port import SubjectFailed
from ..places import expanded, variables_in

CONNECT_TIMEOUT_S = 2
STATEMENT_TIMEOUT_MS = 2_000
LOCK_TIMEOUT_MS = 500
SILENCE_S = 3.0
"""how long a server may say nothing: one that is paused does not end a statement after its time"""
HIDDEN = "***"


class Postgres:
    """A database by its URL, or by its parameters (`host=… dbname=…`); each may have variables of the environment."""

    def __init__(self, where: str) -> None:
        """Raises SubjectFailed, in one line, if a variable is not set or the URL is malformed."""
        self._known = expanded(where)
        names = ", ".join(variables_in(where))
        malformed = f"the URL of the PostgreSQL{f' in {names}' if names else ''} is malformed"
        try:
            self._parameters = conninfo_to_dict(self._known)
        except psycopg.Error:  # its text quotes the URL
            raise SubjectFailed(malformed) from None
        if not _is_well_formed(self._parameters):
            raise SubjectFailed(f"{malformed}: in a password, / is %2F and @ is %40")

    def connect(self) -> Link:
        """A session; raises psycopg.Error.

        It waits for no answer longer than SILENCE_S, unless its user has set a `statement_timeout`.
        """
        own = str(self._parameters.get("options") or os.environ.get("PGOPTIONS", ""))
        limits = f"-c statement_timeout={STATEMENT_TIMEOUT_MS} -c lock_timeout={LOCK_TIMEOUT_MS}"
        added = {"options": f"{limits} {own}".strip()}  # of two settings the last one counts
        if not self._parameters.get("connect_timeout") and "PGCONNECT_TIMEOUT" not in os.environ:
            added["connect_timeout"] = str(CONNECT_TIMEOUT_S)
        session = Link.connect(make_conninfo(self._known, **added))
        session.silence_s = math.inf if "statement_timeout" in own else SILENCE_S
        return session

    def said(self, error: psycopg.Error) -> str:
        """What the server says, in one line without the password and without what stands for the URL."""
        text = " ".join(str(error).split())
        passwords = [str(self._parameters.get(name) or "") for name in ("password", "sslpassword")]
        hidden = {self._known, *passwords, *(quote(one, safe="") for one in passwords)} - {""}
        for secret in sorted(hidden, key=lambda one: (-len(one), one)):
            text = text.replace(secret, HIDDEN)
        return f"PostgreSQL says: {text}"


def _is_well_formed(parameters: dict[str, Any]) -> bool:
    """Whether no part of a password that should have been quoted was taken for a host, a port or a database.

    The host of an abstract socket begins with @.
    """
    ports = str(parameters.get("port") or "")
    host, database = str(parameters.get("host") or ""), str(parameters.get("dbname") or "")
    return "@" not in f"{host[1:]}{database}" and re.fullmatch(r"[0-9]*(,[0-9]*)*", ports) is not None
