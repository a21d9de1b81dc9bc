"""What a data loader of PyTorch or Opacus draws, by the attributes of the object.

Neither package is imported: an object with the attributes of `torch.utils.data.DataLoader` is read
as one.
"""

from __future__ import annotations

from typing import Any

from dpsub import checks
from dpsub.accounting.questions.batches import LoaderBatches
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling.weighted import WeightedWr

_OF_OPACUS = ("UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler")
_NEEDED = ("dataset", "sampler", "batch_sampler", "batch_size", "drop_last")


def batches_of(loader: Any, *, poisson: bool = False) -> LoaderBatches:
    """Return the batches of one epoch of a loader.

    Parameters
    ----------
    loader : DataLoader
        Of PyTorch, or Opacus' `DPDataLoader`.
    poisson : bool
        Whether Opacus' `make_private` replaces it by Poisson samples.

    Raises
    ------
    ArgumentError
        If it is no loader.
    UnsupportedError
        If its sampler is none that is known here, or its records are not counted.
    """
    missing = [name for name in _NEEDED if not hasattr(loader, name)]
    if missing:
        raise ArgumentError(
            "from_loader needs the number of records or a DataLoader, got "
            f"{type(loader).__name__} without {missing[0]}; give n and batch_size"
        )
    if type(loader.batch_sampler).__name__ in _OF_OPACUS:
        return _of_opacus(loader)
    if loader.batch_size is None or type(loader.batch_sampler).__name__ != "BatchSampler":
        raise UnsupportedError(
            "a loader must make its batches by batch_size, got one with a batch sampler of its own "
            f"({type(loader.batch_sampler).__name__}); describe it by n and batch_size, or account "
            "for its sampler with dpsub.account"
        )
    return _of_sampler(loader, poisson)


def _of_opacus(loader: Any) -> LoaderBatches:
    """Return the Poisson samples of Opacus' loader, on one rank or on several: each record is in a
    step at one rate."""
    sampler = loader.batch_sampler
    rate = checks.real("sample_rate", sampler.sample_rate, above=0, at_most=1)
    n = getattr(sampler, "total_size", None) or sampler.num_samples
    return LoaderBatches(n=_count(n), size=1, order="poisson", rate=rate, of_rate=len(sampler))


def _of_sampler(loader: Any, poisson: bool) -> LoaderBatches:
    sampler = loader.sampler
    kind = type(sampler).__name__
    found: dict[str, Any] = {"size": loader.batch_size, "drop_last": bool(loader.drop_last)}
    if poisson:
        n = _len(loader.dataset, "dataset")
        return LoaderBatches(n=n, size=loader.batch_size, order="poisson", of_rate=len(loader))
    if kind == "DistributedSampler":
        return LoaderBatches(
            n=_len(sampler.dataset, "dataset"),
            order="shuffle" if sampler.shuffle else "fixed",
            ranks=sampler.num_replicas,
            drop_uneven=bool(sampler.drop_last),
            **found,
        )
    if kind == "WeightedRandomSampler":
        return _of_weights(sampler, found)
    # a subset keeps its records
    n = _len(getattr(sampler, "indices", loader.dataset), "sampler")
    if kind == "SequentialSampler":
        return LoaderBatches(n=n, order="fixed", **found)
    if kind == "SubsetRandomSampler":
        return LoaderBatches(n=n, order="shuffle", **found)
    if kind != "RandomSampler":
        raise UnsupportedError(
            "a loader must draw by a sampler of PyTorch that is known here (RandomSampler, "
            "SequentialSampler, SubsetRandomSampler, WeightedRandomSampler or "
            "DistributedSampler), got "
            f"{kind}; describe its batches by n and batch_size, if they are drawn as one of these"
        )
    if _count(sampler.num_samples) != n:
        raise UnsupportedError(
            f"an epoch must draw as many records as there are, {n}, got num_samples = "
            f"{sampler.num_samples}; drop num_samples, and give steps for a run that stops earlier"
        )
    return LoaderBatches(n=n, order="replacement" if sampler.replacement else "shuffle", **found)


def _of_weights(sampler: Any, found: dict[str, Any]) -> LoaderBatches:
    if not sampler.replacement:
        raise UnsupportedError(
            "no bound is proved for weighted draws without replacement, got replacement = False; "
            "draw with replacement"
        )
    weights = checks.finite_array("weights", sampler.weights, ndim=1)
    largest = WeightedWr.of_weights(found["size"], weights).largest_weight
    return LoaderBatches(
        n=_count(sampler.num_samples),
        order="replacement",
        largest_weight=largest,
        n_weights=weights.size,
        **found,
    )


def _len(records: Any, name: str) -> int:
    try:
        return len(records)
    except TypeError:
        raise UnsupportedError(
            f"the records of a loader must be counted, got a {name} without a length "
            f"({type(records).__name__}); describe it by n and batch_size"
        ) from None


def _count(value: Any) -> int:
    return checks.integer("n", value, at_least=1)
