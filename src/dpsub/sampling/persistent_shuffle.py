"""Shuffled epochs in one order, which is drawn once and kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpsub.sampling.frame import Frame, Samples
from dpsub.sampling.schedules import Schedule, Shuffle


@dataclass(frozen=True)
class PersistentShuffle(Shuffle):
    """All records in a uniformly random order, drawn once and kept for all epochs, cut into
    steps of m; the last step gets the rest. With `drop_last` a rest that is no whole step is never
    used.

    References
    ----------
    Chua et al., arXiv 2411.04205.
    """

    name = "persistent_shuffle"
    label, colour, marker = "persistent shuffle", "#CC6677", "1"
    line_style = (0, (5, 1, 2, 1))
    one_plan = True

    @classmethod
    def examples(cls) -> list[tuple[Schedule, int]]:
        return [(cls(2), 4), (cls(2), 5), (cls(1), 3), (cls(2, drop_last=True), 5)]

    def epochs(self, n: int, rng: np.random.Generator) -> Iterator[Samples]:
        epoch = self.draw_block(Frame(n), self.steps_per_epoch(n), rng)
        while True:
            yield epoch

    def _drawn(self, n: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        indices, sizes = super()._drawn(n, min(steps, self.steps_per_epoch(n)), rng)
        # later epochs repeat the first one
        sizes = np.resize(sizes, steps)
        return np.resize(indices, sizes.sum()), sizes
