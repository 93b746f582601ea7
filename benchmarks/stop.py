"""How long a stop takes as the state grows, with a full savepoint and with an incremental one (SNAP-7).

The jobs are those of the example incremental-stop-and-upgrade, in virtual time, from the user's command to the end of
the job.  A byte takes 1 µs there, so a state of KB costs what one of 100 times as many bytes costs on a disk of
100 MB/s.  What a snapshot of 1 to 100 MB costs on a disk is in `formats`.
"""

from __future__ import annotations

import msgspec

from cutproof.harness.examples.snapshots.stopping import FORMATS, held_bytes, stop_us, stopped
from cutproof.harness.subject.names import subject_called
from measure import Figure, figure

KEYS = (250, 1_000, 4_000)


def figures() -> list[Figure]:
    found = []
    subject = subject_called("simulated")
    for keys in KEYS:
        for name in FORMATS:
            history = subject.run(stopped(keys, name))
            size = f"{held_bytes(history) / 1_000:,.0f} KB held"
            found.append(figure(f"stop, {name}, {keys:,} keys", "ms", [stop_us(history) / 1_000], size))
    return found


if __name__ == "__main__":
    print(msgspec.json.encode([(one.name, one.value, one.runs) for one in figures()]).decode())
