"""Spark writes a stream into an Iceberg table, with a version of Iceberg's choosing."""
