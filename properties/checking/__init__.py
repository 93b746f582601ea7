"""The comparison of two tables without Spark: how they are read, their common types, and their differences.

Nothing here imports pyspark; `properties/spark/checking/check.py` compares tables that are too large for one process.
"""
