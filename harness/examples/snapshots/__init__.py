"""The worked examples of the proposal on checkpoints, savepoints and snapshots (FLIP-47)."""
