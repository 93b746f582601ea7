"""Batch execution of the same jobs (FIN-6; FLIP-147): tasks one after the other, each over sorted input.

It takes the graph and the operators of `core` as they are.  What it has not:
barriers, checkpoints, channels that fill, and state of more than one key.
"""
