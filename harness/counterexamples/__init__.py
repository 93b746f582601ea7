"""What was found: grouped by cause, told as a story, kept, replayed."""
