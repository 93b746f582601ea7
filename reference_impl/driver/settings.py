"""How a world is set up; times in µs of its clock (virtual, or scaled)."""

from __future__ import annotations

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies, costs and sizes; `limit_us`, in virtual time `limit_steps`, ends a run that does not end by itself."""

    memory: bool = False
    channel_capacity: int = 16
    nodes: int = 2
    read_interval_us: int = 200
    apply_cost_us: int = 20
    channel_latency_us: int = 100
    local_channels: bool = False
    """channels between tasks of one node have no latency"""
    control_latency_us: int = 200
    mailbox_us: int = 100
    """until a mail that a task has put off is opened"""
    snapshot_write_us: int = 800
    snapshot_byte_ns: int = 0
    """in ns: how much longer the write takes for each byte of the snapshot"""
    compaction_us: int = 400
    """until sorted files of working state are merged"""
    spill_flush_us: int = 200
    """until elements appended to logs of persistent channels are durable"""
    transaction_us: int = 150
    transaction_timeout_us: int = 2_000
    """until a sink stops waiting for an answer"""
    determinant_us: int = 40
    """until the determinants of a task with local recovery are durable (UNA-4)"""
    detection_us: int = 500
    """until the coordinator learns that a task is dead, by its closed connection"""
    heartbeat_timeout_us: int = 12_000
    """until the coordinator declares a task lost that stands still"""
    takeover_us: int = 5_000
    limit_us: int = 2_000_000
    limit_steps: int = 3_000_000
