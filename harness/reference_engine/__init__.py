"""The only part of the harness that knows the reference engine: its subjects, orchestration and services."""
