"""PySpark as the oracle: expected rows for many scenarios at once, and the comparison of two tables.

No other package imports pyspark.  An import of this package is light: `session.session.session()`
starts pyspark and the JVM, or `session.start_in_background()` does so before they are
needed.
"""
