"""`python -m cutproof.harness.cli`, where no script was installed."""

from .entry import command

command()
