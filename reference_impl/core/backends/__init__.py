"""State backends: where an operator keeps its working state by key (ABS-10).

`heap` keeps it in a dictionary.  `lsm` keeps it in a log-structured merge tree: a bounded memtable and immutable sorted
files.  A snapshot takes a view of either (`vocabulary.views`).  Where snapshots are stored is another matter.
"""
