"""Bytewax, with its recovery store and its file sink."""
