"""Injectors: what sets faults off, and how each is carried out on an environment."""
