"""Carries a plan of faults out on any environment."""

from __future__ import annotations

from collections.abc import Callable

from .. import plan
from ..ports import Disturbable, Machines


def inject(fault: plan.AnyFault, number: int, environment: Disturbable) -> bool:
    """Apply one fault now; returns whether the environment could apply it.

    A fault that needs real machines is not applied where there are none.
    """
    on_machines = _ON_MACHINES.get(type(fault))
    if on_machines is None:
        return _ANYWHERE[type(fault)](fault, number, environment)
    return isinstance(environment, Machines) and on_machines(fault, number, environment)


_ANYWHERE: dict[type, Callable[..., bool]] = {
    plan.KillTask: lambda f, n, env: env.kill_task(n, f.task),
    plan.KillNode: lambda f, n, env: env.kill_node(n, f.node),
    plan.KillCoordinator: lambda f, n, env: env.kill_coordinator(n, f.down_us),
    plan.PauseTask: lambda f, n, env: env.pause_task(n, f.task, f.for_us),
    plan.DelayChannel: lambda f, n, env: env.delay_channel(n, f.sender, f.receiver, f.by_us, f.for_us),
    plan.StallChannel: lambda f, n, env: env.stall_channel(n, f.sender, f.receiver, f.for_us),
    plan.CutChannel: lambda f, n, env: env.cut_channel(n, f.sender, f.receiver),
    plan.LoseMessage: lambda f, n, env: env.meddle(n, "lose", f.message, f.task, 0),
    plan.LateMessage: lambda f, n, env: env.meddle(n, "late", f.message, f.task, f.by_us),
    plan.RepeatMessage: lambda f, n, env: env.meddle(n, "repeat", f.message, f.task, f.after_us),
    plan.FailWrite: lambda f, n, env: env.fail_write(n, f.task, f.what),
    plan.FailRead: lambda f, n, env: env.fail_read(n, f.task),
    plan.TearWrite: lambda f, n, env: env.tear_write(n, f.task, f.how),
    plan.LoseUnsynced: lambda f, n, env: env.lose_unsynced(n, f.node),
    plan.FailCommit: lambda f, n, env: env.fail_commit(n, f.task, f.how, f.times),
    plan.RaiseInOperator: lambda f, n, env: env.raise_in_operator(n, f.task, f.always),
}

_ON_MACHINES: dict[type, Callable[..., bool]] = {
    plan.PauseNode: lambda f, n, env: env.pause_node(n, f.node, f.for_us),
    plan.ResetChannel: lambda f, n, env: env.reset_channel(n, f.sender, f.receiver, f.for_us),
    plan.SliceChannel: lambda f, n, env: env.slice_channel(n, f.sender, f.receiver, f.size, f.for_us),
    plan.LimitChannel: lambda f, n, env: env.limit_channel(n, f.sender, f.receiver, f.bytes),
    plan.TimeoutChannel: lambda f, n, env: env.timeout_channel(n, f.sender, f.receiver, f.after_us),
    plan.KillProxy: lambda f, n, env: env.kill_proxy(n, f.down_us),
    plan.KillDatabase: lambda f, n, env: env.kill_database(n, f.down_us),
}
