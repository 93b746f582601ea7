"""Pipelines of engines that people run, each in a folder: `cutproof pipeline list` names them."""
