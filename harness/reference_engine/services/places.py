"""The named place where runs on real processes keep their histories.

Everything else that such a run makes is removed when it ends, however it ends.
The histories stay here: `cutproof doctor` lists it and `cutproof doctor --prune`
empties it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ...runtime.exit_codes import UsageError
from . import ServiceMissing

LONGEST_SOCKET = 107
"""bytes of a Unix socket's path that Linux takes"""


def check_socket(below: str) -> None:
    """Raise UsageError where a Unix socket there below a launcher's folder would have too long a path."""
    path = Path(tempfile.gettempdir()) / "cutproof-12345678" / below
    too_long = len(os.fsencode(path)) - LONGEST_SOCKET
    if too_long > 0:
        raise UsageError(
            f"TMPDIR ({tempfile.gettempdir()}) is {too_long} {'byte' if too_long == 1 else 'bytes'} too long for"
            " Unix sockets; name a shorter one"
        )


def runs() -> Path:
    """The folder that holds one folder a kept run, which may not exist yet: under $XDG_STATE_HOME or ~/.local/state."""
    return _base("XDG_STATE_HOME", ".local/state") / "cutproof" / "runs"


def bequests() -> Path:
    """The folder of notes on what runs have made in a PostgreSQL of the user's, which may not exist yet."""
    return _base("XDG_STATE_HOME", ".local/state") / "cutproof" / "left"


def cache() -> Path:
    """The user's cache of cutproof, which may not exist yet: under $XDG_CACHE_HOME or ~/.cache."""
    return _base("XDG_CACHE_HOME", ".cache") / "cutproof"


def _base(variable: str, fallback: str) -> Path:
    """A base folder of the XDG specification, which says that a relative one is to be ignored."""
    named = Path(os.environ.get(variable, ""))
    if named.is_absolute():
        return named
    try:
        return Path.home() / fallback
    except RuntimeError as error:
        raise ServiceMissing(f"this user has no home folder; set {variable} to a folder that can be written") from error
