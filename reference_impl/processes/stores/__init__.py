"""The external stores that sinks write: PostgreSQL and SQLite, as their writers and their readers see them."""
