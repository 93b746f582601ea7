"""The page of the nights: what a bank of counterexamples and its nightly runs show."""
