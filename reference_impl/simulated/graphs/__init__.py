"""Systems of processes and channels on any graph, whose snapshots Chandy and Lamport's algorithm takes."""
