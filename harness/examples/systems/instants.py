"""Global states at an instant, and why clocks do not record them: two examples of the course on snapshots."""

from __future__ import annotations

import msgspec

from ....properties.graphs.causality import GraphHistory, check
from ....properties.model.verdict import Holds, Violated
from ...reference_engine.graphs.run import SystemRun, run, run_and_judge
from ...reference_engine.graphs.system import Act, Beginning, Channel, System
from ..claims import Claim, require
from ..texts import COURSE
from .claims import SystemExample, held_of_channels, in_words, states

_TWO = (
    Channel(name="C12", sender="P1", receiver="P2", takes_us=100),
    Channel(name="C21", sender="P2", receiver="P1", takes_us=100),
)
_MESSAGE = "X: 4 to 7"
_CHANGES = "X := 7"

FOUR_STATES = System(
    processes=("P1", "P2"),
    channels=_TWO,
    acts=(
        Act(at_us=100, process="P1", channel="C12", label=_MESSAGE),
        Act(at_us=300, process="P2", label=_CHANGES),
    ),
    beginnings=tuple(
        Beginning(at_us=at_us, process="P1", snapshot=f"state {number}")
        for number, at_us in enumerate((50, 150, 250, 350), start=1)
    ),
    method="clocks",
)
"""four instants of two processes whose clocks agree, so that an instant is the same at both"""


def _is(number: int, p2: list[str], channels: dict[str, list[str]], history: GraphHistory) -> str:
    name = f"state {number}"
    found, there = states(history, name)["P2"], held_of_channels(history, name)
    require((found, there) == (p2, channels), f"P2 has done {found}, channels: {in_words(there)}")
    return f"P2 has done [{', '.join(found)}]; channels: {in_words(there)}"


FOUR_GLOBAL_STATES = SystemExample(
    name="four-global-states",
    about="two processes and two channels pass through four global states, one of which has a message under way",
    document=COURSE,
    system=FOUR_STATES,
    claims=(
        Claim(text="the local state of P1 and P2 and the states of the pipelines are an initial global state",
              find=lambda system, history: _is(1, [], {}, history)),
        Claim(text="this message is still in the pipeline and has not yet reached P2: a global snapshot",
              find=lambda system, history: _is(2, [], {"C12": [_MESSAGE]}, history)),
        Claim(text="P2 receives the message from P1, which has not yet been processed: also a global snapshot",
              find=lambda system, history: _is(3, [_MESSAGE], {}, history)),
        Claim(text="P2 changes the local value of X from 4 to 7, which is a global snapshot as well",
              find=lambda system, history: _is(4, [_MESSAGE, _CHANGES], {}, history)),
    ),
)  # fmt: skip

SERVED = System(
    processes=("P1", "P2"),
    channels=_TWO,
    acts=(
        Act(at_us=460, process="P2", channel="C21", label="before"),
        Act(at_us=520, process="P1", channel="C12", label="order"),
        Act(at_us=650, process="P2", label="served"),
    ),
    beginnings=(Beginning(at_us=500, process="P1", snapshot="S"),),
)
_BEHIND = {"P2": -200}
"""the error of P2's clock, in µs: P2 records its state when P1 has long gone on"""


def _by(system: System, method: str, skews_us: dict[str, int] | None = None) -> SystemRun:
    return run_and_judge(msgspec.structs.replace(system, method=method, skews_us=skews_us or {}))


def _skew_breaks_it(system: System, history: GraphHistory) -> str:
    require(isinstance(_by(system, "clocks").verdict, Holds), "with clocks that agree it is not consistent either")
    verdict = _by(system, "clocks", _BEHIND).verdict
    message = verdict.message if isinstance(verdict, Violated) else ""
    require(bool(message), "the snapshot is consistent")
    return f"with P2's clock {-_BEHIND['P2']} µs behind, {message}; with clocks that agree it is consistent"


def _stopping_is_consistent_and_stops(system: System, history: GraphHistory) -> str:
    stopped = _by(system, "stop-the-world")
    require(isinstance(stopped.verdict, Holds), "the snapshot of a stopped world is not consistent")
    waited = {name: time for name, time in stopped.history.stopped_us.items() if time}
    require(len(waited) == len(system.processes), f"only {', '.join(waited) or 'nobody'} was stopped")
    return "consistent; " + "; ".join(f"{name} stood still for {time} µs" for name, time in waited.items())


def _markers_stop_nobody(system: System, history: GraphHistory) -> str:
    require(isinstance(check(history), Holds), "the snapshot by markers is not consistent")
    undisturbed = run(msgspec.structs.replace(system, beginnings=()))
    require(history.events == undisturbed.events, "the snapshot changed the events or their times")
    return f"consistent, and the {len(history.events)} events were the same, at the same times, as without a snapshot"


CLOCK_SKEW_SNAPSHOT = SystemExample(
    name="clock-skew-snapshot",
    about="all processes record at one clock time: no consistent cut if the clocks differ; and the alternatives",
    document=COURSE,
    system=SERVED,
    claims=(
        Claim(text="clock synchronization cannot implement global consistency snapshots", find=_skew_breaks_it),
        Claim(text="although global synchronization can do this, it has an obvious disadvantage: it will stop "
              "all applications", find=_stopping_is_consistent_and_stops),
        Claim(text="the asynchronous algorithm Chandy-Lamport enables global consistency snapshots without "
              "affecting the running applications", find=_markers_stop_nobody),
    ),
)  # fmt: skip
