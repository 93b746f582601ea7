"""The harness's part in a run on processes: it starts the processes, injects the faults, and decides when to end."""
