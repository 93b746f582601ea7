"""Draws faults, and the narrow races in which they hit."""
