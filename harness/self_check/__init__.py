"""Whether the harness sees what is wrong: mutated histories and planted defects."""
