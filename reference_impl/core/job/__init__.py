"""What a job is: its graph, its configuration, its tasks, and how rows are routed between them."""
