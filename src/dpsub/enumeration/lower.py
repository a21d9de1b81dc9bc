"""The lower bound by membership, with its hypotheses tested on a finite design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsub import checks
from dpsub.enumeration.samples import Dataset
from dpsub.errors import UnsupportedError
from dpsub.profiles import MembershipProfile

Design = Mapping[Dataset, Mapping[Dataset, float]]
"""Law of the sample for each data set."""
_EQUAL = 1e-12


@dataclass(frozen=True)
class MembershipLoss:
    """What randomised membership of one record loses under a sampler, beside the lemma's value.

    Attributes
    ----------
    eta : float
        Largest total variation distance between samples of neighbours.
    inclusion : float
        Largest probability that the record is in the sample of a data set that holds it and has a neighbour without.
    natural : bool
        True if every record of a data set can be in its sample, and no other one can.
    exact : float
        The exact profile of the subsampled mechanism at epsilon'.
    claimed : float
        eta psi_p(epsilon).
    """

    eta: float
    inclusion: float
    natural: bool
    exact: float
    claimed: float

    @property
    def applies(self) -> bool:
        """Whether the corrected lemma covers the design: natural, and the inclusion probability reaches eta."""
        return self.natural and abs(self.inclusion - self.eta) <= _EQUAL

    def lower_bound(self) -> float:
        """Return the lemma's value, a lower bound on what any analysis of the sampler alone can promise.

        Raises
        ------
        UnsupportedError
            If a hypothesis of the corrected lemma fails.
        """
        if not self.natural:
            raise UnsupportedError("the lower bound by membership needs a natural sampler, got one that leaves out a "
                                   "record for good or adds one; check its law")
        if not self.applies:
            raise UnsupportedError(f"the lower bound by membership needs an inclusion probability of eta = "
                                   f"{self.eta:g}, got {self.inclusion:g}; the printed lemma omits this and is false")
        return self.claimed


def membership_loss(
    design: Design, pairs: Sequence[tuple[Dataset, Dataset]], record: int, keep_probability: float, epsilon: float
) -> MembershipLoss:
    """Return the exact loss of randomised membership of `record` over neighbouring data sets, with the lemma's value.

    Parameters
    ----------
    design : mapping
        Law of the sample for each data set.
    pairs : sequence
        Neighbouring data sets; both orders are looked at.
    record : int
        The record asked about.
    keep_probability : float
        p, at least 1/2.
    epsilon : float
        Base epsilon in nats, at least 0.

    Raises
    ------
    ArgumentError
        If p lies below 1/2 (report the flipped bit instead, which has 1 - p) or epsilon below 0.

    References
    ----------
    balle, Lemma 12, with the hypothesis that it omits.
    """
    p = checks.real("keep_probability", keep_probability, at_least=0.5, at_most=1)
    order = checks.real("epsilon", epsilon, at_least=0)
    eta, inclusion = 0.0, 0.0
    shares = {data: sum(q for sample, q in law.items() if sample[record]) for data, law in design.items()}
    for x, other in pairs:
        eta = max(eta, _distance(design[x], design[other]))
        for one, two in ((x, other), (other, x)):
            if one[record] and not two[record]:
                inclusion = max(inclusion, shares[one])
    alpha = 1 + eta * np.expm1(order)
    exact = 0.0
    for one, two in [*pairs, *((b, a) for a, b in pairs)]:
        yes = [(1 - p) + (2 * p - 1) * shares[data] for data in (one, two)]
        exact = max(exact, max(0.0, yes[0] - alpha * yes[1]) + max(0.0, (1 - yes[0]) - alpha * (1 - yes[1])))
    natural = all(_natural(data, law) for data, law in design.items())
    return MembershipLoss(eta, inclusion, natural, exact, eta * float(MembershipProfile(p).delta(order)))


def _distance(one: Mapping[Dataset, float], other: Mapping[Dataset, float]) -> float:
    return sum(max(0.0, probability - other.get(sample, 0.0)) for sample, probability in one.items())


def _natural(data: Dataset, law: Mapping[Dataset, float]) -> bool:
    drawn = np.array([sample for sample, probability in law.items() if probability > 0]).sum(axis=0) > 0
    return bool((drawn == (np.array(data) > 0)).all())
