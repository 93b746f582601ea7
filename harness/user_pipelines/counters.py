"""What a pipeline counts itself, such as its checkpoints: looked at while it runs, for whoever reads the report.

Nobody judges it.  A counter that cannot be had just now is asked again later.  A thread of its own asks: an answer that
takes long delays no kill.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

from ...properties.model.history import Counted
from ..subject.port import SubjectFailed
from .aims import Lookout, Value
from .description import Aim
from .entries import problem_of

EVERY_S = 0.5
ENDS_WITHIN_S = 10.0
"""how long the last look may take"""


class Counters:
    """The counters of one run.  `close` ends the thread."""

    def __init__(
        self,
        counters: Mapping[str, Aim],
        places: Mapping[str, str],
        printed_by: Callable[[str], str],
        at_us: Callable[[], int],
    ) -> None:
        """`printed_by` gives all that a role has printed, `at_us` the time of the run."""
        self._lookouts = {name: Lookout(counter, places) for name, counter in counters.items()}
        self._printed_by = printed_by
        self._at_us = at_us
        self.taken: dict[str, list[Counted]] = {name: [] for name in counters}
        """by name: each value that was another than the one before"""
        self.problems: dict[str, str] = {}
        """by name: why a counter could not be read when it was last looked at"""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_again_and_again, name="counters", daemon=True)

    def begin(self) -> None:
        """Look every half second, from now on."""
        if self._lookouts:
            self._thread.start()

    def finish(self) -> None:
        """Look a last time."""
        if self.close():
            self._look()

    def close(self) -> bool:
        """Look no more; whether it has been looked at, and is no more."""
        self._over.set()
        if self._thread.ident is None:
            return False
        self._thread.join(ENDS_WITHIN_S)
        return not self._thread.is_alive()

    def _look_again_and_again(self) -> None:
        self._look()
        while not self._over.wait(EVERY_S):
            self._look()

    def _look(self) -> None:
        for name, lookout in self._lookouts.items():
            try:
                value = lookout.value(partial(self._printed_by, lookout.aim.role))
            except (SubjectFailed, OSError, ValueError) as error:
                self.problems[name] = problem_of(error).words
                continue
            self.problems.pop(name, None)
            if value is not None:
                self._keep(self.taken[name], value)

    def _keep(self, taken: list[Counted], value: Value) -> None:
        if not taken or taken[-1].value != value:
            taken.append(Counted(at_us=self._at_us(), value=value))
