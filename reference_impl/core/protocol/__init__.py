"""The protocol of the papers: alignment, tasks, sources, two-phase commit, the coordinator, checkpoints."""
