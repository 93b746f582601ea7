"""The driver for real life: the same core as operating-system processes over TCP, with files and databases.

`launcher` starts and ends every process.  `node` and `coordinator` are the programs that the processes run; each is a
`world` around the core.  `journal` keeps what the processes observed.
"""
