"""A history replayed: lineages, attempts, channels, commands."""
