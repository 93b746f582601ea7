"""Profiles: the size of a run, and what the run has to show.

A run at least as large as its profile falls short (exit code 3) in four cases: an invariant was exercised in too small
a share of the scenarios that can show it, a fault kind never fired, a possible coverage target was not hit, or no fault
hit some way to end a job.  A smaller run is not judged by this.  Nor is a run that was interrupted or stopped at its
first violated scenario.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...faults.plan import KINDS
from ..runtime.exit_codes import UsageError
from ..subject.port import Capabilities

SHARES: dict[str, int] = {
    "exactly-once": 90,
    "no-data-loss": 90,
    "consistent-cut": 90,
    "order": 60,
    "restored-state": 50,
    "visibility": 65,
    "drain": 80,
    "progress": 90,
    "no-leaks": 60,
}
"""the per cent of the scenarios that can show an invariant in which it has to be exercised"""


SMOKE_SHARES: dict[str, int] = {name: share - 8 for name, share in SHARES.items()}
"""the same of the 200 scenarios of a smoke run, where chance decides over some per cent"""


UNJUDGED = "whether it exercised enough is not judged"


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """Of the scenarios that can show an invariant, how many exercised it."""

    shown: int = 0
    can_show: int = 0


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a run, and the shares that it must reach."""

    name: str
    scenarios: int
    max_records: int
    max_faults: int
    shares: dict[str, int]
    every_fault: bool = True
    """each kind of fault that the subject knows has to fire"""
    target_shares: int = 1
    """by how much the usual share of the template for coverage targets is multiplied"""
    every_target: bool = False
    """each possible coverage target has to be hit (`coverage`)"""
    every_stop: bool = False
    """each way to end a job, or to resume one, that the subject knows has to be hit (`stops`)"""


PROFILES: dict[str, Profile] = {
    "smoke": Profile(name="smoke", scenarios=200, max_records=60, max_faults=3, shares=SMOKE_SHARES, every_fault=False),
    "default": Profile(name="default", scenarios=1_500, max_records=160, max_faults=4, shares=SHARES, target_shares=3),
    "nightly": Profile(
        name="nightly",
        scenarios=50_000,
        max_records=240,
        max_faults=6,
        shares=SHARES,
        target_shares=15,
        every_target=True,
        every_stop=True,
    ),
}

REAL_TIME_SHARES: dict[str, int] = {
    "exactly-once": 75,
    "no-data-loss": 80,
    "consistent-cut": 85,
    "order": 50,
    "restored-state": 35,
    "visibility": 65,
    "drain": 60,
    "progress": 80,
    "no-leaks": 60,
}
"""the same in real time, where a run has a few dozen scenarios, not thousands"""

REAL_TIME_NIGHTLY_SHARES: dict[str, int] = {
    "exactly-once": 90,
    "no-data-loss": 90,
    "consistent-cut": 85,
    "order": 80,
    "restored-state": 50,
    "visibility": 90,
    "drain": 75,
    "progress": 90,
    "no-leaks": 90,
}
"""with ten times as many scenarios chance decides less: a little below what 1,300 scenarios reached"""

REAL_TIME_PROFILES: dict[str, Profile] = {
    name: Profile(
        name=name,
        scenarios=scenarios,
        max_records=60,
        max_faults=3,
        shares=shares,
        every_fault=name != "smoke",
    )
    for name, scenarios, shares in (
        ("smoke", 8, REAL_TIME_SHARES),
        ("default", 60, REAL_TIME_SHARES),
        ("nightly", 600, REAL_TIME_NIGHTLY_SHARES),
    )
}
"""for a subject whose scenarios cost seconds"""


def profile_called(name: str, *, real_time: bool = False) -> Profile:
    """The profile of that name for such a subject; raises UsageError when there is none."""
    if name not in PROFILES:
        raise UsageError(f"there is no profile {name!r}; there are: {', '.join(PROFILES)}")
    return (REAL_TIME_PROFILES if real_time else PROFILES)[name]


def shortfalls(
    profile: Profile,
    shares: Mapping[str, Share],
    fired: frozenset[str],
    capabilities: Capabilities,
    why: Mapping[str, str] | None = None,
) -> list[str]:
    """What the run did not show, each in one sentence; empty when it showed all.

    `why` has by invariant and by kind of fault what is known of the reason, in words.
    """
    because = {name: f": {words}" for name, words in (why or {}).items()}
    found: list[str] = []
    for name, wanted in profile.shares.items():
        share = shares.get(name, Share())
        if share.shown * 100 < wanted * share.can_show:
            reached = share.shown * 100 / share.can_show
            found.append(
                f"{name} was exercised in {reached:.1f} % of the {share.can_show:,} scenarios that can show it; "
                f"{wanted} % are wanted{because.get(name, '')}"
            )
    if profile.every_fault:
        found.extend(
            f"{kind} never fired{because.get(kind, '')}" for kind in sorted((capabilities.faults & set(KINDS)) - fired)
        )
    return found


def unjudged(profile: Profile, scenarios: int, *, stopped: bool = False, interrupted: bool = False) -> str:
    """Why a run of so many scenarios is not judged by its profile's shares, in one sentence; empty if it is judged.

    `stopped`: the run stopped at its first violated scenario.
    """
    if interrupted:
        return f"The run was interrupted: {UNJUDGED}."
    if stopped:
        return f"The run stopped at its first violated scenario: {UNJUDGED}."
    if scenarios < profile.scenarios:
        few = f"{scenarios:,} of the {profile.scenarios:,} scenarios of the profile {profile.name}"
        return f"The run had {few}: {UNJUDGED}."
    return ""
