"""A scenario as a value: its model, its checks, its files, and what can be predicted before it runs."""
