"""Cells of the fair comparison: what is trained on what, at which privacy, and the samplers that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpsub import checks, sampling
from dpsub.accounting.account import Account, account
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.papers.fair.experiments.fair_tasks import TASKS, Task
from dpsub.papers.fair.settings import Entry
from dpsub.reproduce.experiment import takes_first_stage
from dpsub.sampling import Multistage
from dpsub.sampling.base import PoissonStage, StagedSampler

CONVENTIONS = {"rigorous": "rigorous", "consistent": "paper"}
"""Variant of the experiments -> convention by which the noise is calibrated."""

MOST_NOISE = 1e4
_FIELDS = ("sampler", "m", "b", "steps", "target_epsilon", "target_delta", "dataset", "convention")


@dataclass(frozen=True)
class Cell:
    """One sampler, its sizes, a target and a data set; seeds are the replicates.

    Attributes
    ----------
    sampler : str
        Name in the registry, or stages such as "wor:500,wr:400".
    m : int
        (Expected) size of a batch, which the sum of gradients is divided by.
    b : int or None
        Size of the first stage of a two-stage sampler; None for every other.
    steps : int
        Number of noisy sums that are released.
    target_epsilon, target_delta : float
        What all steps together must meet, nats and probability.
    dataset : str
        A task of `dpsub.papers.fair.experiments.fair_tasks`.
    convention : {"rigorous", "paper"}
        Proved under `substitute`; or what the papers' pair says, which is not a guarantee.

    Raises
    ------
    ArgumentError
        If a name is unknown or a size is one that the sampler cannot have.
    """

    sampler: str
    m: int
    b: int | None
    steps: int
    target_epsilon: float
    target_delta: float
    dataset: str
    convention: str = "rigorous"

    def __post_init__(self) -> None:
        checks.one_of("data set", self.dataset, TASKS)
        checks.one_of("convention", self.convention, CONVENTIONS.values())
        checks.integer("m", self.m, at_least=1)
        checks.integer("steps", self.steps, at_least=1)
        checks.real("target_epsilon", self.target_epsilon, above=0)
        checks.real("target_delta", self.target_delta, above=0, below=1)
        if not takes_first_stage(self.sampler):
            object.__setattr__(self, "b", None)
        self.drawn.slots(self.task.n)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Cell:
        """Return the cell of a flat mapping with exactly the fields above.

        Raises
        ------
        ArgumentError
            As the class, or if a field is missing or unknown.
        """
        for name in fields:
            checks.one_of("field of a cell", name, _FIELDS)
        for name in _FIELDS:
            if name not in fields:
                raise ArgumentError(f"a cell must have the fields {', '.join(_FIELDS)}, got none named {name}; add it")
        return cls(**fields)

    @property
    def task(self) -> Task:
        return TASKS[self.dataset]

    @cached_property
    def drawn(self) -> StagedSampler:
        """The sampler on the training part of the data set."""
        return sampler_of(self.sampler, n=self.task.n, m=self.m, b=self.b)

    @property
    def key(self) -> tuple[Any, ...]:
        """What fixes the calibration as records hold it; b = 0 where there is none."""
        return (
            self.dataset, self.sampler, self.m, self.b or 0, self.steps, self.target_epsilon, self.target_delta,
            self.convention,
        )  # fmt: skip

    def check_reach(self) -> None:
        """Raise UnsupportedError if no noise multiplier up to 1e4 is proved to meet the target.

        The bound is computed only where a rough rule puts the noise needed within a factor of 10 of that limit.
        """
        rough = 2 * self.m / self.task.n * (2 * self.steps) ** 0.5 / self.target_epsilon
        if rough < MOST_NOISE / 100 or proved(self, MOST_NOISE).upper <= self.target_epsilon:
            return
        raise UnsupportedError(
            f"the target epsilon = {self.target_epsilon:g} at delta = {self.target_delta:g} must be within reach of a "
            f"noise multiplier of {MOST_NOISE:g}, got {self.sampler} with m = {self.m} and {self.steps} steps on "
            f"{self.dataset}, which is not; raise the target or take fewer steps"
        )


def proved(cell: Cell, noise_multiplier: float, *, adjacency: str = "substitute", width: float = 0.01) -> Account:
    """Return what is proved of epsilon at the cell's delta with this noise; `width` is relative to the target."""
    return account(
        cell.drawn, cell.task.n, noise_multiplier=noise_multiplier, steps=cell.steps,
        delta=cell.target_delta, adjacency=adjacency, width=width * cell.target_epsilon,
    )  # fmt: skip


def sampler_of(text: str, *, n: int, m: int, b: int | None) -> StagedSampler:
    """Return the sampler that a cell names, for n records.

    Parameters
    ----------
    text : str
        A name in the registry, or stages "kind:size" separated by commas, kinds wor, wr, and poisson as the last.
    n, m : int
        Number of records, and the (expected) number of slots after the last stage.
    b : int or None
        Size of the first stage of a two-stage sampler.

    Raises
    ------
    ArgumentError
        If a name or kind is unknown, sizes do not fit, or the last stage of a chain does not leave m slots.
    """
    if ":" not in text:
        sampler = sampling.of_sizes(text, n=n, m=m, b=b)
        if not isinstance(sampler, StagedSampler):
            raise ArgumentError(f"a sampler of the comparison must be a chain of stages, got {text}; name another")
        return sampler
    chain = Multistage.of_text(text)
    slots, last = chain.slots(n)[-1], chain.stages[-1]
    left = slots * last.rate if isinstance(last, PoissonStage) else last.size
    if abs(left - m) > 1e-9 * m:
        raise ArgumentError(f"m must be the {left:g} slots that the chain {text!r} leaves, got m = {m}")
    return chain


def expanded(grid: Sequence[Entry], convention: str) -> Iterator[Cell]:
    """Yield the cells of a grid: every entry's targets, batch sizes, samplers and, where they have one, sizes b."""
    for entry in grid:
        for epsilon in entry.target_epsilon:
            for m in entry.m:
                for sampler in entry.samplers:
                    for b in entry.b if takes_first_stage(sampler) else [None]:
                        yield Cell(
                            sampler, m, b, entry.steps, float(epsilon), entry.target_delta, entry.dataset,
                            convention,
                        )  # fmt: skip


def check_grid(grid: Sequence[Entry]) -> None:
    """Raise if a cell of the grid is impossible, out of reach, or there twice."""
    seen = set()
    for cell in expanded(grid, "rigorous"):
        cell.check_reach()
        if cell.key in seen:
            raise ArgumentError(f"a grid must hold each cell once, got {cell.sampler} on {cell.dataset} twice")
        seen.add(cell.key)
