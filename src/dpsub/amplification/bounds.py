"""Amplification bounds by sampler, relation between samples and relation between data sets.

A formula gives delta'(epsilon') of one release. `BOUNDS` lists where each one holds, `NONE` why
there is none, and `translate` looks them up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.amplification.theorem import amplified_epsilon, amplify, base_epsilon
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.noise.base import Profile, nonnegative
from dpsub.noise.profiles import BlackBoxGroups, PairedSteps
from dpsub.relations import Relation
from dpsub.sampling.laws import MultiplicityLaw, log_binomial

LARGEST = 10_000_000
"""Largest size over which a bound sums: arrays of that length are kept in memory."""
_WORDS = {
    Relation.ADD_REMOVE: "adding or removing a record",
    Relation.SUBSTITUTE: "substituting a record",
    Relation.ZERO_OUT: "zeroing a record",
}


@dataclass(frozen=True)
class DeclaredProfile:
    """A base profile with the neighbouring relations between samples for which it is proved.

    There is at least one relation. The group profiles must hold for the same relations.
    """

    profile: Profile
    relations: frozenset[Relation]

    def __post_init__(self) -> None:
        relations = frozenset(Relation(name) for name in self.relations)
        if not relations:
            raise ArgumentError(
                "a base profile must hold for a relation between samples, got none; declare "
                "add_remove or substitute"
            )
        object.__setattr__(self, "relations", relations)

    @classmethod
    def of(cls, profile: Profile, *relations: Relation) -> DeclaredProfile:
        """Return `profile` declared for `relations`."""
        return cls(profile, frozenset(relations))


@dataclass(frozen=True, eq=False)
class Bound:
    """Upper bound on the privacy profile of one release of a subsampled mechanism.

    `translate` makes it. Composing its points naively is valid, but rarely tight.
    """

    name: str  # theorem of the paper, or how the bound follows from it
    sampler: str  # "poisson", "wor" or "wr"
    base_relation: Relation  # between samples, for which the base profile must hold
    relation: Relation  # between data sets, for which the result holds
    eta: float  # largest total variation distance between samples of neighbouring data sets
    # number of copies of the record in which neighbours differ
    law: MultiplicityLaw = field(repr=False)
    # delta' from this bound, a base profile and a flat array of epsilon' >= 0; eta > 0
    formula: Formula = field(repr=False)
    n: int = 0  # size of the data set where the formula needs it
    remark: str = ""  # on the sizes that the caller gave

    def delta(self, base: DeclaredProfile, epsilon_amplified: ArrayLike) -> np.ndarray:
        """Return delta'(epsilon') at `epsilon_amplified` >= 0, an upper bound of the same shape.

        UnsupportedError if the base profile was declared for another relation.
        """
        if self.base_relation not in base.relations:
            declared = " and ".join(sorted(_WORDS[name] for name in base.relations))
            raise UnsupportedError(
                f"{self.name} needs a base profile for "
                f"{_WORDS[self.base_relation]}, got one for "
                f"{declared}; declare what holds, or ask for another bound"
            )
        target = nonnegative("epsilon_amplified", epsilon_amplified)
        if self.eta == 0:
            return np.zeros(target.shape)[()]
        delta = np.minimum(self.formula(self, base.profile, np.atleast_1d(target)), 1.0)
        # A profile that never reaches 0 can only underflow to it: an upper bound must not.
        if math.isinf(float(base.profile.epsilon(0.0))):
            delta = np.maximum(delta, np.finfo(float).tiny)
        return delta.reshape(target.shape)[()]

    def epsilon_base(self, epsilon_amplified: ArrayLike) -> np.ndarray:
        """Return the base epsilon with epsilon' = log(1 + eta (exp(epsilon) - 1)); eta above 0."""
        return base_epsilon(epsilon_amplified, self.eta)

    def epsilon_amplified(self, epsilon: ArrayLike) -> np.ndarray:
        """Return epsilon' of a base epsilon; eta above 0."""
        return amplified_epsilon(epsilon, self.eta)


Formula = Callable[[Bound, Profile, np.ndarray], np.ndarray]


def _by_law(bound: Bound, profile: Profile, target: np.ndarray) -> np.ndarray:
    """delta' = sum over l >= 1 of P(L = l) delta_l(epsilon). Balle, Theorems 8 to 11; attained."""
    return amplify(bound.law, profile, bound.epsilon_base(target)).delta_amplified


def _in_pairs(bound: Bound, profile: Profile, target: np.ndarray) -> np.ndarray:
    """The bound of `_by_law` from a profile for adding and removing."""
    # A substitution between samples is a removal and an addition: l becomes 2 l.
    return _by_law(bound, PairedSteps(profile), target)


def _theorem_14(bound: Bound, profile: Profile, target: np.ndarray) -> np.ndarray:
    """Poisson sampling of n records, one substituted, from a base profile for substitution (balle,
    Theorem 14).

    With beta = exp(epsilon' - epsilon), g_k = C(n - 1, k - 1) gamma^(k - 1) (1 - gamma)^(n - k) and
    epsilon_k = epsilon + log(gamma / (1 - gamma) (n / k - 1)), negative for large k,
    delta'(epsilon') is at most gamma beta delta(epsilon) + gamma (1 - beta) (sum over k = 1..n-1 of
    g_k delta(epsilon_k) + g_n). Not tight: `_given_the_size` is never larger.
    """
    if bound.eta == 1:
        return profile.delta(target)
    base = bound.epsilon_base(target)
    log_weights, odds = _sample_sizes(bound)
    # A sample of all n records has no sample without the record to compare with: its delta is 1.
    other_sizes = np.full(base.shape, math.exp(float(log_weights[-1])))
    other_sizes += _expected_delta(
        profile, log_weights[:-1], lambda block: base[:, np.newaxis] + odds[block]
    )
    log_beta = target - base
    same_size = np.exp(log_beta) * profile.delta(base)
    return bound.eta * (same_size - np.expm1(log_beta) * np.minimum(other_sizes, 1.0))


def _given_the_size(bound: Bound, profile: Profile, target: np.ndarray) -> np.ndarray:
    """The bound of `_theorem_14`, with samples of each size compared before convexity is used.

    The order of these two steps is ours, not the paper's.

        delta'(epsilon') <= gamma sum over k = 1..n of g_k delta(e_k),
        exp(e_k) = alpha' + (alpha - alpha') gamma / (1 - gamma) (n / k - 1),  alpha = e^epsilon,
        alpha' = e^epsilon'.

    By balle, Theorem 2, the loss is gamma D_alpha(omega1 K || (1 - beta) omega0 K + beta omega1'
    K). Given the size k, the second law is a mixture of samples one substitution away from those of
    omega1, of total weight exp(e_k) / alpha relative to g_k: one more joint convexity gives
    delta(e_k). The bound is attained by the mechanism that shows the size of its sample and
    randomised membership of one record.
    """
    if bound.eta == 1:
        return profile.delta(target)
    base = bound.epsilon_base(target)
    log_weights, odds = _sample_sizes(bound)
    with np.errstate(divide="ignore"):
        # log(alpha / alpha' - 1)
        log_excess = np.log(np.expm1(base - target))

    def orders(block: slice) -> np.ndarray:
        return target[:, np.newaxis] + np.logaddexp(0.0, log_excess[:, np.newaxis] + odds[block])

    # e_n = epsilon'
    full_sample = math.exp(float(log_weights[-1])) * profile.delta(target)
    return bound.eta * (_expected_delta(profile, log_weights[:-1], orders) + full_sample)


def _sample_sizes(bound: Bound) -> tuple[np.ndarray, np.ndarray]:
    """log g_k for k = 1..n and epsilon_k - epsilon for k = 1..n - 1; for 0 < gamma < 1."""
    k = np.arange(1, bound.n + 1)
    log_odds = math.log(bound.eta) - math.log1p(-bound.eta)
    log_weights = log_binomial(k - 1, bound.n - 1, bound.eta)
    return log_weights, log_odds + np.log(bound.n / k[:-1] - 1)


def _expected_delta(
    profile: Profile, log_weights: np.ndarray, orders: Callable[[slice], np.ndarray]
) -> np.ndarray:
    """Sum over k of exp(log_weights[k]) delta(orders[k]), in blocks to limit the memory."""
    total: np.ndarray = np.zeros(1)
    for first in range(0, log_weights.size, 4096):
        block = slice(first, first + 4096)
        log_terms = log_weights[block] + profile.log_delta(orders(block))
        total = total + np.exp(log_terms).sum(axis=1)
    return total


def pure_epsilon(epsilon: ArrayLike, rate: float) -> np.ndarray:
    """Return log((1 - gamma + gamma exp(epsilon)) / (1 - gamma + gamma exp(-epsilon))), gamma =
    `rate` above 0.

    The exact largest loss of Poisson sampling when a record is substituted, for (epsilon, 0)-DP
    bases under add_remove.
    """
    order = nonnegative("epsilon", epsilon)
    # Infinite, a trivial bound, where gamma = 1 and exp(-epsilon) is lost in rounding.
    with np.errstate(divide="ignore"):
        return (amplified_epsilon(order, rate) - np.log1p(rate * np.expm1(-order)))[()]


def _on_triples(bound: Bound, profile: Profile, target: np.ndarray) -> np.ndarray:
    """Poisson sampling, one record substituted, from a base profile for adding and removing.

    This is the smallest of three bounds.

    Samples without the record, with it, and with its substitute come in triples y, y + v, y + v' of
    equal weight, one step and two steps apart (balle, Theorems 2 and 8 and Section 3 on groups; the
    combination is ours):

    - by advanced joint convexity, gamma ((1 - beta) delta(epsilon) + beta delta_2(epsilon));
    - two steps of the amplified profile: (exp(epsilon') - 1) / (exp(epsilon'/2) - 1)
      delta'_R(epsilon'/2);
    - for a base that is (epsilon0, 0)-DP, 0 from `pure_epsilon` on, which is exact for the class of
      such mechanisms.
    """
    base = bound.epsilon_base(target)
    log_beta = target - base
    one_step = profile.delta(base)
    two_steps = np.exp(profile.group_log_delta(base, 2))
    by_convexity = bound.eta * (np.exp(log_beta) * two_steps - np.expm1(log_beta) * one_step)
    amplified_groups = BlackBoxGroups(_Amplified(bound, profile))
    by_groups = np.exp(amplified_groups.group_log_delta(target, 2))
    delta = np.minimum(by_convexity, by_groups)
    pure = float(profile.epsilon(0.0))
    if math.isfinite(pure):
        delta = np.where(target >= pure_epsilon(pure, bound.eta), 0.0, delta)
    return delta


@dataclass(frozen=True)
class _Amplified(Profile):
    """Theorem 8 as a profile, at epsilon >= 0."""

    bound: Bound
    base: Profile

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(_by_law(self.bound, self.base, np.asarray(epsilon, dtype=float)))


R, S = Relation.ADD_REMOVE, Relation.SUBSTITUTE
_PAIRS = "with two steps a substitution"

# (sampler, base relation, target relation) -> (name of the bound, its formula)
BOUNDS: dict[tuple[str, Relation, Relation], tuple[str, Formula]] = {
    ("poisson", R, R): ("Theorem 8", _by_law),
    ("poisson", R, S): ("Theorem 2 on triples of samples", _on_triples),
    ("poisson", S, S): ("Theorem 2 given the size", _given_the_size),
    ("wor", S, S): ("Theorem 9", _by_law),
    ("wor", R, S): (f"Theorem 9 {_PAIRS}", _in_pairs),
    ("wr", S, S): ("Theorem 10", _by_law),
    ("wr", R, S): (f"Theorem 10 {_PAIRS}", _in_pairs),
    # Proved at data sets of the declared size n alone: it is no guarantee for data sets of all
    # sizes.
    ("wr", S, R): ("Theorem 11", _by_law),
    ("wr", R, R): (f"Theorem 11 {_PAIRS}", _in_pairs),
}
NONE = {
    (
        "poisson",
        S,
        R,
    ): "a mechanism that is private under substitution may reveal the size of its sample, "
    "and the size of a Poisson sample reveals an added record; use a base profile for "
    "add_remove",
} | dict.fromkeys(
    [("wor", S, R), ("wor", R, R)],
    "the inclusion probability m/n depends on the size n of the data set, which adding "
    "a record changes; use the target substitute",
)
SAMPLERS = ("poisson", "wor", "wr")


def translate(
    sampler: str,
    base: Relation | str,
    target: Relation | str,
    *,
    rate: float | None = None,
    n: int | None = None,
    m: int | None = None,
) -> Bound:
    """Return the best available bound for a sampler, a base relation and a target relation (balle,
    Table 1).

    Parameters
    ----------
    sampler : "poisson", "wor" or "wr".
    base : relation between samples, for which the base profile is known.
    target : relation between data sets.
    rate : gamma of Poisson sampling, in [0, 1]. For "wr" without m it gives m = rate n; see the
        bound's `remark`.
    n : size of the data set, a public number: at least 1 (2 for "wr" to add_remove), at most 10^7
        for "poisson".
    m : size of the sample: 1 to n for "wor", 0 to 10^7 for "wr", where it may exceed n.

    Raises
    ------
    UnsupportedError
        If no bound exists; the message says why.

    Examples
    --------
    >>> bound = translate("wor", "substitute", "substitute", n=1000, m=10)
    >>> bound.name, round(bound.eta, 12)
    ('Theorem 9', 0.01)
    >>> translate("wor", "substitute", "add_remove", n=1000, m=10)
    Traceback (most recent call last):
    dpsub.errors.UnsupportedError: no bound takes wor from substitute to add_remove: ...
    """
    key = (
        checks.one_of("sampler", sampler, SAMPLERS),
        _relation("base", base),
        _relation("target", target),
    )
    if key in NONE:
        raise UnsupportedError(
            f"no bound takes {key[0]} from {key[1].value} to {key[2].value}: {NONE[key]}"
        )
    name, formula = BOUNDS[key]
    share = None
    if sampler == "wr" and m is None and rate is not None and n is not None:
        share = checks.real("rate", rate, at_least=0, at_most=1)
        m = checks.integer("m = rate n", round(share * checks.integer("n", n, at_least=1), 9))
    given = {"rate": rate, "n": n, "m": m}
    needs = (
        ("n", "m")
        if sampler != "poisson"
        else ("rate", "n")
        if formula is _given_the_size
        else ("rate",)
    )
    missing = [size for size in needs if given[size] is None]
    if missing:
        raise ArgumentError(
            f"the bound for {key[0]} from {key[1].value} to {key[2].value} needs "
            f"{' and '.join(needs)}, got no {missing[0]}; declare it as a public "
            "number"
        )
    if sampler == "poisson":
        gamma = checks.real("rate", rate, at_least=0, at_most=1)
        size = checks.integer("n", n, at_least=1, at_most=LARGEST) if "n" in needs else 0
        return Bound(name, *key, gamma, MultiplicityLaw.single(gamma), formula, size)
    total = checks.integer("n", n, at_least=2 if key[::2] == ("wr", R) else 1)
    if sampler == "wor":
        drawn = checks.integer("m", m, at_least=1, at_most=total, at_most_name="n")
        law = MultiplicityLaw.single(drawn / total)
    else:
        drawn = checks.integer("m", m, at_least=0, at_most=LARGEST)
        law = MultiplicityLaw(log_binomial(np.arange(drawn + 1), drawn, 1 / total))
    eta = min(law.eta, 1.0)
    remark = (
        ""
        if share is None
        else (
            f"the inclusion probability of {drawn} draws with replacement from {total} is "
            f"{eta:.6g}, not the rate {share:g}; the former is used"
        )
    )
    return Bound(name, *key, eta, law, formula, remark=remark)


def theorem_14(rate: float, n: int) -> Bound:
    """Return the printed bound of Poisson sampling under substitution.

    `translate` gives a smaller one.
    """
    better = translate("poisson", S, S, rate=rate, n=n)
    return replace(better, name="Theorem 14", formula=_theorem_14)


def _relation(name: str, value: Relation | str) -> Relation:
    return Relation(checks.one_of(f"{name} relation", str(value), [R.value, S.value]))
