"""Templates of scenarios, each for one situation."""
