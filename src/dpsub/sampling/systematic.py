"""Systematic samples: every k-th record from a random start, in a known or in a secret order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.sampling.designs import Counts, Drawer, FrameSampler, collected, counts_of, subsets
from dpsub.sampling.frame import Frame

ORDERS = ("frame", "random")


@dataclass(frozen=True)
class Systematic(FrameSampler):
    """Every `step`-th record from a uniform start among the first `step`.

    Parameters
    ----------
    step : int
        k, which must divide the number of records.
    order : {"frame", "random"}
        The order of the frame, which is known; or a uniform order that is kept secret, which makes the sample a simple
        random one.
    """

    step: int
    order: str = "frame"

    name: ClassVar[str] = "systematic"
    label: ClassVar[str] = "systematic"

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", checks.integer("step", self.step, at_least=1))
        checks.one_of("order", self.order, ORDERS)

    def _size(self, frame: Frame) -> int:
        if frame.n % self.step:
            raise ArgumentError(f"step must divide the number of records = {frame.n}, got step = {self.step}")
        return frame.n // self.step

    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        return np.full(frame.n, self._size(frame) / frame.n)

    def law(self, frame: Frame) -> dict[Counts, float]:
        size, everyone = self._size(frame), np.arange(frame.n)
        if self.order == "random":
            return collected((counts_of(frame.n, chosen), p) for chosen, p in subsets(everyone, size))
        return collected((counts_of(frame.n, everyone[j :: self.step]), 1 / self.step) for j in range(self.step))

    def drawer(self, frame: Frame) -> Drawer:
        self._size(frame)

        def draw(rng: np.random.Generator) -> np.ndarray:
            order = rng.permutation(frame.n) if self.order == "random" else np.arange(frame.n)
            return order[int(rng.integers(self.step)) :: self.step]

        return draw

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls(3), Frame(9)), (cls(2, "random"), Frame(6))]
