"""What commands share: their options, what they print and keep, and how they ask PySpark."""
