"""Checks that the harness detects mutated histories and planted defects."""
