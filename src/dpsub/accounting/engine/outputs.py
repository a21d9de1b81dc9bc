"""Outputs of an attack's two data sets, with the record and without it, in closed form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class EpochOutputs(NamedTuple):
    """Outputs of the t steps of an epoch; the record is in k of them, with the mean x on one data
    set and y < x on the other, among others of mean 0; `deviation` is that of the noise."""

    t: int
    k: int
    x: float
    y: float
    deviation: float


class LaplaceOutputs(NamedTuple):
    """(1 - rate) Lap(0) + rate Lap(x), and the same with y, over the scale of the noise."""

    rate: float
    x: float
    y: float


class CellOutputs(NamedTuple):
    """Masses of cells of outputs in both directions, the first ones rounded down and the second
    ones rounded up."""

    directions: tuple[tuple[np.ndarray, np.ndarray], ...]


Outputs = EpochOutputs | LaplaceOutputs | CellOutputs
