"""Flink writes a stream into an Iceberg table, by either of Iceberg's two sinks."""
