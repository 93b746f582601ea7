"""`one_judge.py WORDS...`: a command line whose verification, or night, asks only the quick checker."""

from __future__ import annotations

from collections.abc import Sequence

from cutproof.harness.chaos import job
from cutproof.harness.search import campaign
from cutproof.harness.search.oracle import Examined


class Silent:
    """An oracle that is asked and knows nothing: no Spark starts for it."""

    def start(self) -> None:
        pass

    def wait(self) -> None:
        pass

    def examine(self, questions: Sequence[bytes]) -> Examined:
        return Examined()


if __name__ == "__main__":
    from cutproof.harness.cli import command

    for module in (campaign, job):
        module.PySpark = Silent  # type: ignore[misc, assignment, attr-defined]
    command()
