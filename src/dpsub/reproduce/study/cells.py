"""Cells of a study: one sampler or schedule of given sizes, at one privacy target."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from pydantic import Field

from dpsub import sampling
from dpsub.errors import ArgumentError
from dpsub.reproduce import settings
from dpsub.reproduce.settings import AnyOf, OneOrMore, Varied
from dpsub.sampling import Multistage
from dpsub.sampling.base import PoissonStage
from dpsub.sampling.schemes import Plan, scheme

NONPRIVATE = "nonprivate"
"""Stands for a sampler in trainings without privacy: Poisson batches, no noise, and no target."""
OWN_SIZES = {"cyclic_poisson": "cycle", "truncated_poisson": "max_batch"}
"""Samplers and schedules with a size besides m, and the name of that size."""


class Targets(settings.Closed):
    """Batch sizes and privacy targets, which every entry of a grid has.

    An entry stands for all combinations of its values; each setting is one value or a list.
    """

    m: Varied[settings.Count] = Field(description="(Expected) batch sizes.")
    target_epsilon: Annotated[AnyOf[settings.Positive], OneOrMore()] = Field(
        (), description="Targets for all steps together, in nats."
    )
    target_delta: Varied[settings.Delta] = Field(
        (1e-6,), description="Probabilities at which the targets are given."
    )

    @property
    def targets(self) -> list[tuple[float, float]]:
        """All pairs of a target epsilon and a target delta."""
        pairs = itertools.product(self.target_epsilon, self.target_delta)
        return [(float(epsilon), float(delta)) for epsilon, delta in pairs]


def check_targets(samplers: Sequence[str], target_epsilon: Sequence[float]) -> None:
    """Raise ArgumentError unless samplers with privacy have a target."""
    if tuple(samplers) != (NONPRIVATE,) and not target_epsilon:
        raise ArgumentError(
            f"samplers other than {NONPRIVATE} need a target_epsilon, got none; add it"
        )


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One sampler or schedule of given sizes, at one privacy target.

    Attributes
    ----------
    sampler : str
        With `epochs` a name of `dpsub.sampling.schemes.SCHEMES`, which sets all other sizes by m.
        Without, the name of a sampler or schedule, with a size of its own as in
        "cyclic_poisson:10"; or stages such as "wor:500,wr:400". Or "nonprivate".
    n, m : int
        Number of records, and (expected) size of a batch.
    b : int, optional
        Size of the first stage; None where there is none.
    steps : int
        Number of noisy sums that are released.
    epochs : int, optional
        Epochs that the steps make; None where only steps are counted.
    target_epsilon, target_delta : float
        What all steps together must meet, in nats; NaN without privacy.
    adjacency : str
        Relation under which they must meet it.
    tight : bool
        Whether the tight bound proves the noise.
    dataset : str
        Name of the task that is trained; "" where only the noise is asked for.
    variant : str
        "rigorous" for noise that is proved, "consistent" for noise by the papers' pair.
    """

    sampler: str
    n: int
    m: int
    steps: int
    target_epsilon: float
    target_delta: float
    adjacency: str = "substitute"
    b: int | None = None
    epochs: int | None = None
    tight: bool = False
    dataset: str = ""
    variant: str = "rigorous"

    @property
    def private(self) -> bool:
        return self.sampler != NONPRIVATE

    @cached_property
    def plan(self) -> Plan:
        """The sampler or schedule that draws the batches."""
        # Without privacy any batches would do; all studies take Poisson's.
        name = self.sampler if self.private else "poisson"
        # Epochs set all sizes of a scheme; steps leave them to the cell.
        if self.epochs is not None:
            return scheme(name, self.n, self.m, self.epochs)[0]
        return plan_of(name, n=self.n, m=self.m, b=self.b)


def plan_of(text: str, *, n: int, m: int, b: int | None) -> Plan:
    """Return the sampler or schedule that a text names.

    Parameters
    ----------
    text : str
        A name; a name with a size of its own, as in "cyclic_poisson:10" (groups) and
        "truncated_poisson:150" (largest batch); or stages "kind:size" (kinds wor, wr, and poisson
        as the last one) that leave m slots.
    n, m, b : int
        Number of records, size of a batch, and size of the first stage where there is one.

    Raises
    ------
    ArgumentError
        If there is no such sampler, or the sizes contradict each other.
    """
    name, colon, size = text.partition(":")
    if name in OWN_SIZES:
        own = OWN_SIZES[name]
        # Refused here, where the whole text is known, and not by the sampler.
        if not size.isdecimal():
            raise ArgumentError(
                f"{name} needs a whole number, the {own}, got {text!r}; write {name}:10"
            )
        return sampling.kind_of(name).of_sizes(n, m=m, **{own: int(size)})
    if not colon:
        return sampling.kind_of(name).of_sizes(n, m=m, b=b)
    chain = Multistage.of_text(text)
    # the sum of gradients is divided by m, which must be what the last stage leaves
    slots, last = chain.slots(n)[-1], chain.stages[-1]
    left = slots * last.rate if isinstance(last, PoissonStage) else last.size
    if abs(left - m) > 1e-9 * m:
        raise ArgumentError(
            f"m must be the {left:g} slots that the chain {text!r} leaves, got m = {m}"
        )
    return chain
