"""What operators do to rows, in plain Python: the quick checker's own reading of a workload."""
