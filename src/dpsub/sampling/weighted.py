"""Independent draws with public weights: some records are drawn more often than others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling import laws
from dpsub.sampling.base import Family, Stage, StagedSampler, WithReplacement, groups, uniform
from dpsub.sampling.frame import Frame, Samples


@dataclass(frozen=True)
class WeightedDraws(WithReplacement):
    """Take `size` slots independently, each a given marked one with probability
    `largest_weight`."""

    largest_weight: float
    kind: ClassVar[str] = "weighted_wr"

    def chance(self, marked: Any, n_slots: int) -> Any:
        return np.minimum(marked * self.largest_weight, 1.0)


@dataclass(frozen=True)
class WeightedWr(StagedSampler):
    """Take m records independently, with replacement, each by public weights: the
    WeightedRandomSampler of PyTorch. `largest_weight` is the largest one over the sum of all.

    Its law is that of the heaviest record. Draws are those of record 0 at the largest weight, all
    others alike; `PpsWithReplacement` draws by the weights of a frame.

    Examples
    --------
    >>> sampler = WeightedWr.of_weights(2, [3, 1, 1, 1])
    >>> sampler
    WeightedWr(m=2, largest_weight=0.5)
    >>> sampler.multiplicity_law(4).pmf.round(12).tolist()
    [0.25, 0.5, 0.25]
    """

    m: int
    largest_weight: float

    name = "weighted_wr"
    label, colour, marker = "weighted WR", "#44AA99", "8"
    line_style = (0, (4, 1.5, 1, 1.5, 1, 1.5))
    sizes: ClassVar = {}
    options: ClassVar = {
        "m": "batch size",
        "largest_weight": "largest probability of a record in one draw",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", WithReplacement.checked("m", self.m))
        weight = checks.real("largest_weight", self.largest_weight, above=0, at_most=1)
        object.__setattr__(self, "largest_weight", weight)

    @classmethod
    def of_weights(cls, m: int, weights: ArrayLike) -> Self:
        """Return the sampler of m draws with these weights, one for each record, shape (n,); they
        need not add up to 1.

        Raises
        ------
        ArgumentError
            If a weight is negative or not finite, or all are 0.
        """
        given = checks.finite_array("weights", weights, ndim=1)
        total = math.fsum(given)
        if given.min() < 0 or not 0 < total < np.inf:
            raise ArgumentError(
                f"weights must not be negative, with a sum above 0, got a smallest one of "
                f"{given.min():g} and a sum of {total:g}; correct them"
            )
        return cls(m, float(given.max()) / total)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return (WeightedDraws(self.m, self.largest_weight),)

    @property
    def stage_names(self) -> Sequence[str]:
        return ("m",)

    @classmethod
    def of_sizes(cls, n: int, **sizes: int | None) -> Self:
        raise UnsupportedError(
            "weighted draws need the largest weight, too; give WeightedWr(m, largest_weight)"
        )

    @classmethod
    def family(cls, n: int | None, **sizes: int | None) -> Family:
        raise UnsupportedError(
            "a size of weighted draws is not solved for; solve for noise, or compare sizes"
        )

    @classmethod
    def examples(cls) -> list[tuple[WeightedWr, int]]:  # type: ignore[override]
        """With equal weights, as samplers whose records are alike are compared."""
        return [(cls(4, 1 / 5), 5), (cls(20, 1 / 60), 60)]

    def fits(self, n: int) -> bool:
        """Whether the weights of n records may have this largest one."""
        return n * self.largest_weight >= 1 - 1e-12 and (n > 1 or self.largest_weight == 1)

    def check_records(self, n: int) -> None:
        """Raise ArgumentError where no weights of n records have this largest one."""
        if not self.fits(n):
            raise ArgumentError(
                f"the largest of n = {n} weights must be at least 1 / n, and 1 for a single "
                f"record, got largest_weight = {self.largest_weight:g}; divide the largest weight "
                "by the sum of all"
            )

    def expected_share(self, n: int) -> float:
        return self.m / n

    def expected_distinct(self, n: int) -> float:
        others = (1 - self.largest_weight) / max(n - 1, 1)
        seen = -np.expm1(self.m * np.log1p(-others))
        return float(self.multiplicity_law(n).eta + (n - 1) * seen)

    def log_distinct_law(self, n: int) -> np.ndarray:
        self.check_records(n)
        if n == 1:
            return np.array([-np.inf, 0.0])
        # of so many draws none is of the heaviest record
        log_others = laws.log_binomial(np.arange(self.m + 1), self.m, 1 - self.largest_weight)
        with_it = laws.occupancy_mixture(log_others[:-1], n - 1)
        log_none = np.append(np.full(self.m, -np.inf), log_others[-1])
        without = laws.occupancy_mixture(log_none, n - 1)
        total = np.full(max(with_it.size + 1, without.size), -np.inf)
        total[1 : with_it.size + 1] = with_it
        total[: without.size] = np.logaddexp(total[: without.size], without)
        return total

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        """Draw `n_subsets` independent subsets, record 0 at the largest weight."""
        n_subsets = checks.integer("n_subsets", n_subsets, at_least=1)
        self.check_records(frame.n)
        shape = (n_subsets, self.m)
        is_heaviest = rng.random(shape) < self.largest_weight
        others = 1 + uniform(rng, max(frame.n - 1, 1), shape)
        labels = np.sort(np.where(is_heaviest, 0, others), axis=1)
        first = np.append(np.ones((n_subsets, 1), bool), labels[:, 1:] != labels[:, :-1], axis=1)
        starts, counts, offsets = groups(first, None)
        return Samples(labels.ravel().take(starts), counts, offsets)
