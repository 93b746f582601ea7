"""What the papers do not have: event time, in-flight data, persistent channels, local recovery, rescaling, and more."""
