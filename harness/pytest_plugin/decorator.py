"""`@cutproof.scenario`: an ordinary Hypothesis test that receives drawn scenarios.

    @cutproof.scenario(max_faults=3)
    def test_no_scenario_breaks_it(scenario):
        ...

Hypothesis draws and shrinks the scenarios, and stores failures in its own database.  The
permanent form of a failure is the scenario file that the test prints.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import HealthCheck, given, note, settings

from ...properties.model.workload import Topology, Workload
from ..generate.situations.templates import SHARES
from ..generate.strategies import scenarios
from ..scenario.files import encode_scenario
from ..scenario.model import Scenario
from ..subject.port import Capabilities

EXAMPLES = {"smoke": 25, "default": 100, "nightly": 2_000}

Test = Callable[..., None]

for _name, _examples in EXAMPLES.items():
    # Hypothesis has its own profile `default`, which must not be replaced
    settings.register_profile(
        f"cutproof-{_name}",
        max_examples=_examples,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def scenario(
    *,
    max_records: int = 120,
    max_faults: int = 4,
    templates: Iterable[str] = tuple(SHARES),
    workload: Workload | None = None,
    topology: Topology | None = None,
    capabilities: Capabilities | None = None,
    profile: str = "default",
    **changes: Any,
) -> Callable[[Test], Test]:
    """Decorate a test so that its argument `scenario` is drawn.

    `profile` is smoke, default or nightly; `changes` are settings of Hypothesis that override
    the profile (`max_examples=500`).
    """
    if profile not in EXAMPLES:
        raise ValueError(f"no profile {profile!r}; there are {', '.join(EXAMPLES)}")
    drawn = scenarios(
        max_records=max_records,
        max_faults=max_faults,
        templates=templates,
        workload=workload,
        topology=topology,
        capabilities=capabilities,
    )
    chosen = settings(settings.get_profile(f"cutproof-{profile}"), **changes)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def wrapped(*args: Any, scenario: Scenario, **kwargs: Any) -> None:
            note(f"The scenario file: {encode_scenario(scenario).decode()}")
            test(*args, scenario=scenario, **kwargs)

        return chosen(given(scenario=drawn)(wrapped))

    return decorate
