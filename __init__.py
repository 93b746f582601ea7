"""cutproof proves a stream processor's exactly-once claims, or breaks them.

The public names load when they are first used, so that `import cutproof`
costs nothing: no Spark, no Hypothesis, no pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .harness.generate import strategies
    from .harness.pytest_plugin.decorator import scenario
    from .harness.scenario.model import Scenario
    from .harness.search.verification import verify
    from .harness.subject.port import Capabilities, Subject, SubjectFailed
    from .harness.workloads.user_functions import UserFunction
    from .properties.model import history, operators
    from .properties.model.history import History
    from .properties.model.verdict import Holds, Unknown, Violated
    from .properties.model.workload import END_OF_TIME, Edge, Input, Node, Topology, Workload, origin_of
    from .properties.semantics.user_functions import KeyRecord
    from .reference_impl.core.operators.user_functions import (
        Context,
        Function,
        Place,
        Taken,
        items_of,
        list_of,
        map_of,
        union_of,
        value_of,
    )

    __version__: str

__all__ = [
    "END_OF_TIME",
    "Capabilities",
    "Context",
    "Edge",
    "Function",
    "History",
    "Holds",
    "Input",
    "KeyRecord",
    "Node",
    "Place",
    "Scenario",
    "Subject",
    "SubjectFailed",
    "Taken",
    "Topology",
    "Unknown",
    "UserFunction",
    "Violated",
    "Workload",
    "__version__",
    "history",
    "items_of",
    "list_of",
    "map_of",
    "operators",
    "origin_of",
    "scenario",
    "strategies",
    "union_of",
    "value_of",
    "verify",
]

_HOMES = {
    "END_OF_TIME": "properties.model.workload",
    "Edge": "properties.model.workload",
    "Input": "properties.model.workload",
    "Node": "properties.model.workload",
    "KeyRecord": "properties.semantics.user_functions",
    "Capabilities": "harness.subject.port",
    "Context": "reference_impl.core.operators.user_functions",
    "Function": "reference_impl.core.operators.user_functions",
    "History": "properties.model.history",
    "Holds": "properties.model.verdict",
    "Place": "reference_impl.core.operators.user_functions",
    "Scenario": "harness.scenario.model",
    "Subject": "harness.subject.port",
    "SubjectFailed": "harness.subject.port",
    "Taken": "reference_impl.core.operators.user_functions",
    "Topology": "properties.model.workload",
    "Unknown": "properties.model.verdict",
    "UserFunction": "harness.workloads.user_functions",
    "Violated": "properties.model.verdict",
    "Workload": "properties.model.workload",
    "items_of": "reference_impl.core.operators.user_functions",
    "list_of": "reference_impl.core.operators.user_functions",
    "map_of": "reference_impl.core.operators.user_functions",
    "origin_of": "properties.model.workload",
    "scenario": "harness.pytest_plugin.decorator",
    "union_of": "reference_impl.core.operators.user_functions",
    "value_of": "reference_impl.core.operators.user_functions",
    "verify": "harness.search.verification",
}

_MODULES = {
    "history": "properties.model.history",
    "operators": "properties.model.operators",
    "strategies": "harness.generate.strategies",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = importlib.import_module(".harness.runtime.version", __name__).package_version()
    elif name in _MODULES:
        value = importlib.import_module(f".{_MODULES[name]}", __name__)
    elif name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
