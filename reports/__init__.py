"""What a run says to people and to other programs: HTML, plain text, JUnit XML and JSON."""
