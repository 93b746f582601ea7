"""The simulator: the core in virtual time, where a run is a function of its scenario."""
