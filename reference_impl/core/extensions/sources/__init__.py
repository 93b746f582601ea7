"""Sources beyond a fixed share of the splits: enumerators, readers that ask for splits, trimmed logs."""
