"""Servers that a run on real processes uses: where they are found, and how each is started.

Starting, killing and reaping them is the launcher's; here are only the places,
the command lines and the way to get what is missing.
"""

from __future__ import annotations

from ...runtime.exit_codes import CutproofError


class ServiceMissing(CutproofError):
    """A server that a run needs is not on this machine, or cannot be used; the text says how to get it."""
