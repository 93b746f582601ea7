"""The servers that a run on real processes uses: where each is found, and its command line.

The launcher starts, kills and reaps them.
"""

from __future__ import annotations

from ...runtime.exit_codes import CutproofError


class ServiceMissing(CutproofError):
    """A server that a run needs is not on this machine, or cannot be used; the text says how to get it."""
