"""Failing scenarios made small."""
