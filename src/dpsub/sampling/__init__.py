"""Samplers: randomised maps from a frame to a sample. They know nothing of privacy."""

from __future__ import annotations

from dpsub import checks
from dpsub.registry import Registry
from dpsub.sampling.base import Multistage, Sampler
from dpsub.sampling.designs import FrameSampler
from dpsub.sampling.must import MustOO, MustOW, MustWO, MustWW
from dpsub.sampling.one_stage import Poisson, Wor, Wr

__all__ = [
    "FRAME_REGISTRY",
    "REGISTRY",
    "FrameSampler",
    "Multistage",
    "MustOO",
    "MustOW",
    "MustWO",
    "MustWW",
    "Poisson",
    "Sampler",
    "Wor",
    "Wr",
    "of_sizes",
]

REGISTRY: Registry[Sampler] = Registry("dpsub.sampling", Sampler, "sampler")
FRAME_REGISTRY: Registry[FrameSampler] = Registry("dpsub.sampling", FrameSampler, "design sampler")
"""Samplers that need strata, clusters, sizes or an order, or whose size follows from the number of records."""


def of_sizes(name: str, *, n: int, m: int, b: int | None = None) -> Sampler:
    """Return the sampler called `name` of (expected) size m from n records.

    Parameters
    ----------
    name : str
        Identifier, e.g. "must_ow".
    n, m : int
        Frame and sample size. Poisson gets the rate m / n.
    b : int, optional
        Size of the first stage; ignored by one-stage samplers.

    Raises
    ------
    ArgumentError
        Unknown name, or sizes that the sampler can't have.

    Examples
    --------
    >>> of_sizes("must_ow", n=1000, m=100, b=200)
    MustOW(b=200, m=100)
    >>> of_sizes("poisson", n=1000, m=100)
    Poisson(rate=0.1)
    """
    return REGISTRY.get(name).of_sizes(checks.integer("n", n, at_least=1), m, b)
