"""The output of a run for people and for other programs: HTML, plain text, JUnit XML and JSON."""
