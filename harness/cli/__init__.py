"""The command line: one module a verb, each thin over the harness."""

from .entry import command, main

__all__ = ["command", "main"]
