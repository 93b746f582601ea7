"""Work of the harness as tasks of Spark jobs, on the cluster that also computes the expected rows."""
