"""What goes wrong with stored snapshots: their files, those who need them, and the jobs that begin from them."""
