"""Samplers: randomised maps from a frame to a sample. They know nothing of privacy.

Those of `REGISTRY` treat all records alike, those of `SCHEDULES` plan the steps of an epoch
together. Those of `FRAME_REGISTRY` need strata, clusters, sizes or an order, or have a random size;
`dpsub advise` says which of them suits a frame:

>>> import numpy as np
>>> frame = Frame(
...     6, strata=[0, 0, 0, 1, 1, 1], clusters=[0, 1, 1, 2, 2, 2], sizes=[1, 2, 2, 3, 4, 6]
... )
>>> designs = [
...     Stratified((1, 2)),
...     StratifiedRate("1/3", "randomised"),
...     RoundedRate("2/5", "half_up"),
...     RandomSize(3, 1),
...     ClusterSample(2),
...     ClusterSample(2, second_stage=0.5),
...     PpsCluster(),
...     Systematic(step=3, order="random"),
...     PpsConditionalPoisson(2),
...     PpsSystematic(2),
...     PpsWithReplacement(2),
... ]
>>> distinct_records = [design.inclusion_probabilities(frame).sum() for design in designs]
>>> [round(float(expected), 3) for expected in distinct_records]
[3.0, 2.0, 2.0, 3.0, 4.0, 2.0, 2.333, 2.0, 2.0, 2.0, 1.784]
>>> designs[0].draw(frame, np.random.default_rng(1)).size
3
"""

from __future__ import annotations

import inspect
from typing import Any

from dpsub import checks
from dpsub.registry import Registry
from dpsub.sampling.base import Family, Sampler
from dpsub.sampling.chains import Multistage, MustOO, MustOW, MustWO, MustWW, Poisson, Wor, Wr
from dpsub.sampling.designs import (
    ClusterSample,
    FrameSampler,
    PpsCluster,
    RandomSize,
    RoundedRate,
    Stratified,
    StratifiedRate,
    Systematic,
)
from dpsub.sampling.frame import Frame
from dpsub.sampling.persistent_shuffle import PersistentShuffle
from dpsub.sampling.pps import PpsConditionalPoisson, PpsSystematic, PpsWithReplacement
from dpsub.sampling.schedules import (
    CyclicPoisson,
    Deterministic,
    RandomAllocation,
    Schedule,
    Shuffle,
    TruncatedPoisson,
)
from dpsub.sampling.secret_cyclic_poisson import SecretCyclicPoisson
from dpsub.sampling.separated import MinSeparation
from dpsub.sampling.weighted import WeightedWr

__all__ = [
    "FRAME_REGISTRY",
    "REGISTRY",
    "SCHEDULES",
    "ClusterSample",
    "CyclicPoisson",
    "Deterministic",
    "Family",
    "Frame",
    "FrameSampler",
    "MinSeparation",
    "Multistage",
    "MustOO",
    "MustOW",
    "MustWO",
    "MustWW",
    "PersistentShuffle",
    "Poisson",
    "PpsCluster",
    "PpsConditionalPoisson",
    "PpsSystematic",
    "PpsWithReplacement",
    "RandomAllocation",
    "RandomSize",
    "RoundedRate",
    "Sampler",
    "Schedule",
    "SecretCyclicPoisson",
    "Shuffle",
    "Stratified",
    "StratifiedRate",
    "Systematic",
    "TruncatedPoisson",
    "WeightedWr",
    "Wor",
    "Wr",
    "kind_of",
    "names_of_sizes",
    "of_sizes",
]

REGISTRY: Registry[Sampler] = Registry("dpsub.sampling", Sampler, "sampler")
FRAME_REGISTRY: Registry[FrameSampler] = Registry("dpsub.sampling", FrameSampler, "design sampler")
"""Samplers that need strata, clusters, sizes or an order, or whose size follows from the number of
records."""
SCHEDULES: Registry[Schedule] = Registry("dpsub.sampling", Schedule, "schedule")


def kind_of(name: str) -> type[Sampler] | type[Schedule]:
    """The sampler or the schedule called `name`; ArgumentError, with the nearest name, if there is
    none.

    Examples
    --------
    >>> kind_of("shuffle").label, kind_of("wor").label
    ('shuffle', 'WOR')
    """
    schedules = SCHEDULES.members()
    if name in schedules:
        return schedules[name]
    if name not in REGISTRY.names():
        # one's own, from a module that was imported
        for kind in _descendants(Sampler) + _descendants(Schedule):
            if kind.__dict__.get("name") == name and not inspect.isabstract(kind):
                return kind
    return REGISTRY.get(checks.one_of("sampler", name, [*REGISTRY.names(), *schedules]))


def _descendants(kind: type[Any]) -> list[type[Any]]:
    """All classes that are derived from this one, in whatever module."""
    found = []
    for child in kind.__subclasses__():
        found += [child, *_descendants(child)]
    return found


def of_sizes(name: str, *, n: int, **sizes: int | None) -> Sampler:
    """Return the sampler called `name` of these sizes from n records.

    `sizes` are what `REGISTRY.get(name).sizes` names: mostly m, the size of the sample, and b, that
    of a first stage. Poisson samples get the rate m / n. Sizes that the sampler does not have, and
    None, are ignored. ArgumentError for an unknown name, a size that is missing, or sizes that the
    sampler can't have.

    Examples
    --------
    >>> of_sizes("must_ow", n=1000, m=100, b=200)
    MustOW(b=200, m=100)
    >>> of_sizes("poisson", n=1000, m=100)
    Poisson(rate=0.1)
    >>> REGISTRY.get("must_ow").sizes
    {'b': 'size of the first stage', 'm': 'batch size'}
    """
    return REGISTRY.get(name).of_sizes(n, **sizes)


def names_of_sizes() -> tuple[str, ...]:
    """Names of all samplers that `of_sizes` makes, those with fewer sizes first."""
    members = REGISTRY.members()
    return tuple(
        sorted(
            (name for name in members if members[name].sizes),
            key=lambda name: len(members[name].sizes),
        )
    )
