"""The pictures of one run: the space-time diagram, and the time line of a pipeline that was run from outside."""
