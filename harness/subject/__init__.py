"""The port through which the harness drives an engine, the engine's capabilities, and one run."""
