"""The dominating profile of a chain of stages under substitution: reveal all stages but the last, one after another.

Setting.  Slots hold clipped records, |v| <= 1 in units of C.  Two slot vectors are compared that differ in j *marked*
slots, arbitrarily, and agree elsewhere.  B(a; N, j, stages) bounds H_a between the outputs of the remaining stages for
N slots of which j are marked, every order a >= 1; the wanted bound is B(a; n, 1, all stages).

*Base.*  A stage of m slots draws l marked ones with probability p_l.  Draw a *base* of m slots that knows nothing of l
and replace l of its entries by marked slots:

- with replacement: the base holds m independent uniform draws from the unmarked slots, and entries are replaced
  independently with probability j/N, each by an independent uniform marked slot;
- without replacement: the base holds the first m of a uniformly shuffled list of the unmarked slots, filled up with
  zero records if there are fewer than m; the last l entries are replaced by a uniform set of l marked slots.  As m - l
  unmarked slots are drawn in any case, no zero record is kept;
- Poisson: the base holds the unmarked slots that are drawn; l marked ones are *added*.

Given the base and l, the outputs on the two slot vectors are base + x and base + y, where |x|, |y|, |x - y| <= 2 l
(with Poisson |x|, |y| <= l), and the base's law does not depend on l.

*Last stage.*  Averaging over the base (joint convexity), B is the supremum of `group_lemma` at the law p.  The sum over
l >= 1 of p_l G(lift(a, eta), 2 l / s), eta = 1 - p_0, bounds it as well: by advanced joint convexity, since the output
for l = 0 is the base itself, at distance 2 l from the others; for one marked slot and no replacement it is exact.  With
Poisson the half-line argument gives the pair sum_l p_l N(l, s^2) against sum_l p_l N(-l, s^2).

*Earlier stages.*  Let J be the number of marked slots that the stage takes, pi_j its law, eta = 1 - pi_0.  The outputs
are P = pi_0 P_0 + sum pi_j P_j and Q with the same P_0 = Q_0.  By advanced joint convexity, with a' = lift(a, eta) and
b = a / a',

    H_a(P || Q) <= eta ( (1 - b) H_a'(P_1 || P_0) + b H_a'(P_1 || Q_1) ),   P_1 = sum_{j >= 1} (pi_j / eta) P_j.

P_j and Q_j come from the base with the same j entries replaced by marked slots; P_0 from the base itself.  All three
are
slot vectors that differ in j slots and agree elsewhere (positions do not matter: every stage treats slots alike), so
both divergences are at most sum_j (pi_j / eta) B(a'; m, j, later stages), and

    B(a; N, j0, stages) <= sum_{j >= 1} pi_j B(lift(a, eta); m, j, later stages).

Where pi_0 = 0 nothing is lifted and no base is needed.  For MUST.OW this is (b/n) h_{Bin(m, 1/b)}(lift(a, b/n)), for
MUST.WW eta_1 sum_j r_j h_{Bin(m, j/b)}(lift(a, eta_1)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsub.accountants.gaussian_orders import PROFILE_ERROR, gaussian_profile, log_lift
from dpsub.accountants.group_lemma import GroupLemma
from dpsub.accountants.mixture_pair import MixturePair
from dpsub.accountants.slot_chain import SlotChain, SlotStage
from dpsub.errors import UnsupportedError
from dpsub.multiplicity import MultiplicityLaw

_MINOR, _MINOR_OF_MANY = 1e-6, 1e-3
"""Branches of smaller probability, in chains of two and of more stages, get the bound without the supremum, which is
looser and much cheaper."""

MOST_TERMS = 6000
"""Combinations of counts, one for each stage, that a chain of many stages may have."""

_SPACING, _NEAREST, _LOG_LARGEST = 4e-3, 100, 750.0
"""Tables of the bound without the supremum: relative distance of their orders, points up to the smallest shift, end.

Chords raise it by parts in a thousand, deep in the tails by parts in a hundred; branches of small weight take it."""

_MOST_TAILS = 2**21
"""Normal tails that are worked on together."""

_LAW_ERROR = 1e-11
"""Relative error allowed for probabilities of counts."""


@dataclass(frozen=True, eq=False)
class ChainProfile:
    """H_a of a chain under substitution of one record, at orders a >= 1, rounded up.

    Attributes
    ----------
    chain : SlotChain
    scale : float
        s, noise multiplier.
    tail : float
        Counts of probability below this are charged as a sure loss.

    Raises
    ------
    UnsupportedError
        If a chain of three or more stages would take minutes.
    """

    chain: SlotChain
    scale: float
    tail: float = 1e-18

    def __post_init__(self) -> None:
        if len(self.chain.stages) > 2 and self._work(self.chain.n, 1, self.chain.stages, 1.0, 0) > MOST_TERMS:
            raise UnsupportedError(
                f"a chain of {len(self.chain.stages)} stages whose counts have more than {MOST_TERMS} likely "
                "combinations takes minutes a bound; take fewer stages or smaller ones"
            )

    def _work(self, n_slots: int, marked: int, stages: Sequence[SlotStage], weight: float, so_far: int) -> int:
        """Terms of the bound at one order; counting stops above `MOST_TERMS`."""
        law = stages[0].count_law(n_slots, marked)
        likely = np.flatnonzero(law[1:] * weight > self.tail) + 1
        if len(stages) == 1:
            return so_far + likely.size
        for j in likely:
            if so_far > MOST_TERMS:
                break
            so_far = self._work(stages[0].size, int(j), stages[1:], weight * float(law[j]), so_far)
        return so_far

    def __call__(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds at the given ln a >= 0, increasing, shape (n,)."""
        x = np.asarray(log_order, dtype=float)
        bound = self._bound(x, self.chain.n, 1, tuple(self.chain.stages), 1.0)
        if self._group_coupling:
            bound = np.minimum(bound, self._group_bound(x))
        return np.minimum(bound * (1 + _LAW_ERROR), 1.0)

    @property
    def _group_coupling(self) -> bool:
        """Whether Theorem 5's group bound is proved at the level of the whole chain (MUST.WW with b <= n)."""
        kinds = self.chain.kinds
        return kinds == ("with", "with") and self.chain.stages[0].size <= self.chain.n

    def _group_bound(self, x: np.ndarray) -> np.ndarray:
        """sum_l p_l G(lift(a, eta), 2 l / s) with the law of the whole chain.

        The coupling replaces the l copies of the record by copies of one other record, or by fresh draws, with the
        probabilities that make the result the sample without the record: h_j = 1 - (1 - j/b)^m, eta <= h_1 as b <= n.
        """
        law = self.chain.multiplicity
        return self._lifted_sum(x, law, 1.0)

    def _lifted_sum(self, x: np.ndarray, law: np.ndarray, weight: float) -> np.ndarray:
        kept = np.flatnonzero(law[1:] * weight > self.tail) + 1
        lost = float(np.delete(law, np.append(kept, 0)).sum())
        eta = min(1.0, float(law[1:].sum()) * (1 + _LAW_ERROR)) if law[0] > 0 else 1.0
        piece = max(1, _MOST_TAILS // max(1, kept.size))
        lifted, shifts = log_lift(x, eta)[:, None], 2 * kept[None, :] / self.scale
        sums = [gaussian_profile(lifted[at : at + piece], shifts) @ law[kept] for at in range(0, x.size, piece)]
        return np.concatenate(sums) + lost

    def _looked_up(self, x: np.ndarray, law: np.ndarray) -> np.ndarray:
        """`_lifted_sum` by chords between the orders of a table, one for all branches with the same law.

        The sum is convex in a, so chords between its upper bounds are upper bounds; it falls, so the last one holds
        beyond the table.
        """
        key = law.tobytes()
        if key not in self._tables:
            shifts = 2 * np.array([1, law.size - 1]) / self.scale
            # with ten deviations to go, the profile of the largest shift is below every tail
            end = min(shifts[1] * (shifts[1] / 2 + 10), _LOG_LARGEST)
            near = np.linspace(0, min(shifts[0], end), _NEAREST)
            far = near[-1] * np.exp(np.arange(1, math.ceil(math.log(end / near[-1]) / _SPACING) + 1) * _SPACING)
            orders = np.concatenate([near, far])
            self._tables[key] = orders, self._lifted_sum(orders, law, 1.0)
        orders, values = self._tables[key]
        left = np.minimum(np.searchsorted(orders, x, side="right"), orders.size - 1) - 1
        share = np.expm1(np.minimum(x, orders[-1]) - orders[left]) / np.expm1(orders[left + 1] - orders[left])
        return np.asarray(values[left] + share * (values[left + 1] - values[left]))

    @cached_property
    def _tables(self) -> dict[bytes, tuple[np.ndarray, np.ndarray]]:
        """Orders and values by law, as `_looked_up` has computed them."""
        return {}

    def _bound(
        self, x: np.ndarray, n_slots: int, marked: int, stages: tuple[SlotStage, ...], weight: float
    ) -> np.ndarray:
        law = stages[0].count_law(n_slots, marked)
        if len(stages) == 1:
            return self._last(x, stages[0], law, weight)
        inside = law[1:]
        # lifted orders fall with eta, profiles fall with orders: eta is rounded up
        eta = 1.0 if law[0] == 0 else min(1.0, float(inside.sum()) * (1 + _LAW_ERROR))
        lifted = log_lift(x, eta)
        total = np.zeros_like(x)
        for j in np.flatnonzero(inside) + 1:
            share = float(law[j])
            if share * weight <= self.tail:
                total += share
                continue
            total += share * self._bound(lifted, stages[0].size, int(j), stages[1:], weight * share)
        return np.minimum(total, 1.0)

    def _last(self, x: np.ndarray, stage: SlotStage, law: np.ndarray, weight: float) -> np.ndarray:
        if stage.kind == "poisson":
            return self._added(x, law)
        lifted = self._lifted_sum(x, law, weight) if len(self.chain.stages) <= 2 else self._looked_up(x, law)
        minor = _MINOR if len(self.chain.stages) <= 2 else _MINOR_OF_MANY
        if weight < minor or (stage.kind == "without" and law.size == 2):
            return lifted
        kept = np.where(law > self.tail / weight, law, 0.0)
        # the normal tail beyond sqrt(2 ln(1 / tail)) deviations is below the tail
        reach = max(9.0, math.sqrt(-2 * math.log(self.tail)))
        lemma = GroupLemma(kept, self.scale, reach)(x) + float((law - kept).sum())
        return np.minimum(np.minimum(lemma, lifted), 1.0)

    def _added(self, x: np.ndarray, law: np.ndarray) -> np.ndarray:
        """H_a of sum_l p_l N(l) against sum_l p_l N(-l), by its optimal half-line.

        The half-line found is off by `LOSS_TOLERANCE` in loss, so its value by at most that share of its mass.
        """
        with np.errstate(divide="ignore"):
            pair = MixturePair(MultiplicityLaw(np.log(law)), self.scale)
        t = pair.inverse_loss(x)
        above = pair.sf(t)
        return np.asarray(above - np.exp(x) * pair.sf_prime(t) + PROFILE_ERROR * above)

    @cached_property
    def eta(self) -> float:
        return float(self.chain.multiplicity[1:].sum())
