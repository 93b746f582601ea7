"""What both worlds share: the drivers of tasks and coordinators, their stores and sessions.

A driver feeds a machine of the core and carries its effects out on a world
(`ports.World`): the simulated one in virtual time, or an operating-system
process with sockets and disks.  What a protocol point is, when a task takes
its next element, how a fault meets a write: said once, here.
"""
