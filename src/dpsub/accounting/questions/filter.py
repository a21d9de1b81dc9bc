"""A budget for releases that are chosen from past outputs: their moments at one order, fixed before
the first of them, stay below it (docs/proofs/composition.md, Theorem 88)."""

from __future__ import annotations

import math
from typing import Self, Unpack

import numpy as np

from dpsub import checks
from dpsub.accounting.questions.first_ends import SLACK
from dpsub.accounting.questions.first_upper import ORDERS, conversion, log_moments
from dpsub.accounting.release import Release, ReleaseKeywords
from dpsub.accounting.schemes import case_of
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation, relation_named
from dpsub.sampling import Schedule
from dpsub.sampling.base import Sampler, StagedSampler


class Filter:
    """Whether releases may follow whose rates, noise and number are chosen from past outputs, for
    one epsilon and delta of all that is ever released.

    Each release is asked for before it is made: `record` enters it, or refuses it. Releases are
    Poisson samples, or all records (`Poisson(1.0)`), with Gaussian noise. A `Ledger` is closer to
    the truth where its releases were fixed in advance.

    Parameters
    ----------
    epsilon : float
        In nats, above 0.
    delta : float
        Between 0 and 1.
    order : int
        Of the moments, one of 2 to 16 or a larger one up to 1024; `planned` finds one.
    adjacency : str
        The relation of the guarantee; moments of records that are replaced (substitute) are bounded
        loosely.

    Raises
    ------
    ArgumentError
        If a parameter is out of range, or no moment of this order is small enough for the target.

    References
    ----------
    Feldman and Zrnic, Individual privacy accounting via a Renyi filter, NeurIPS 2021.

    Examples
    --------
    >>> import dpsub
    >>> plan = dpsub.Poisson(0.01)
    >>> budget = dpsub.Filter.planned(plan, noise_multiplier=1.0, epsilon=2.0, delta=1e-5)
    >>> budget.order
    8
    >>> budget.record(plan, noise_multiplier=1.0, steps=200)
    >>> # the outputs so far have shown that the next rate should be larger
    >>> budget.allows(dpsub.Poisson(0.02), noise_multiplier=1.5, steps=200)
    True
    >>> budget.allows(dpsub.Poisson(0.5), noise_multiplier=1.0, steps=200)
    False
    >>> 0 < budget.spent < 1
    True
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        order: int,
        adjacency: str | Relation = "add_remove",
    ) -> None:
        self.epsilon = checks.real("epsilon", epsilon, above=0)
        self.delta = checks.real("delta", delta, above=0, below=1)
        self.adjacency = relation_named(adjacency)
        self.order = checks.integer("order", order, at_least=2)
        known = ORDERS.tolist()
        if self.order not in known:
            near = min(known, key=lambda each: abs(each - self.order))
            raise ArgumentError(
                f"order must be one whose moments are known, got {self.order}; use {near}"
            )
        self._place = known.index(self.order)
        self._budget = float(_budgets(self.epsilon, self.delta)[self._place])
        if not self._budget > 0:
            raise ArgumentError(
                f"epsilon = {self.epsilon:g} at delta = {self.delta:g} leaves no budget, got order "
                f"= {self.order}; take a larger one"
            )
        self._spent: list[float] = []

    @classmethod
    def planned(
        cls,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        *,
        epsilon: float,
        delta: float,
        adjacency: str | Relation = "add_remove",
        **described: Unpack[ReleaseKeywords],
    ) -> Self:
        """Return the filter with the order that allows most releases of a kind that is planned,
        with parameters as in `account`; others may be made.

        Raises
        ------
        ArgumentError
            If those that are planned are too many.
        """
        release, relation = Release.of(sampler, n, **described), relation_named(adjacency)
        costs = _costs(release, relation)
        budgets = _budgets(
            checks.real("epsilon", epsilon, above=0),
            checks.real("delta", delta, above=0, below=1),
        )
        best = int(np.argmax(budgets / costs))
        if not budgets[best] >= costs[best]:
            raise ArgumentError(
                f"the releases that are planned must stay within epsilon = {epsilon:g} at delta = "
                f"{delta:g}, got {release}; take fewer steps or more noise"
            )
        order = int(ORDERS[best])
        return cls(epsilon=epsilon, delta=delta, order=order, adjacency=relation)

    @property
    def spent(self) -> float:
        """Share of the budget that is spent, rounded up."""
        return math.fsum(self._spent) * (1 + SLACK) / self._budget

    def allows(
        self,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        **described: Unpack[ReleaseKeywords],
    ) -> bool:
        """Return whether these releases may be made, with parameters as in `account`. It spends
        nothing."""
        cost = self._cost(Release.of(sampler, n, **described))
        return math.fsum([*self._spent, cost]) * (1 + SLACK) <= self._budget

    def record(
        self,
        sampler: Sampler | Schedule | Release,
        n: int | None = None,
        **described: Unpack[ReleaseKeywords],
    ) -> None:
        """Enter releases that are about to be made.

        Raises
        ------
        ArgumentError
            If they would exceed the budget; nothing is entered.
        UnsupportedError
            If they are no Poisson samples with Gaussian noise.
        """
        release = Release.of(sampler, n, **described)
        if not self.allows(release):
            raise ArgumentError(
                f"releases must stay within epsilon = {self.epsilon:g} at delta = {self.delta:g}, "
                f"got {release}, with {self.spent:.4g} of the budget spent; take fewer steps or "
                "more noise"
            )
        self._spent.append(self._cost(release))

    def _cost(self, release: Release) -> float:
        return float(_costs(release, self.adjacency)[self._place])


def _budgets(epsilon: float, delta: float) -> np.ndarray:
    """Logarithms of the moments that imply delta at epsilon, one for each order, rounded down."""
    budgets = math.log(delta) + (ORDERS - 1) * epsilon - conversion(ORDERS)
    return np.asarray(budgets - SLACK * (1 + np.abs(budgets)))


def _costs(release: Release, relation: Relation) -> np.ndarray:
    """Logarithms of the moments of these releases, one for each order, rounded up."""
    kinds: tuple[str, ...] = ()
    if isinstance(release.sampler, StagedSampler):
        kinds = release.chain().kinds
    is_plain = release.group == release.releases_per_sample == 1
    is_plain = is_plain and release.records_per_user is None and release.strategy is None
    if kinds != ("poisson",) or release.mechanism != "gaussian" or not is_plain:
        raise UnsupportedError(
            "releases that are chosen from past outputs are covered for fresh Poisson samples with "
            f"Gaussian noise and single records, got {release}; use dpsub.Poisson(rate), or a "
            "Ledger for releases that are fixed in advance"
        )
    return log_moments(case_of(release, relation), release, relation)
