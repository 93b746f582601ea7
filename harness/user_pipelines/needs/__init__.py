"""What a pipeline needs and the package does not bring: engines that are fetched, and modules of extras."""
