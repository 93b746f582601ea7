"""The judges of general snapshots (by causality) and of pipelines of bytes (by conservation)."""
