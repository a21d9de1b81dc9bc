"""Differentially private stochastic gradient descent (DP-SGD), many runs at once.

Runs that share a seed share their batches, so that one pass over the records of a batch serves all
of them; runs of different seeds are computed side by side. Norms of the gradients of single records
follow from the layers of `dpsub.learning.models` without the gradients themselves.

References
----------
Abadi et al., arXiv 1607.00133 (clipped and noisy descent); MUST, Algorithm 2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.learning.models import NUMBERS_AT_ONCE, Model, slices, squared_norms, weighted_sum
from dpsub.sampling.frame import Samples

ROWS = 32
"""Records of one matrix product: batches are padded to a multiple of it, so that the bytes of a
result (of two parameters or more) do not depend on how wide the batches of other seeds are. The
last digit may depend on the number of runs of a seed."""


def train(
    model: Model,
    x: np.ndarray,
    y: np.ndarray,
    blocks: Sequence[Samples],
    *,
    initial: np.ndarray,
    learning_rate: float | np.ndarray,
    clip: float | np.ndarray | None,
    divisor: float | None,
    noise_multiplier: float | np.ndarray = 0.0,
    rngs: Sequence[np.random.Generator] | None = None,
    chances: np.ndarray | None = None,
    after_step: Callable[[np.ndarray], None] | None = None,
) -> np.ndarray:
    """Run DP-SGD and return the last parameters of each of R runs, shape (R, p).

    A step takes learning_rate times (the sum of counted, clipped gradients + noise) / divisor from
    the parameters. Each record's gradient is clipped before it is counted: a record that fills l
    slots enters with at most l clip. With a fixed divisor, whatever was drawn, an empty batch moves
    by the noise alone: the accountant's conditions.

    Parameters
    ----------
    model : loss of a record.
    x, y : shape (N, d), float32 or float64, and (N,); sums are in float64.
    blocks : batches of each of S seeds, one subset per step; indices are rows of `x`. S divides R:
        the runs s R / S to (s + 1) R / S - 1 share the batches of seed s and its standard normal
        numbers, and may differ in what follows.
    initial : shape (R, p), or (S, p) or (p,) to be shared.
    learning_rate, clip, noise_multiplier : scalar or shape (R,); the noise on the *sum* has the
        standard deviation noise_multiplier * clip. `clip` None leaves gradients as they are and
        allows no noise.
    divisor : the (expected) batch size; None for the size of each batch as drawn, at least 1. Noise
        is then on the *average*, as in MUST's Algorithm 2, and no account covers it.
    rngs : a generator of noise for each seed, drawn from step by step; None for no noise.
    chances : shape (N,), of records in `blocks` that were thinned by them: a gradient is clipped to
        clip * chance and divided by the chance, so that means are those of all records and no
        contribution is longer than the clip.
    after_step : called with the parameters after each step, shape (R, p), which the next step
        overwrites.
    """
    seeds, p = len(blocks), model.n_parameters
    runs = len(initial) if np.ndim(initial) == 2 else seeds
    steps = {len(block) for block in blocks}
    if not seeds or runs % seeds or len(steps) > 1:
        raise ArgumentError(
            "runs must be a multiple of the seeds, with the same number of steps for "
            f"each seed, got {runs} runs, {seeds} blocks and steps {sorted(steps)}"
        )
    if x.shape != (len(y), model.d) or np.shape(initial)[-1:] != (p,):
        raise ArgumentError(
            f"x must have the shape (N, {model.d}) for N values y, and initial {p} "
            f"parameters per run, got {x.shape}, {len(y)} and {np.shape(initial)}"
        )
    if divisor is not None:
        divisor = checks.real("divisor", divisor, above=0)
    # A chance of 0 would divide by it, and one above 1 would lengthen gradients.
    if chances is not None and (
        np.shape(chances) != (len(y),) or not 0 < np.min(chances) <= np.max(chances) <= 1
    ):
        raise ArgumentError(
            f"chances must be one in (0, 1] for each of the {len(y)} rows, got others"
        )
    shape = (seeds, runs // seeds)

    def of_runs(name: str, value: float | np.ndarray) -> np.ndarray:
        values = checks.finite_array(name, value)
        return np.broadcast_to(values, (runs,)).reshape(shape)

    rates = of_runs("learning_rate", learning_rate)
    multipliers = of_runs("noise_multiplier", noise_multiplier)
    clips = None if clip is None else of_runs("clip", clip)
    if clips is not None and clips.min() <= 0:
        raise ArgumentError(f"clip must be above 0, got {clips.min():g}")
    # The scale of the noise is in units of the clip: without a bound on gradients it has no
    # meaning.
    if multipliers.min() < 0 or (multipliers.any() and (rngs is None or clips is None)):
        raise ArgumentError(
            "noise_multiplier must be at least 0, and noise needs a clip and a noise "
            f"generator per seed, got {multipliers.min():g} to {multipliers.max():g}, "
            f"clip = {clip} and rngs = {rngs}"
        )
    # In float64 whatever the records are: sums of many small steps.
    start = np.broadcast_to(np.asarray(initial, dtype=float), (runs, p))
    under_way = _Runs(
        model=model,
        x=x,
        y=y,
        blocks=blocks,
        parameters=start.reshape(*shape, p).copy(),
        rates=rates,
        clips=clips,
        spreads=multipliers if clips is None else multipliers * clips,
        divisor=divisor,
        rngs=rngs,
        chances=chances,
    )
    parameters = under_way.parameters.reshape(runs, p)  # a view: steps change it
    portions = under_way.portions()
    if after_step is None:
        # one portion of the seeds after the other: what it works on stays in a cache
        for portion in portions:
            deque(portion, maxlen=0)
    else:
        for _ in zip(*portions, strict=True):
            after_step(parameters)
    return parameters


def on_own_records(blocks: Sequence[Samples], n: int) -> list[Samples]:
    """Return batches of data sets of n records each, one per seed, that stand one after the other
    as rows of one table."""
    return [
        replace(block, indices=block.indices + n * position)
        for position, block in enumerate(blocks)
    ]


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs under way: K for each of S seeds."""

    model: Model
    x: np.ndarray
    y: np.ndarray
    blocks: Sequence[Samples]
    parameters: np.ndarray  # shape (S, K, p), changed in place by each step
    rates: np.ndarray  # shape (S, K)
    clips: np.ndarray | None  # shape (S, K)
    spreads: np.ndarray  # shape (S, K): standard deviations of the noise
    divisor: float | None
    rngs: Sequence[np.random.Generator] | None
    chances: np.ndarray | None

    def portions(self) -> list[Iterator[None]]:
        """Return the steps of portions of the seeds: each turn of an iterator is one step."""
        widest = max(int(block.distinct.max(initial=0)) for block in self.blocks)
        groups = max(1, -(-widest // ROWS))
        seeds_at_once = NUMBERS_AT_ONCE // (self._numbers_a_group * groups)
        return [self._steps(seeds) for seeds in slices(len(self.blocks), seeds_at_once)]

    @property
    def _numbers_a_group(self) -> int:
        """Numbers of the arrays that a group of rows needs, for all runs of a seed."""
        _, runs, p = self.parameters.shape
        return ROWS * (self.model.d + runs * self.model.width) + runs * p

    def _steps(self, seeds: slice) -> Iterator[None]:
        """Take the steps of some seeds, one per turn."""
        parameters = self.parameters[seeds]  # a view: steps change what `train` returns
        spread = self.spreads[seeds][..., None]
        slope = self.rates[seeds][..., None]
        if self.divisor is not None:
            # Divided once, not in each step; what is drawn plays no part: the accountant's fixed
            # denominator.
            slope = slope / self.divisor
        groups_at_once = max(1, NUMBERS_AT_ONCE // (self._numbers_a_group * len(parameters)))
        for indices, counts, normal in self._prepared(seeds):
            total = np.zeros_like(parameters)
            for groups in slices(indices.shape[1], groups_at_once):
                sums = self._clipped_sums(seeds, indices[:, groups], counts[:, groups])
                # one after the other, wherever chunks begin: the same bytes for all sizes of them
                sums[:, 0] += total
                total = sums.sum(axis=1)
            if self.divisor is None:
                drawn = counts.sum(axis=(1, 2))
                # MUST's Algorithm 2 averages over the batch as drawn; an empty batch has only
                # noise.
                total /= np.maximum(drawn, 1.0)[:, None, None]
            if normal is not None:
                # The same standard normal numbers for all runs of a seed: their differences are
                # paired.
                total += spread * normal[:, None, :]
            parameters -= slope * total
            yield

    def _clipped_sums(self, seeds: slice, rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the sums of the counted, clipped gradients of each group of rows, shape (S, G, K,
        p); `rows` and `counts` have the shape (S, G, ROWS)."""
        # Records may be stored in single precision; gradients are not computed in it.
        records = self.x.take(rows, axis=0).astype(float, copy=False)
        layers = self.model.backward(self.parameters[seeds][:, None], records, self.y.take(rows))
        times = counts[:, :, None]
        if self.clips is None:
            return weighted_sum(layers, times)
        bound = self.clips[seeds][:, None, :, None]
        # gradients shorter than this are divided by their chance and not clipped
        shortest = bound
        if self.chances is not None:
            shortest = bound * self.chances.take(rows)[:, :, None]
        # From the layers alone: no gradient of a single record is ever formed.
        norms = np.sqrt(squared_norms(layers))
        return weighted_sum(layers, times * (bound / np.maximum(norms, shortest)))

    def _prepared(self, seeds: slice) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Yield a step's indices and counts, (S, G, ROWS), padded with 0, and standard normal
        numbers, (S, p)."""
        blocks, p = self.blocks[seeds], self.model.n_parameters
        rngs = None if self.rngs is None else self.rngs[seeds]
        # The widest batch of the portion, rounded up to whole groups of rows.
        widths = -(-np.max([block.distinct for block in blocks], axis=0) // ROWS) * ROWS
        numbers_a_step = len(blocks) * (2 * int(widths.max(initial=1)) + p)
        for steps in slices(len(widths), NUMBERS_AT_ONCE // numbers_a_step):
            width = int(widths[steps].max())
            shape = (len(blocks), len(widths[steps]), -1, ROWS)
            padded = [block[steps].padded(width) for block in blocks]
            indices = np.stack([rows for rows, _ in padded]).reshape(shape)
            counts = np.stack([times for _, times in padded]).reshape(shape)
            normal = None
            if rngs is not None:
                # Step after step from one generator: the same numbers however steps are prepared
                # together.
                drawn = [rng.standard_normal((len(widths[steps]), p)) for rng in rngs]
                normal = np.stack(drawn)
            for t, groups in enumerate(widths[steps] // ROWS):
                noise = None if normal is None else normal[:, t]
                yield indices[:, t, :groups], counts[:, t, :groups], noise
