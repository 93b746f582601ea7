"""The comparison of two tables on Spark, for tables that one process cannot hold."""
