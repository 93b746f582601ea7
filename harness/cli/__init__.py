"""The command line: one module a verb, each thin over the harness."""

try:
    from .entry import command, main
except KeyboardInterrupt:  # while what a command needs is imported: nothing has begun
    raise SystemExit(130) from None

__all__ = ["command", "main"]
