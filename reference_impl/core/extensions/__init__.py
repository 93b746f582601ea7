"""What the papers do not have: in-flight data, persistent channels, local recovery, rescaling, committers."""
