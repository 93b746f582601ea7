"""Injectors: what sets faults off, and how each fault is carried out on an environment."""
