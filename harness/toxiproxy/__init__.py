"""The Toxiproxy server: how it is found and built, and one server of a run with its proxies."""
