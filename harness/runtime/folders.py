"""The folders of the user in which cutproof keeps something between runs, by the XDG specification."""

from __future__ import annotations

import os
from pathlib import Path

from .exit_codes import ServiceMissing


def cache() -> Path:
    """The user's cache of cutproof, under $XDG_CACHE_HOME or ~/.cache.  It may not exist yet."""
    return base("XDG_CACHE_HOME", ".cache") / "cutproof"


def base(variable: str, fallback: str) -> Path:
    """A base folder of the XDG specification, by which a relative path in the variable is ignored.

    Raises ServiceMissing if the user has no home folder.
    """
    named = Path(os.environ.get(variable, ""))
    if named.is_absolute():
        return named
    try:
        return Path.home() / fallback
    except RuntimeError as error:
        raise ServiceMissing(f"this user has no home folder; set {variable} to a folder that can be written") from error
