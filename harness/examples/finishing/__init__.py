"""The worked examples of the post on checkpoints after tasks finished (FLIP-147)."""
