"""What goes wrong, drawn: faults, and the moments that they race for."""
