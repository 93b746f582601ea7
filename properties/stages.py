"""The names of what may stand behind the sink: it takes no records, and commits what the sink has sealed."""

from __future__ import annotations

COMMITTERS = ("committer", "global-committer")
"""In task names and histories; no input and no node can be called so."""
