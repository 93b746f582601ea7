"""The nightly job: a bank of counterexamples, and nights that replay them and look for more."""
