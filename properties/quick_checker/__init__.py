"""What a case is expected to show, computed in plain Python, and how the history is compared with it."""
