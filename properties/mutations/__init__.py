"""Mutations of recorded histories, each of which some invariant must see."""
