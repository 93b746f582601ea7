"""Pipelines of users, run from outside: a TOML file says how a pipeline is started, fed, read and killed."""
