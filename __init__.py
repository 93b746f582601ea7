"""cutproof proves a stream processor's exactly-once claims, or breaks them."""
