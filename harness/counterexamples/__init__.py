"""Counterexamples: failures are grouped by cause, described as a story, stored and replayed."""
