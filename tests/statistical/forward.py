"""Multistage sampling done literally: stage by stage from the slots, forward, aggregated by record
at the end.

Nothing here uses the package's algorithms: `law` enumerates all outcomes in fractions. The package
follows slots backward and computes laws by Markov chains, so the two share no step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np

from dpsub.sampling.base import PoissonStage, Stage, WithoutReplacement, WithReplacement

Slots = tuple[int, ...]


def _outcomes(stage: Stage, slots: Slots) -> Iterator[tuple[Slots, Fraction]]:
    if isinstance(stage, WithReplacement):
        for chosen in product(slots, repeat=stage.size):
            yield chosen, Fraction(1, len(slots) ** stage.size)
    elif isinstance(stage, WithoutReplacement):
        for chosen in combinations(slots, stage.size):
            yield chosen, Fraction(1, comb(len(slots), stage.size))
    elif isinstance(stage, PoissonStage):
        rate = Fraction(stage.rate)
        for kept in product((False, True), repeat=len(slots)):
            chosen = tuple(slot for slot, keep in zip(slots, kept, strict=True) if keep)
            yield chosen, rate ** len(chosen) * (1 - rate) ** (len(slots) - len(chosen))
    else:
        raise TypeError(f"no literal form of {stage!r}")


def law(stages: Sequence[Stage], n: int) -> dict[tuple[int, ...], Fraction]:
    """Return the exact joint law of the counts (c_0, ..., c_{n-1}) of all records."""
    states: dict[Slots, Fraction] = {tuple(range(n)): Fraction(1)}
    for stage in stages:
        moved: dict[Slots, Fraction] = defaultdict(Fraction)
        for slots, probability in states.items():
            for chosen, conditional in _outcomes(stage, slots):
                # the order of slots never matters to a later stage
                moved[tuple(sorted(chosen))] += probability * conditional
        states = moved
    joint: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for slots, probability in states.items():
        counted = Counter(slots)
        joint[tuple(counted[i] for i in range(n))] += probability
    return dict(joint)


def random_chain(
    kinds: Iterable[str], rng: np.random.Generator, *, n_max: int, size_max: int
) -> tuple[tuple[Stage, ...], int]:
    """Return stages that fit together, and the size of their frame; each is of one of the kinds
    "o", "w", "p"."""
    n = slots = int(rng.integers(2, n_max + 1))
    stages: list[Stage] = []
    for choice in kinds:
        kind, rate = rng.choice(list(choice)), float(rng.uniform(0.05, 0.95))
        if kind == "p":
            stages.append(PoissonStage(rate))
            break
        slots = int(rng.integers(1, 1 + (slots if kind == "o" else size_max)))
        stages.append(WithoutReplacement(slots) if kind == "o" else WithReplacement(slots))
    return tuple(stages), n
