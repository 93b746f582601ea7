"""What a process keeps on disk: snapshots, logs of persistent channels, determinants, its journal."""
