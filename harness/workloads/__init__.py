"""Named workloads, workloads from files, and user functions."""
