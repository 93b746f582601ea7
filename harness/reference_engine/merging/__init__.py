"""The journals of many processes, merged into one history."""
