"""The limits up to which one process compares tables in its memory; Spark compares larger tables."""

from __future__ import annotations

SMALL_ROWS = 1_000_000
"""rows of each table"""
SMALL_NESTED_ROWS = 100_000
"""rows of each table if a column is a list, a struct or a map, which are compared value by value"""
SMALL_BYTES = 512 << 20
"""bytes of each table's files, for Parquet before compression"""
MEMORY_BYTES = 1 << 30
"""bytes that the columns of one table may need in memory"""
