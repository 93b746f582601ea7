"""The decisions of the engine that a planted defect may replace."""
