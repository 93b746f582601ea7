"""The command line: one module a verb, each thin over the harness."""

from .entry import main

__all__ = ["main"]
