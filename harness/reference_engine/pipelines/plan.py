"""A pipeline of bytes as data, and the outcome of its run: the types of the simulated engine, re-exported."""

from __future__ import annotations

from ....reference_impl.core.extensions.spilling import ALIGNED as ALIGNED
from ....reference_impl.core.extensions.spilling import AT_ONCE as AT_ONCE
from ....reference_impl.core.extensions.spilling import CONTINUOUS as CONTINUOUS
from ....reference_impl.simulated.pipeline_parts import Checkpoint as Checkpoint
from ....reference_impl.simulated.pipeline_parts import Mark as Mark
from ....reference_impl.simulated.pipeline_plan import MB as MB
from ....reference_impl.simulated.pipeline_plan import Pipeline as Pipeline
from ....reference_impl.simulated.pipeline_plan import Stage as Stage
