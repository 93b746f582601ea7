"""Batch execution of the same jobs (FIN-6; FLIP-147): tasks one after the other, each over sorted input.

It takes the graph and the operators of `core` as they are.  It has no barriers, no checkpoints, no channels that fill,
and never the state of more than one key.
"""
