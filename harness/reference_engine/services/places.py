"""The folder where runs on real processes keep their histories.

All other files of such a run are removed when it ends, however it ends.  The histories
stay: `cutproof doctor` lists them and `cutproof doctor --prune` deletes them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ...runtime.exit_codes import UsageError
from ...runtime.folders import base

LONGEST_SOCKET = 107
"""the longest path of a Unix socket that Linux accepts, in bytes"""


def check_socket(below: str) -> None:
    """Raise UsageError if a Unix socket at this path below a launcher's folder would have too long a path."""
    path = Path(tempfile.gettempdir()) / "cutproof-12345678" / below
    too_long = len(os.fsencode(path)) - LONGEST_SOCKET
    if too_long > 0:
        raise UsageError(
            f"TMPDIR ({tempfile.gettempdir()}) is {too_long} {'byte' if too_long == 1 else 'bytes'} too long for"
            " Unix sockets; name a shorter one"
        )


def runs() -> Path:
    """The folder of saved runs, under $XDG_STATE_HOME or ~/.local/state.  It may not exist yet."""
    return base("XDG_STATE_HOME", ".local/state") / "cutproof" / "runs"


def pending_cleanups() -> Path:
    """The folder of notes on the tables that runs have created in a user's PostgreSQL.  It may not exist yet."""
    return base("XDG_STATE_HOME", ".local/state") / "cutproof" / "left"
