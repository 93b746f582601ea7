"""What the papers do not have: work with an operator, event time, in-flight data, persistent channels, and more."""
