"""The filler flip: an adaptive attack on sums of m records, and the delta that it proves from below.

At each step the adversary chooses the m - l records that accompany the one that differs: fillers at -C make the outputs
sum_l p_l N(2 l, s^2) against N(0, s^2); fillers at +C the mirror image of the same two, swapped.  Fillers may depend on
past outputs, so the game has the value

    V_0(x) = (1 - e^x)_+,    V_k(x) = max over the two of E_P[V_{k-1}(x - L)],    delta(epsilon) >= V_k(epsilon).

V is nonincreasing and within [0, 1], so on a window of the grid, with the left end's value in place of what lies
further left and 0 in place of what lies to the right, and with loss laws of the lower side, every step rounds down.  An
adversary who may only change the fillers every r steps is a weaker one, and r times as fast to compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft

from dpsub.accountants.composition import Composition
from dpsub.accountants.loss_law import LossLaw

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class FlipGame:
    """delta(epsilon) of the filler flip, from below.

    Attributes
    ----------
    laws : sequence of two LossLaw
        Lower laws of one loss with fillers at -C and at +C, of one step.
    n_compositions : int
        k >= 1.
    n_stages : int
        How often the fillers may change, between 1 and k.
    """

    laws: Sequence[LossLaw]
    n_compositions: int
    n_stages: int

    def curve(self, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        """Grid of epsilons in [low, high] and lower bounds of delta at them, nonincreasing.

        Parameters
        ----------
        low, high : float
            Window of the game's state, in nats: wide enough that sums of losses rarely leave it; anything is valid.
        """
        step = self.laws[0].step
        # both laws are read with the smaller offset, which moves the epsilons of the whole game
        moved_by = self.n_compositions * min(law.offset for law in self.laws)
        first, last = math.floor(low / step), math.ceil(high / step)
        x = np.arange(first, last + 1) * step
        value = np.maximum(-np.expm1(np.minimum(x, 0.0)), 0.0)
        for count, repeats in self._stages():
            kernels = [self._block(law, count, x.size) for law in self.laws]
            reach = max(max(abs(shift), abs(shift + mass.size)) for shift, mass, _ in kernels)
            size = fft.next_fast_len(x.size + 2 * reach + 2, real=True)
            spectra = [fft.rfft(np.bincount((shift + np.arange(mass.size)) % size, mass, minlength=size))
                       for shift, mass, _ in kernels]  # fmt: skip
            for _ in range(repeats):
                padded = np.zeros(size)
                # left of the window V is at least what it is at the left end
                padded[:reach] = value[0]
                padded[reach : reach + x.size] = value
                transformed = fft.rfft(padded)
                # transforms of size N lose at most 4 eps log2(N) of the product of the norms
                round_off = 16 * _EPS * math.log2(size) * float(np.linalg.norm(padded))
                best = np.zeros(x.size)
                for spectrum, (_, _, slack) in zip(spectra, kernels, strict=True):
                    moved = fft.irfft(transformed * spectrum, n=size)[reach : reach + x.size]
                    best = np.maximum(best, moved - round_off - slack)
                value = np.minimum(np.minimum.accumulate(best), 1.0)
        return x + moved_by, value

    def _stages(self) -> list[tuple[int, int]]:
        """(steps in a block, number of such blocks), adding up to k."""
        stages = max(1, min(self.n_stages, self.n_compositions))
        size, rest = divmod(self.n_compositions, stages)
        return [pair for pair in ((size + 1, rest), (size, stages - rest)) if pair[1] > 0]

    def _block(self, law: LossLaw, count: int, window: int) -> tuple[int, np.ndarray, float]:
        """First index, masses and charge of the sum of `count` losses, rounded down to the grid."""
        total = Composition([law], [count]).masses()
        # the transform is of total 1; a law that lacks mass lacks it here as well
        scale = math.exp(total.log_scale) * (1 - 16 * _EPS * (1 + abs(total.log_scale)))
        values, start = np.clip(total.values, 0.0, None) * scale, total.start
        # losses above the window are rounded down to its end, those below it dropped
        low = min(max(0, -window - start), values.size - 1)
        high = max(min(values.size, window - start), low + 1)
        kept = values[low:high].copy()
        kept[-1] += values[high:].sum()
        first = min(start + low, window)
        if first < -window:
            kept[:] = 0.0
        return max(first, -window), kept, total.round_off * math.sqrt(values.size) + 2 * total.tail
