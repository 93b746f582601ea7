"""A scenario as a value: its model, its checks, its files, and what follows from it before it runs."""
