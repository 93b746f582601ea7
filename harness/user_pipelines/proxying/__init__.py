"""What goes through Toxiproxy: the proxies of a pipeline's file, their faults, and what the connections felt."""
