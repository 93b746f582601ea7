"""What a history says happened, worked through again: lineage, attempts, channels, commands."""
