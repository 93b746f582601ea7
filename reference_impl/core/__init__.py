"""The protocol as pure state machines: they take an event and return effects.

Nothing here knows a clock, a socket, a thread or a log; a driver owns the
world, feeds events and carries out effects in the order they are given.
"""
