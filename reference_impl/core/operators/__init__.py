"""Operators and what they keep: state, timers, windows, watermarks."""
