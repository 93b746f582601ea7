"""A search on a Spark cluster: executors draw, run, judge and shrink."""
