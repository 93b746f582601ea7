"""What both worlds share: the drivers of tasks and coordinators, their stores and sessions.

A driver feeds events to a machine of the core and carries out its effects in a world: the
simulated one in virtual time, or an operating-system process with sockets and disks.  What
each driver needs of its world is a protocol beside it.  So both worlds have the same
protocol points, the same order in which a task takes elements, and the same effects of
faults on writes.
"""
