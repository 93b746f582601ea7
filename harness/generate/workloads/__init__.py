"""Draws workloads: operators, records, event times."""
