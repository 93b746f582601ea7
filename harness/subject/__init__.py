"""The port that an engine is driven through, what it declares, and one run through it."""
