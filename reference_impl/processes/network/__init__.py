"""Connections between the processes of a run, their frames, and data channels over TCP."""
