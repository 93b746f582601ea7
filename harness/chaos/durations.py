"""The durations of a night in three figures, while more and more of them are measured."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles

Figures = tuple[float, float, float]
"""median, 95th percentile and longest, in ms"""

MORE = 1.05
"""The figures are computed anew when there are so many times as many samples: sorting all of them after each chunk of
scenarios would cost more than the scenarios of a long night."""


class Durations:
    """The figures of samples that become more."""

    def __init__(self) -> None:
        self._count = 0
        self._figures: Figures | None = None

    def of(self, samples_us: Sequence[int], *, exactly: bool = False) -> Figures | None:
        """The figures of all samples, or of most of them unless they are wanted `exactly`; None if there is none."""
        count = len(samples_us)
        if count > self._count * (1.0 if exactly else MORE):
            self._count, self._figures = count, _figures(samples_us)
        return self._figures


def _figures(samples_us: Sequence[int]) -> Figures:
    cuts = quantiles(samples_us, n=20, method="inclusive") if len(samples_us) > 1 else [samples_us[0]] * 19
    return round(cuts[9] / 1000, 3), round(cuts[18] / 1000, 3), round(max(samples_us) / 1000, 3)
