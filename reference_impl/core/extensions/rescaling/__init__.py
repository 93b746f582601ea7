"""A job at another parallelism: how subtasks share the state and the in-flight data of a snapshot."""
