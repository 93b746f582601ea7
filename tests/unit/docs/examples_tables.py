"""The examples that run by name, as docs/protocol.md lists them."""

from __future__ import annotations

from cutproof.harness.examples import EXAMPLES
from cutproof.harness.examples.pipelines.examples import PIPELINE_EXAMPLES
from cutproof.harness.examples.systems.examples import SYSTEM_EXAMPLES


def example_rows() -> str:
    found = {**EXAMPLES, **SYSTEM_EXAMPLES, **PIPELINE_EXAMPLES}
    return "\n".join(f"| {name} | {one.about} | {one.document} |" for name, one in found.items())
