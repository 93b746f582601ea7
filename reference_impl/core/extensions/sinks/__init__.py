"""Sinks beyond one task that commits: committers, direct sinks, requests to the store, names of transactions."""
