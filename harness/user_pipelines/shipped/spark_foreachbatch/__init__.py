"""Spark Structured Streaming, with foreachBatch."""
