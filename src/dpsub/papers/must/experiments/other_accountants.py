"""Other accountants, if they are installed: what they answer to a question about subsampled Gaussian noise.

They are no requirement of this package, so that they are imported only when asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType

from dpsub.errors import UnsupportedError

Ends = tuple[float, float]
"""Lower and upper answer; NaN for an end that a method does not give."""


def dots(rate: float, s: float, k: int, delta: float, adjacency: str) -> Ends:
    """dp-accounting's privacy loss distributions: the upper end connects the dots, the lower one rounds losses down."""
    pld = _module("dp_accounting.pld.privacy_loss_distribution", "dp-accounting")
    relation = {"add_remove": "ADD_OR_REMOVE_ONE", "substitute": "REPLACE_ONE"}[adjacency]
    ends = [
        pld.from_gaussian_mechanism(
            s, pessimistic_estimate=upper, use_connect_dots=upper, sampling_prob=rate,
            neighboring_relation=pld.NeighborRel[relation],
        )
        for upper in (False, True)
    ]  # fmt: skip
    low, high = (float(end.self_compose(k).get_epsilon_for_delta(delta)) for end in ends)
    return low, high


def intervals(rate: float, s: float, k: int, delta: float, error: float) -> Ends:
    """prv-accountant's interval of epsilon, its own error of epsilon being `error`."""
    name = "prv-accountant"
    losses = _module("prv_accountant.privacy_random_variables", name)
    variable = losses.PoissonSubsampledGaussianMechanism(sampling_probability=rate, noise_multiplier=s)
    accountant = _module("prv_accountant", name).PRVAccountant(
        variable, max_self_compositions=k, eps_error=error, delta_error=delta / 1000
    )
    low, _, high = accountant.compute_epsilon(delta, k)
    return float(low), float(high)


def moments(n: int, m: int, s: float, k: int, delta: float) -> Ends:
    """dp-accounting's Rényi accountant for sampling without replacement, one record replaced."""
    name = "dp-accounting"
    events, rdp = _module("dp_accounting", name), _module("dp_accounting.rdp", name)
    step = events.SampledWithoutReplacementDpEvent(n, m, events.GaussianDpEvent(s))
    accountant = rdp.RdpAccountant(neighboring_relation=events.NeighboringRelation.REPLACE_ONE)
    return math.nan, float(accountant.compose(step, k).get_epsilon(delta))


def load() -> None:
    """Import what is installed, so that an answer that is timed does not pay for it."""
    for name, package in (
        ("dp_accounting.pld.privacy_loss_distribution", "dp-accounting"),
        ("dp_accounting.rdp", "dp-accounting"),
        ("prv_accountant", "prv-accountant"),
    ):
        with suppress(UnsupportedError):
            _module(name, package)


def answered(method: Callable[[], Ends]) -> tuple[Ends, str]:
    """Return what a method answers, or no answer and one sentence that says which package is not installed."""
    try:
        return method(), ""
    except UnsupportedError as reason:
        return (math.nan, math.nan), str(reason)


def _module(name: str, package: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        raise UnsupportedError(
            f"{package} is not installed (no module {problem.name}); install it to compare"
        ) from None
