"""The faults of a run on processes: what triggers them, and how processes and data channels are disturbed."""
