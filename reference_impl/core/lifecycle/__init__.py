"""How attempts of a job start, fail, restart in part or as a whole, and end."""
