"""Mutations of recorded histories; some invariant must be violated by each."""
