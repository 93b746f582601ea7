"""The examples that run by name, and those that cannot yet, as docs/protocol.md lists them."""

from __future__ import annotations

from cutproof.harness.examples import EXAMPLES, LATER


def example_rows() -> str:
    return "\n".join(f"| {name} | {one.about} | {one.document} |" for name, one in EXAMPLES.items())


def later_rows() -> str:
    return "\n".join(f"| {name} | {needs} |" for name, needs in LATER.items())
