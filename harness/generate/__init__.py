"""Draws scenarios.  `strategies` is the public interface; folders: workloads, faults, situations, coverage targets."""
