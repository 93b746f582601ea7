"""A pipeline of bytes as data, and the outcome of its run: the types of the simulated engine, re-exported."""

from __future__ import annotations

from ....reference_impl.core.extensions.in_flight_data.spilling import ALIGNED as ALIGNED
from ....reference_impl.core.extensions.in_flight_data.spilling import AT_ONCE as AT_ONCE
from ....reference_impl.core.extensions.in_flight_data.spilling import CONTINUOUS as CONTINUOUS
from ....reference_impl.simulated.pipelines.parts import Checkpoint as Checkpoint
from ....reference_impl.simulated.pipelines.parts import Mark as Mark
from ....reference_impl.simulated.pipelines.plan import MB as MB
from ....reference_impl.simulated.pipelines.plan import Pipeline as Pipeline
from ....reference_impl.simulated.pipelines.plan import Stage as Stage
