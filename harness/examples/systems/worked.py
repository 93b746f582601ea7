"""The worked example of the course on consistent snapshots: P1 begins, P2 and P3 take part, events A to J (CL-2).

The text names three events: A, a message from P1 to itself, H→D from P2 to P1, and J, an
internal event of P3.  It also gives the order in which the markers arrive.  The other
events, and times that lead to this order, are chosen here.

A is in a channel and J in a state.  The reason: an internal event changes the state of its
process at once, before or after the state is recorded.  A message from a process to itself
is in flight between its send and its receipt, like any other message.
"""

from __future__ import annotations

from ....properties.graphs.causality import GraphHistory
from ...reference_engine.graphs.system import Act, Beginning, Channel, System
from ..claims import Claim, require
from ..texts import COURSE
from .claims import SystemExample, held_of_channels, in_words, states, taken

FIXED = ("A→", "H→D", "J")
"""the events that the text names; B→F, E→I and G→C are chosen here"""

MARKERS = ("C13", "C31", "C32", "C12", "C11", "C21", "C23")
"""the channels of the markers in the order of arrival; the text does not say when P1's own marker arrives"""

WORKED = System(
    processes=("P1", "P2", "P3"),
    channels=(
        Channel(name="C11", sender="P1", receiver="P1", takes_us=390),
        Channel(name="C12", sender="P1", receiver="P2", takes_us=300),
        Channel(name="C13", sender="P1", receiver="P3", takes_us=50),
        Channel(name="C21", sender="P2", receiver="P1", takes_us=200),
        Channel(name="C23", sender="P2", receiver="P3", takes_us=250),
        Channel(name="C31", sender="P3", receiver="P1", takes_us=50),
        Channel(name="C32", sender="P3", receiver="P2", takes_us=150),
    ),
    acts=(
        Act(at_us=10, process="P1", channel="C12", label="B→F", takes_us=30),
        Act(at_us=20, process="P2", channel="C23", label="E→I", takes_us=40),
        Act(at_us=50, process="P2", channel="C21", label="G→C", takes_us=40),
        Act(at_us=80, process="P1", channel="C11", label="A→"),
        Act(at_us=140, process="P3", label="J"),
        Act(at_us=290, process="P2", channel="C21", label="H→D", takes_us=100),
    ),
    beginnings=(Beginning(at_us=100, process="P1", snapshot="S"),),
)


def _in_this_order(system: System, history: GraphHistory) -> str:
    arrived = tuple(channel for _, channel, _ in history.markers)
    require(arrived == MARKERS, f"the markers arrived by {', '.join(arrived)}")
    return f"the markers arrived by {', '.join(arrived)}"


def _three_states(system: System, history: GraphHistory) -> str:
    found = states(history, "S")
    require("J" in found["P3"], f"the state of P3 is {found['P3']}")
    return "; ".join(f"{name.replace('P', 'S')} = {{{', '.join(labels)}}}" for name, labels in found.items())


def _two_channels(system: System, history: GraphHistory) -> str:
    found = held_of_channels(history, "S")
    require(found == {"C11": ["A→"], "C21": ["H→D"]}, in_words(found))
    empty = len(system.channels) - len(found)
    return f"{in_words(found)}; the other {empty} are empty"


def _ends(system: System, history: GraphHistory) -> str:
    found, last = taken(history, "S"), history.markers[-1][0]
    require(found.complete_us == last, f"it was complete at {found.complete_us} µs, the last marker came at {last} µs")
    return f"complete at {last} µs, when the last of {len(history.markers)} markers came"


CHANDY_LAMPORT_P1_P2_P3 = SystemExample(
    name="chandy-lamport-p1-p2-p3",
    about="P1 begins a snapshot of three processes; two of the seven channels have something in them",
    document=COURSE,
    system=WORKED,
    claims=(
        Claim(text="P3 receives the marker first; P1 receives one from P3, P2 one from P3 and then one from P1, "
              "P1 one from P2, and at the last point P3 one from P2", find=_in_this_order),
        Claim(text="it first takes a snapshot of the local state, called S1; P3 has a local event J, which is "
              "taken as its state", find=_three_states),
        Claim(text="there are two states: one is C11, the messages P1 sends to itself; the other is C21, which "
              "are the messages sent to P1 D by H in P2", find=_two_channels),
        Claim(text="when all processes have finished recording local states and all input pipelines of each "
              "process have been closed, the snapshot ends", find=_ends),
    ),
)  # fmt: skip
