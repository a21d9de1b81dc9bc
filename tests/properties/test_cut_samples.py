"""Theorem 71 on cut Poisson samples: no data set in {-1, 0, 1} is above it, by enumeration of all
samples."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np

from dpsub.accounting.schemes.truncated.cut_samples import (
    CutSample,
    merged_profiles,
    proved_profiles,
)
from dpsub.relations import Relation
from dpsub.streams import stream

LOGS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0])
OTHER: dict[Relation, list[float]] = {
    Relation.ADD_REMOVE: [],
    Relation.ZERO_OUT: [0.0],
    Relation.SUBSTITUTE: [-1.0],
}


def sums(data: list[float], rate: float, most: int) -> Counter[float]:
    """Return the probabilities of the sums of all samples."""
    law: Counter[float] = Counter()
    places = range(len(data))
    for size in range(len(data) + 1):
        chance = rate**size * (1 - rate) ** (len(data) - size)
        for drawn in itertools.combinations(places, size):
            kept = list(itertools.combinations(drawn, min(most, size)))
            for sample in kept:
                law[sum(data[i] for i in sample)] += chance / len(kept)
    return law


def density(law: Counter[float], scale: float, t: np.ndarray) -> np.ndarray:
    parts = [p * np.exp(-((t - mean) ** 2) / (2 * scale**2)) for mean, p in law.items()]
    return np.asarray(np.sum(parts, axis=0) / (scale * math.sqrt(2 * math.pi)))


def test_no_data_set_is_above_the_profiles() -> None:
    rng = stream(37, experiment="cut_samples", cell={}, role="data", replicate=0)
    faults, sharper = 0, 0.0
    for trial in range(24):
        n = int(rng.integers(3, 7))
        most = int(rng.integers(1, n))
        rate, scale = float(rng.uniform(0.1, 0.9)), float(np.exp(rng.uniform(-1, 0.7)))
        rest = [-1.0] * (n - 1) if trial % 2 else list(rng.choice([-1.0, 0.0, 1.0], n - 1))
        t = np.linspace(-n - 9 * scale, n + 9 * scale, 5_001)
        with_record = density(sums([1.0, *rest], rate, most), scale, t)
        sample = CutSample(n, rate, most)
        # planted fault: a record never takes the place of another one
        forgotten = replace(sample)
        object.__setattr__(forgotten, "displacing", 1e-9)
        for relation, other in OTHER.items():
            without = density(sums([*other, *rest], rate, most), scale, t)
            forward, backward = merged_profiles(sample, relation, scale)
            revealed, _ = proved_profiles(sample, relation, scale)
            missed, _ = merged_profiles(forgotten, relation, scale)
            sides = [(with_record, without, forward), (without, with_record, backward or forward)]
            for p, q, bound in sides:
                positive = [np.maximum(p - math.exp(x) * q, 0.0) for x in LOGS]
                truth = np.array([np.trapezoid(part, t) for part in positive])
                assert (truth <= bound(LOGS) + 3e-6).all()
                if bound is forward:
                    faults += int((truth > missed(LOGS) + 1e-4).any())
            sharper = max(sharper, float(np.max(revealed(LOGS) - forward(LOGS))))
    assert faults > 5
    assert sharper > 0.05
