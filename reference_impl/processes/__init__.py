"""The driver for real life: the same core as operating-system processes over TCP, with files and databases.

`launcher` starts and ends every process; `node` and `coordinator` are what they
run, each a `world` around the core; `journal` keeps what they observed.
"""
