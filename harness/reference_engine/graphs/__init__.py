"""Systems, which have no streams: processes, channels and general snapshots (CL-1 to CL-5)."""
