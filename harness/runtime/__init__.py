"""What every command shares: exit codes, settings, progress, interruption."""
