"""Pipelines of bytes: what storing in-flight data costs, measured."""
