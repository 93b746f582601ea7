"""Directories of snapshots that runs in virtual time or on processes leave: jobs begin there, and `cutproof snapshots`
lists, converts, deletes, moves and copies what they hold."""
