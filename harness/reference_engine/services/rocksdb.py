"""RocksDB, in which processes keep working state with `engine.state_backend: lsm`: a module that an extra installs."""

from __future__ import annotations

import importlib.metadata
import importlib.util

from ...runtime.exit_codes import UsageError

MODULE = "rocksdict"
ADVICE = f"{MODULE} is not installed; install it: pip install 'cutproof[rocksdb]'"


def is_there() -> bool:
    return importlib.util.find_spec(MODULE) is not None


def demand() -> None:
    """Raise UsageError, in one line, if the module is not installed."""
    if not is_there():
        raise UsageError(ADVICE)


def describe() -> str:
    """One line for `cutproof doctor`; raises UsageError."""
    demand()
    return f"{MODULE} {importlib.metadata.version(MODULE)}"
