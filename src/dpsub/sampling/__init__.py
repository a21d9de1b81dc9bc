"""Samplers: randomised maps from a frame to a sample. They know nothing of privacy."""

from __future__ import annotations

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
from dpsub.sampling.pps import PpsConditionalPoisson, PpsSystematic, PpsWithReplacement

__all__ = [
    "FRAME_REGISTRY",
    "REGISTRY",
    "ClusterSample",
    "Family",
    "Frame",
    "FrameSampler",
    "Multistage",
    "MustOO",
    "MustOW",
    "MustWO",
    "MustWW",
    "Poisson",
    "PpsCluster",
    "PpsConditionalPoisson",
    "PpsSystematic",
    "PpsWithReplacement",
    "RandomSize",
    "RoundedRate",
    "Sampler",
    "Stratified",
    "StratifiedRate",
    "Systematic",
    "Wor",
    "Wr",
    "names_of_sizes",
    "of_sizes",
]

REGISTRY: Registry[Sampler] = Registry("dpsub.sampling", Sampler, "sampler")
FRAME_REGISTRY: Registry[FrameSampler] = Registry("dpsub.sampling", FrameSampler, "design sampler")
"""Samplers that need strata, clusters, sizes or an order, or whose size follows from the number of records."""


def of_sizes(name: str, *, n: int, **sizes: int | None) -> Sampler:
    """Return the sampler called `name` of these sizes from n records.

    Parameters
    ----------
    name : str
        Identifier, e.g. "must_ow".
    n : int
        Number of records.
    **sizes : int
        What `REGISTRY.get(name).sizes` names: mostly m, the size of the sample, and b, that of a first stage. Poisson
        samples get the rate m / n. Sizes that the sampler does not have, and None, are ignored.

    Raises
    ------
    ArgumentError
        Unknown name, a size that is missing, or sizes that the sampler can't have.

    Examples
    --------
    >>> of_sizes("must_ow", n=1000, m=100, b=200)
    MustOW(b=200, m=100)
    >>> of_sizes("poisson", n=1000, m=100)
    Poisson(rate=0.1)
    >>> REGISTRY.get("must_ow").sizes
    {'b': 'size of the first stage', 'm': 'size of the sample'}
    """
    return REGISTRY.get(name).of_sizes(n, **sizes)


def names_of_sizes() -> tuple[str, ...]:
    """Names of all samplers that `of_sizes` makes, those with fewer sizes first."""
    members = REGISTRY.members()
    return tuple(sorted((name for name in members if members[name].sizes), key=lambda name: len(members[name].sizes)))
