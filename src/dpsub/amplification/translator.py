"""Which bound covers a sampler, a relation between samples and a relation between data sets, or why none does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from dpsub import checks
from dpsub.amplification.bounds import (
    Bound,
    PoissonAddRemove,
    ThroughPairs,
    WorSubstitute,
    WrAddRemove,
    WrSubstitute,
)
from dpsub.amplification.poisson_substitution import PoissonSubstituteBySize, PoissonSubstituteFromAddRemove
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation

R, S = Relation.ADD_REMOVE, Relation.SUBSTITUTE

# (sampler, base relation, target relation) -> (what makes the bound, the sizes that it needs)
BOUNDS: dict[tuple[str, Relation, Relation], tuple[Callable[..., Bound], tuple[str, ...]]] = {
    ("poisson", R, R): (PoissonAddRemove, ("rate",)),
    ("poisson", R, S): (PoissonSubstituteFromAddRemove, ("rate",)),
    ("poisson", S, S): (PoissonSubstituteBySize, ("rate", "n")),
    ("wor", S, S): (WorSubstitute, ("n", "m")),
    ("wor", R, S): (lambda n, m: ThroughPairs(WorSubstitute(n, m)), ("n", "m")),
    ("wr", S, S): (WrSubstitute, ("n", "m")),
    ("wr", R, S): (lambda n, m: ThroughPairs(WrSubstitute(n, m)), ("n", "m")),
    ("wr", S, R): (WrAddRemove, ("n", "m")),
    ("wr", R, R): (lambda n, m: ThroughPairs(WrAddRemove(n, m)), ("n", "m")),
}
NONE = {
    ("poisson", S, R): "a mechanism that is private under substitution may release the size of its sample, and the "
    "size of a Poisson sample tells when a record is added; use a base profile for add_remove",
    ("wor", S, R): "the inclusion probability m/n needs the size n of the data set, which adding a record changes; "
    "take the target substitute",
    ("wor", R, R): "the inclusion probability m/n needs the size n of the data set, which adding a record changes; "
    "take the target substitute",
}
SAMPLERS = ("poisson", "wor", "wr")


def translate(
    sampler: str, base: Relation | str, target: Relation | str, *, rate: float | None = None, n: int | None = None,
    m: int | None = None,
) -> Bound:
    """Return the best available bound for a sampler, a base relation and a target relation.

    Parameters
    ----------
    sampler : {"poisson", "wor", "wr"}
        The sampler.
    base : Relation
        Relation between samples for which the base mechanism's profile is known.
    target : Relation
        Relation between data sets for which a guarantee is wanted.
    rate : float, optional
        gamma of Poisson sampling. Where m of sampling with replacement is not given, m = rate n, with a warning that
        the inclusion probability is another number.
    n : int, optional
        Size of the data set, a public number.
    m : int, optional
        Size of the sample.

    Returns
    -------
    Bound
        Its `name` says by which theorem.

    Raises
    ------
    UnsupportedError
        If no bound exists; the message says why.
    ArgumentError
        If a name is unknown, or a size is missing or out of range.

    References
    ----------
    balle, Table 1 and Theorem 14.

    Examples
    --------
    >>> bound = translate("wor", "substitute", "substitute", n=1000, m=10)
    >>> bound.name, round(bound.eta, 12)
    ('Theorem 9', 0.01)
    >>> translate("wor", "substitute", "add_remove", n=1000, m=10)
    Traceback (most recent call last):
    dpsub.errors.UnsupportedError: no bound takes wor from substitute to add_remove: ...
    """
    key = (checks.one_of("sampler", sampler, SAMPLERS), _relation("base", base), _relation("target", target))
    if key in NONE:
        raise UnsupportedError(f"no bound takes {key[0]} from {key[1].value} to {key[2].value}: {NONE[key]}")
    make, needs = BOUNDS[key]
    given: dict[str, Any] = {"rate": rate, "n": n, "m": m}
    if sampler == "wr" and m is None and rate is not None and n is not None:
        given["m"] = _draws(rate, n)
    missing = [name for name in needs if given[name] is None]
    if missing:
        raise ArgumentError(f"the bound for {key[0]} from {key[1].value} to {key[2].value} needs "
                            f"{' and '.join(needs)}, got no {missing[0]}; declare it as a public number")
    return make(**{name: given[name] for name in needs})


def _relation(name: str, value: Relation | str) -> Relation:
    return Relation(checks.one_of(f"{name} relation", str(value), [relation.value for relation in Relation]))


def _draws(rate: float, n: int) -> int:
    share = checks.real("rate", rate, at_least=0, at_most=1)
    m = checks.integer("m = rate n", round(share * checks.integer("n", n, at_least=1), 9))
    eta = WrSubstitute(n, m).eta
    warnings.warn(f"the inclusion probability of {m} draws with replacement from {n} is {eta:.6g}, not the rate "
                  f"{share:g}; the former is used", stacklevel=3)
    return m
