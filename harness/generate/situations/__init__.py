"""Whole situations, drawn: templates of jobs in which one thing is looked at."""
