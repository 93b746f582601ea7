"""The nightly job: a bank of counterexamples that each night replays, and adds to."""
