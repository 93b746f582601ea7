"""What a case is expected to show, reckoned in plain Python, and how it is compared."""
