"""What is computed, drawn: operators, records, event times."""
