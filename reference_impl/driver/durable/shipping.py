"""Snapshots in the coordinator's memory: they travel with the acknowledgement, and only their encoding takes time."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ...core.vocabulary.effects import Ship
from ..asking import ask
from ..ports import Attempt, Reports, Site


class ShippingWorld(Site, Protocol):
    """What it takes to send a snapshot."""

    @property
    def control(self) -> Reports: ...


class Shipper(Attempt, Protocol):
    """Whose snapshots are sent."""

    @property
    def world(self) -> ShippingWorld: ...

    def thaw(self) -> None:
        """The synchronous snapshot for which it stood still is encoded."""


def ship(attempt: Shipper, snapshot: Ship) -> None:
    world = attempt.world
    world.loop.after(world.settings.snapshot_write_us // 4, _shipped, attempt, snapshot)


def _shipped(attempt: Shipper, snapshot: Ship) -> None:
    if not attempt.alive:
        return
    if snapshot.synchronous:
        attempt.thaw()
    points = attempt.world.points
    if points.reach("ack-sent", attempt.name, "before", attempt):
        state = ask(attempt, snapshot.snapshot.materialise)
        if state is None:
            return
        attempt.world.control.to_coordinator(attempt.name, msgspec.structs.replace(snapshot.ack, state=state))
        points.reach("ack-sent", attempt.name, "after", attempt)
