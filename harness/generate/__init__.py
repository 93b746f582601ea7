"""What is drawn: `strategies` is the public face; workloads, faults, situations and coverage targets have folders."""
