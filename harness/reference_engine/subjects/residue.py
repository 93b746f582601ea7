"""What a simulated world's stores hold once the run is at rest."""

from __future__ import annotations

from msgspec import UNSET

from ....properties.model.history import Listed, Residue
from ....reference_impl.core.lifecycle.snapshot_listing import listed
from ....reference_impl.core.vocabulary.transactions import Standing
from ....reference_impl.simulated.world import World


def residue_of(world: World) -> Residue:
    """The listings of all stores, as they are now."""
    accounts = world.external.accounts.values()
    retained = world.retained
    if not world.job_over and world.coordinator is not None:
        retained = list(world.coordinator.machine.retained)
    sharing = world.files.sharing
    there = {**world.files.files, **(sharing.left if sharing is not None else {})}
    sizes = {handle: len(data) for handle, data in there.items()}
    listing = [
        Listed(
            checkpoint=int(one.checkpoint),
            files=[str(name) for name in one.files],
            own_bytes=one.own_bytes,
            shared_bytes=one.shared_bytes,
        )
        for one in listed(retained, sizes)
    ]
    sinks = [task for task, spec, _ in world.graph.tasks() if spec.role == "sink"]
    asks = bool(world.files.copied_records or world.files.copies)
    return Residue(
        copies=[int(one.checkpoint) for one in world.files.copied()] if asks else UNSET,
        copied=[str(name) for name in world.files.copies] if asks else UNSET,
        listing=UNSET if world.settings.memory else listing,
        sizes=UNSET if world.settings.memory else {str(name): size for name, size in sizes.items()},
        open_transactions=[account.name for account in accounts if account.standing is Standing.OPEN],
        prepared_transactions=[
            account.name for account in accounts if account.standing in (Standing.SEALED, Standing.FINAL)
        ],
        files=[str(handle) for handle in there],
        retained=[int(snapshot.checkpoint) for snapshot in retained],
        logs=world.spills.store.names(),
        live_sinks=sum(runner.name in sinks for runner in world.live()),
    )
