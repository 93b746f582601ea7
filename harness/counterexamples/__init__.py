"""What was found: grouped by cause, described as a story, kept, replayed."""
