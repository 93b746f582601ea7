"""The search: scenarios drawn, run, judged and counted."""
