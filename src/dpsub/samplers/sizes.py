"""Samples without replacement whose size is random, or follows from the number of records by rounding."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.frame import Frame
from dpsub.samplers.frame_sampler import Counts, Drawer, FrameSampler, collected, counts_of, subsets

ROUNDINGS = ("half_up", "randomised")
SizeLaw = dict[int, float]


def exact_rate(rate: object) -> Fraction:
    """Return a rate as an exact rational number; 0.1, "0.1" and "1/10" are all one tenth.

    Raises
    ------
    ArgumentError
        If it is no number in (0, 1].
    """
    try:
        # a float stands for the decimal number that it prints as
        exact = Fraction(repr(float(rate)) if isinstance(rate, float) else str(rate))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ArgumentError(f"rate must be a number such as 0.1 or 1/10, got rate = {rate!r}") from None
    if not 0 < exact <= 1:
        raise ArgumentError(f"rate must be above 0 and at most 1, got rate = {rate}")
    return exact


def rounded_sizes(rate: object, n: int, rounding: str) -> SizeLaw:
    """Return the law of the size of a sample at `rate` from n records.

    half_up: floor(rate n + 1/2), in exact arithmetic (a language's own rounding sends ties to even numbers);
    randomised: the two integers around rate n, with the chances that keep the mean at rate n.

    References
    ----------
    bun, Section 4.3.
    """
    wanted = exact_rate(rate) * checks.integer("n", n, at_least=0)
    checks.one_of("rounding", rounding, ROUNDINGS)
    if rounding == "half_up":
        return {math.floor(wanted + Fraction(1, 2)): 1.0}
    low = math.floor(wanted)
    up = float(wanted - low)
    return {low: 1 - up, low + 1: up} if up else {low: 1.0}


def drawn_size(law: SizeLaw, rng: np.random.Generator) -> int:
    """Draw a size."""
    sizes = sorted(law)
    return int(rng.choice(sizes, p=[law[size] for size in sizes])) if len(sizes) > 1 else sizes[0]


class _OfRandomSize(FrameSampler):
    """All subsets of a size are equally likely; a subclass says which sizes."""

    @abc.abstractmethod
    def size_law(self, n: int) -> SizeLaw:
        """Return the chances of the sizes for n records."""

    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        mean = math.fsum(size * p for size, p in self.size_law(frame.n).items())
        return np.full(frame.n, mean / frame.n)

    def law(self, frame: Frame) -> dict[Counts, float]:
        everyone = np.arange(frame.n)
        return collected(
            (counts_of(frame.n, chosen), p * q)
            for size, p in self.size_law(frame.n).items()
            for chosen, q in subsets(everyone, size)
        )

    def drawer(self, frame: Frame) -> Drawer:
        law = self.size_law(frame.n)
        return lambda rng: rng.choice(frame.n, drawn_size(law, rng), replace=False)


@dataclass(frozen=True)
class RandomSize(_OfRandomSize):
    """A size drawn from a law that does not depend on the data, then that many different records.

    Parameters
    ----------
    probabilities : sequence of float
        Chances of the sizes 0, ..., n: one more than the frame has records.

    Raises
    ------
    ArgumentError
        If a chance is negative or they do not sum to 1 within 1e-9.
    """

    probabilities: tuple[float, ...]

    name: ClassVar[str] = "random_size"
    label: ClassVar[str] = "random size"

    def __post_init__(self) -> None:
        t = checks.finite_array("probabilities", self.probabilities, ndim=1)
        if t.size < 2 or t.min() < 0 or abs(math.fsum(t) - 1) > 1e-9:
            raise ArgumentError(f"chances of sizes must be at least 0 and sum to 1, got a sum of {math.fsum(t)!r}")
        object.__setattr__(self, "probabilities", tuple(t.tolist()))

    def size_law(self, n: int) -> SizeLaw:
        if len(self.probabilities) != n + 1:
            raise ArgumentError(f"chances must be given for the sizes 0..n = {n}, got {len(self.probabilities)}")
        return {size: p for size, p in enumerate(self.probabilities) if p > 0}

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls((0.1, 0.0, 0.4, 0.5)), Frame(3)), (cls((0.0, 0.25, 0.25, 0.2, 0.2, 0.1)), Frame(5))]


@dataclass(frozen=True)
class RoundedRate(_OfRandomSize):
    """A share `rate` of the records, the size rounded half up or at random.

    Parameters
    ----------
    rate : str, float or Fraction
        In (0, 1]; kept as an exact rational number.
    rounding : {"half_up", "randomised"}
    """

    rate: Fraction
    rounding: str

    name: ClassVar[str] = "rounded_rate"
    label: ClassVar[str] = "rounded rate"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", exact_rate(self.rate))
        checks.one_of("rounding", self.rounding, ROUNDINGS)

    def size_law(self, n: int) -> SizeLaw:
        return rounded_sizes(self.rate, n, self.rounding)

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls(Fraction(1, 2), "half_up"), Frame(5)), (cls(Fraction(3, 10), "randomised"), Frame(6))]
