"""PySpark as the oracle: expected rows for many scenarios at once, and two tables compared.

The only importer of pyspark.  Importing this package is light: pyspark and the JVM are
started by `session.session()`, or ahead of need by `session.start_in_background()`.
"""
