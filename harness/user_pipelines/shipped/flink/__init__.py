"""Apache Flink: a cluster of one job manager and two task managers, and a small job."""
