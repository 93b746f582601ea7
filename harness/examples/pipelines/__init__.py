"""Checkpoints of a pipeline in bytes and virtual time: the arithmetic of FLIP-76 (unaligned checkpoints), measured."""
