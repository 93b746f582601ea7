"""Snapshots that a run on processes has left, for `cutproof snapshots`: listed, converted, deleted, moved."""
