"""The command line: one module for each verb, which calls the harness."""

try:
    from .entry import command, main
except KeyboardInterrupt:  # while the modules of a command are imported: nothing has begun yet
    raise SystemExit(130) from None

__all__ = ["command", "main"]
