"""A system of processes and channels as data: the type of the simulated engine, re-exported."""

from __future__ import annotations

from ....reference_impl.simulated.graphs.plan import Act as Act
from ....reference_impl.simulated.graphs.plan import Beginning as Beginning
from ....reference_impl.simulated.graphs.plan import Channel as Channel
from ....reference_impl.simulated.graphs.plan import System as System
from ....reference_impl.simulated.graphs.plan import faults_of as faults_of
from ....reference_impl.simulated.graphs.plan import reached as reached
