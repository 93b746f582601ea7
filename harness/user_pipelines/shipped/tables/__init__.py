"""A worker that appends to a table through a library: the same commit may be handed in twice."""
