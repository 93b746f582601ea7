"""The invariants, one file each, and the judge that asks them all."""
