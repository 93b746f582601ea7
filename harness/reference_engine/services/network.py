"""The network of a run's processes: a network namespace of their own where the machine allows it."""

from __future__ import annotations

import os

from ....reference_impl.processes.launching import namespace
from ...runtime.exit_codes import UsageError
from .postgres import DSN_VARIABLE

VARIABLE = "CUTPROOF_NETWORK"
OWN, HOST, ANY = "own", "host", "any"
"""a network namespace is required, is not used, or is used where the machine allows it"""


def wanted() -> str:
    """The kind of network for a run; raises UsageError.  A user's PostgreSQL cannot be reached from a namespace."""
    value = os.environ.get(VARIABLE, "")
    if value not in ("", OWN, HOST):
        raise UsageError(f"{VARIABLE} is {value[:40]!r}, neither {OWN} nor {HOST}")
    if not os.environ.get(DSN_VARIABLE):
        return value or ANY
    if value == OWN:
        raise UsageError(
            f"{VARIABLE} is {OWN}, and the server that {DSN_VARIABLE} names cannot be reached from there; unset one"
        )
    return HOST


def describe() -> str:
    """One line for `cutproof doctor`; raises UsageError."""
    value = wanted()
    if value == HOST:
        which = VARIABLE if os.environ.get(VARIABLE) else DSN_VARIABLE
        return f"the machine's, since {which} is set: passwords keep others out"
    reason = namespace.why_not()
    return f"the machine's ({reason}): passwords keep others out" if reason else "one of their own"
