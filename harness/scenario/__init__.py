"""A scenario as a value: its model, its checks, its files, and what can be told from it before it runs."""
