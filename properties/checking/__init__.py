"""Two tables brought together and compared without Spark: reading, types, the comparison, what differs.

Nothing here imports pyspark; `properties/spark/check.py` compares what is too large for one process.
"""
