"""The expected rows and state of a case, computed in plain Python, and the history's comparison with them."""
