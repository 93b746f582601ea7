"""Shared by all commands: exit codes, settings, progress, interruption."""
