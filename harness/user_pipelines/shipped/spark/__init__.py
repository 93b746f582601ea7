"""Spark Structured Streaming, with several operators and sinks."""
