"""Multistage sampling done literally: stage by stage from the slots, forward, aggregated by record at the end.

Nothing here uses the package's algorithms: `law` enumerates all outcomes in fractions, `draw` moves whole lists of
slots. The package follows slots backward and computes laws by Markov chains, so the two share no step.
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
        rate = Fraction(stage.rate).limit_denominator(1000)
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


def draw(stages: Sequence[Stage], n: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return counts of shape (n_draws, n), each row one literal draw."""
    slots = np.broadcast_to(np.arange(n), (n_draws, n))
    kept = np.ones((n_draws, n), dtype=bool)
    for stage in stages:
        width = slots.shape[1]
        if isinstance(stage, WithReplacement):
            chosen = rng.integers(width, size=(n_draws, stage.size))
        elif isinstance(stage, WithoutReplacement):
            chosen = rng.permuted(np.broadcast_to(np.arange(width), (n_draws, width)), axis=1)[:, : stage.size]
        elif isinstance(stage, PoissonStage):
            chosen = np.broadcast_to(np.arange(width), (n_draws, width))
        else:
            raise TypeError(f"no literal form of {stage!r}")
        slots = np.take_along_axis(slots, chosen, axis=1)
        kept = rng.random(slots.shape) < stage.rate if isinstance(stage, PoissonStage) else np.ones(slots.shape, bool)
    counts = np.zeros((n_draws, n), dtype=int)
    rows = np.broadcast_to(np.arange(n_draws)[:, None], slots.shape)
    np.add.at(counts, (rows[kept], slots[kept]), 1)
    return counts


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
