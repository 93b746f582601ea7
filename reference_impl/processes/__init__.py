"""The driver for real life: the same core as operating-system processes over TCP, with files and databases.

`node` and `coordinator` are the programs that the processes run; each is a `world` around the core.  `launching` starts
and ends every process, `network` connects them, `disk` keeps what they store and observe, and `stores` are what their
sinks write.
"""
