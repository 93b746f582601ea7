"""Where the rows of a check come from: files of CSV, JSON lines and Parquet, Delta tables, and tables of PostgreSQL."""
