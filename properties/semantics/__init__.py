"""The semantics of operators, in plain Python: the quick checker's own implementation."""
