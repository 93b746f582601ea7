"""How xdist schedules the tests on its workers: file by file, several together or a test apart where `sharing` says so.

What the tests of a file share (a server, runs that were judged) is made once
then, not once a worker.  Marks of xdist's own (`xdist_group`) would say it as
well, but they travel in the names of tests, which pytest 9.2 no longer lets
xdist change: it schedules them one by one, and reports nothing.
"""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadScopeScheduling

from sharing import scope_of


class FileScheduling(LoadScopeScheduling):
    """In the order in which they are collected: see `sharing.LONG`."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)  # type: ignore[arg-type]
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
