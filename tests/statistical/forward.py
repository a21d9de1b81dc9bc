"""Multistage sampling done literally: stage by stage from the slots, forward, aggregated by record at the end.

Nothing here uses the package's algorithms: `law` enumerates all outcomes in fractions. The package follows slots
backward and computes laws by Markov chains, so the two share no step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
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


def chains(n_chains: int, *, n_max: int, size_max: int, seed: int) -> list[tuple[tuple[Stage, ...], int]]:
    """Return random chains of three stages that fit together, with the size of their frame."""
    rng = np.random.default_rng(seed)
    found: list[tuple[tuple[Stage, ...], int]] = []
    while len(found) < n_chains:
        n = int(rng.integers(2, n_max + 1))
        stages: list[Stage] = []
        slots = n
        for position in range(3):
            kind = rng.choice(["o", "w", "p"] if position == 2 else ["o", "w"])
            size = int(rng.integers(1, size_max + 1))
            if kind == "p":
                stages.append(PoissonStage(float(rng.choice([0.2, 0.5, 0.75]))))
            elif kind == "o":
                size = min(size, slots)
                stages.append(WithoutReplacement(size))
            else:
                stages.append(WithReplacement(size))
            slots = size
        found.append((tuple(stages), n))
    return found
