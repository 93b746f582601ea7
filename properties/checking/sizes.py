"""What one process compares in its own memory; beyond that Spark does."""

from __future__ import annotations

SMALL_ROWS = 1_000_000
"""of each table"""
SMALL_NESTED_ROWS = 100_000
"""where a column is a list, a struct or a map, which are compared value by value"""
SMALL_BYTES = 512 << 20
"""of each table: its files, Parquet's before compression"""
MEMORY_BYTES = 1 << 30
"""that the columns of one table may come to as they are read"""
