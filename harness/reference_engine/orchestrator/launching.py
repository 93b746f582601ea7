"""The main module of the launcher.  It imports all modules that the processes of a run need before it starts the first.

`python -m cutproof.harness.reference_engine.orchestrator.launching`; see `reference_impl.processes.launching.launcher`.
"""

from __future__ import annotations

from ....reference_impl.processes.launching import launcher
from ....reference_impl.processes.stores import database, database_reader, sqlite_store
from ..subjects import process_job

WARM = (database, database_reader, sqlite_store, process_job)
"""modules that processes import on first need: the launcher imports them once, so that no process waits for them"""

if __name__ == "__main__":
    launcher.main()
