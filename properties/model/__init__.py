"""What is computed, and what happened: the values that every judge reads."""
