"""Checkpoints of a pipeline in bytes and virtual time: the arithmetic of the unaligned proposal, measured."""
