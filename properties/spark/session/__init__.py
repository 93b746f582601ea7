"""The one Spark session of a process: the Java runtime on which it starts, its folder, and what ends it."""
