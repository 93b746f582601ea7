"""A run on processes from the harness's side: it starts them, watches them, disturbs them, and decides the end."""
