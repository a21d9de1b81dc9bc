"""What an upper bound needs to know of a sampler: its stages, as facts, in a normal form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsub import checks, discrete
from dpsub.errors import ArgumentError, UnsupportedError

MOST_SLOTS = 1_000_000
"""To which `discrete.log_binomial` is as accurate as the allowances of the bounds assume."""

_SMALLEST_LOG = -746.0
"""The exponential of it is below the smallest double."""

KINDS = ("without", "with", "poisson")


@dataclass(frozen=True)
class SlotStage:
    """One stage: `size` slots without or with replacement, or each slot with probability `rate`.

    Attributes
    ----------
    kind : {"without", "with", "poisson"}
    size : int
        Number of slots taken; 0 for "poisson".
    rate : float
        Probability of each slot; 0 for the others.
    """

    kind: str
    size: int = 0
    rate: float = 0.0

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        if self.kind == "poisson":
            checks.real("rate", self.rate, above=0, at_most=1)
        else:
            checks.integer("size", self.size, at_least=1)

    def count_law(self, n_slots: int, marked: int) -> np.ndarray:
        """P(l marked slots are drawn) for l = 0, 1, ..., `marked` of `n_slots` slots being marked.

        Counts whose probability is below the smallest double may be left out at the end.
        """
        if self.kind == "without" and marked == 1:
            # exact, so that the number of records is not limited
            inside = self.size / n_slots
            return np.array([(n_slots - self.size) / n_slots, inside])
        if self.kind == "without":
            most = min(marked, self.size)
            return np.exp(discrete.log_hypergeometric(np.arange(most + 1), n_slots, marked, self.size))
        if self.kind == "with":
            counts = np.arange(_last_likely(self.size, marked / n_slots) + 1)
            return np.exp(discrete.log_binomial(counts, self.size, marked / n_slots))
        return np.exp(discrete.log_binomial(np.arange(marked + 1), marked, self.rate))


def _last_likely(size: int, rate: float) -> int:
    """The largest count of Binomial(size, rate) whose probability is not below the smallest double."""
    # probabilities fall from the mean on
    likely, beyond = min(size, int(size * rate) + 1), size + 1
    while beyond - likely > 1:
        middle = (likely + beyond) // 2
        if discrete.log_binomial(middle, size, rate) > _SMALLEST_LOG:
            likely = middle
        else:
            beyond = middle
    return likely


@dataclass(frozen=True)
class SlotChain:
    """n records through a chain of stages.

    In the normal form no stage without replacement follows another one: a uniform subset of a uniform subset is one,
    and
    a uniform subset of independent draws are independent draws, so such a stage replaces the size of the stage before
    it.

    Attributes
    ----------
    n : int
        Number of records.
    stages : tuple of SlotStage
        First one first; a Poisson stage only as the last one.

    Raises
    ------
    ArgumentError
        If there is no stage, or one asks for more different slots than there are.
    UnsupportedError
        If a Poisson stage is not the last one, or more slots are drawn with replacement than are certified.
    """

    n: int
    stages: Sequence[SlotStage]

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, at_least=1))
        if not self.stages:
            raise ArgumentError("a chain needs at least one stage, got none")
        slots = self.n
        normal: list[SlotStage] = []
        for position, stage in enumerate(self.stages):
            if stage.kind == "poisson" and position < len(self.stages) - 1:
                raise UnsupportedError(
                    f"a Poisson stage leaves a random number of slots and can only be the last stage, "
                    f"got it as stage {position + 1} of {len(self.stages)}"
                )
            if stage.kind == "without":
                checks.integer("size of a stage without replacement", stage.size, at_most=slots, at_most_name="slots")
            if stage.kind == "without" and normal:
                normal[-1] = SlotStage(normal[-1].kind, stage.size)
            else:
                normal.append(stage)
            if stage.kind == "with" and stage.size > MOST_SLOTS:
                raise UnsupportedError(
                    f"probabilities of counts are certified up to {MOST_SLOTS} slots drawn with replacement, "
                    f"got {stage.size}; take fewer"
                )
            slots = stage.size
        object.__setattr__(self, "stages", tuple(normal))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the stages, in normal form."""
        return tuple(stage.kind for stage in self.stages)

    @property
    def multiplicity(self) -> np.ndarray:
        """P(L = l), the law of the number of copies of one record in the sample."""
        return _multiplicity(self)


@lru_cache(maxsize=8)
def _multiplicity(chain: SlotChain) -> np.ndarray:
    """Kept for chains that are equal: a search for the noise asks for the same law again and again."""
    law, slots = np.array([0.0, 1.0]), chain.n
    for stage in chain.stages:
        rows = [(weight, stage.count_law(slots, j)) for j, weight in enumerate(law) if weight > 0]
        moved = np.zeros(max(row.size for _, row in rows))
        for weight, row in rows:
            moved[: row.size] += weight * row
        law, slots = moved, stage.size
    law.flags.writeable = False
    return law
