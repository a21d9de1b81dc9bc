"""Substitution of a record by way of a reference Q: for every split a = u w of an order

    H_a(P || P') <= H_u(P || Q) + u H_w(Q || P')

("Substitution" in docs/proofs/allocation.md, and Theorem 49). Both terms are those of an allocation
to k of t steps, which Theorem 27 cuts into k revealed blocks with one step of the record each; for
k = 1 there is one block of all steps. For secret groups they are those of Theorem 85.
"""

from allocation import (
    LogNormal,
    allocated,
    are_blocks,
    in_all_steps,
    in_turns,
    needed,
    single_step,
    sums_shortfall,
)
from balls import ZERO
from flint import arb
from law import Law, charge, composed, read_law
from theorems import Case, Theorem, held_against_chords, orders_from_one
from work import spend

from profiles import Order

SPLITS = 40  # halvings of the range of ln u


class ComposedProfile:
    """Profile of a product of powers of laws on one grid, and `charged` more at every order."""

    def __init__(self, laws: list[tuple[Law, int]], charged: arb, cut: arb) -> None:
        product, self.first, self.step = composed(laws, cut, upper=True)
        spend(2 * product.masses.length(), "lines of a profile")
        masses = product.masses.coeffs()
        # S and T of the losses from the i-th one on: the profile is the largest S - a T
        shrink = (-self.step).exp()
        ratio = (-self.first).exp() * shrink ** (len(masses) - 1)
        S, T = product.infinity + charged, ZERO
        self.lines = [(S, T)]
        for mass in reversed(masses):
            S, T = S + mass, T + mass * ratio
            ratio /= shrink
            self.lines.append((S, T))
        self.lines.reverse()

    def __call__(self, order: Order) -> arb:
        place = (order.log - self.first) / self.step
        # the best line is one of those about this place
        near = self.lines[max(self._line(place.lower()) - 3, 0) : self._line(place.upper()) + 4]
        values = [S - order.a * T for S, T in near]
        found = values[0]
        for value in values[1:]:
            found = found.max(value)
        return found

    def at(self, loss: arb) -> tuple[arb, arb]:
        """S and T of the line at the order e^loss, or, by rounding, of one next to it."""
        return self.lines[self._line((loss - self.first) / self.step)]

    def _line(self, place: arb) -> int:
        """Index of the line that the profile is at so many steps from the first kink."""
        return int(min(max(float(place.mid()) + 1, 0.0), len(self.lines) - 1.0))


def in_single_steps(
    rows: list[dict], t: int, k: int, distance: arb, direction: str, negligible: arb
) -> ComposedProfile:
    """Profile by Theorem 27 for k of t steps: of H_a(P || Q) forward, of H_a(Q || P) backward.

    Each row has the law of the blocks of one size, and the sums that prove it; `distance` is what
    the record moves its steps by, over the noise scale.
    """
    are_blocks(t, k, 1, rows)
    return by_sums(rows, LogNormal(distance), direction, negligible)


def by_sums(
    rows: list[dict], single: LogNormal, direction: str, negligible: arb, turns: int = 1
) -> ComposedProfile:
    """Profile of laws that sums prove, each composed as often as its row says."""
    laws, shortfalls = [], []
    for row in rows:
        law = read_law(row["law"], f"revealed, {direction}")
        missing = sums_shortfall(law, row["sums"], single, direction, negligible, turns)
        laws.append((law, row["times"]))
        shortfalls.append((missing, law.total(), row["times"]))
    return ComposedProfile(laws, charge(shortfalls), negligible)


def by_reference(there: ComposedProfile, back: ComposedProfile, order: Order) -> arb:
    """Value of H_u(P || Q) + u H_w(Q || P') at a split of the order: any is valid, and this is
    about the best.

    The sum is convex in u. Where the first profile is S - u T and the second one S' - w T' its
    slope is S' - T.
    """
    spend(4 * SPLITS, "splits of orders")
    low, high = 0.0, max(float(order.log.mid()), 0.0)
    for _ in range(SPLITS):
        middle = (low + high) / 2
        _, T = there.at(arb(middle))
        S, _ = back.at(order.log - middle)
        if T > S:
            low = middle
        else:
            high = middle
    u, w = Order(arb(low).expm1()), Order((order.log - low).expm1())
    return there(u) + u.a * back(w)


def substitution(case: Case) -> arb:
    """Shortfall under substitution: by way of no record; and G(a, 2 sqrt(k)/s) by (F1), k the
    number of steps that may hold the record once its choice is known."""
    release = case.release
    case.need(case.adjacency == "substitute", "substitute")
    if release.in_all_steps:
        return in_all_steps(case, 2)
    if release.name == "secret_cyclic_poisson":
        t, most = in_turns(release)
        k, turns = 1, most
    else:
        t, most = allocated(release)
        k, turns = most, 1
    revealed, single = needed(case, "revealed"), single_step(release)
    profiles = []
    for direction in ("forward", "backward"):
        are_blocks(t, k, 1, revealed[direction])
        profiles.append(by_sums(revealed[direction], single, direction, case.negligible, turns))
    points = [(order.a, by_reference(*profiles, order)) for order in orders_from_one(case)]
    return held_against_chords(case, 2 * arb(most).sqrt() / release.s, points)


THEOREMS = {"substitution": Theorem("allocation", substitution)}
