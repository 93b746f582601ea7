"""What the launcher of a run's processes runs as: it has read everything that they need before the first one starts.

`python -m cutproof.harness.reference_engine.orchestrator.launching`; see `reference_impl.processes.launcher`.
"""

from __future__ import annotations

from ....reference_impl.processes import database, database_reader, launcher, transaction_files
from ..subjects import process_job

WARM = (database, database_reader, transaction_files, process_job)
"""What processes import when they come to need it: here once, so that none of them has to wait for it."""

if __name__ == "__main__":
    launcher.main()
