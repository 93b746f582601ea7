"""The files of snapshots, counted over all who refer to them, and what a task reads of them before it starts."""
