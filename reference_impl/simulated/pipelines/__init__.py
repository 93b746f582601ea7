"""Pipelines of bytes: how long it takes to spill data in flight, and to read it back."""
