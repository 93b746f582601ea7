"""A toy stream engine, and its adapter for cutproof."""
