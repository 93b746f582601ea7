"""How attempts of a job start, fail, restart by region or as a whole, and end."""
