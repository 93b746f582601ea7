"""The worked examples on general systems of processes and channels."""
