"""The charges of Theorem 65 keep to (8): what each number of slots cannot pay, all of them together
owe to the base of a record that did not pass, which has no more than this."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp

from dpsub.accounting.games.game import CellProfile, Copies
from dpsub.streams import stream
from tests import tiny_mechanisms

LOG_ORDERS = np.array([0.0, 1e-12, 1e-6, 1e-3, 0.03, 0.3, 1.0, 3.0, 30.0])
# branches pay all in the first, next to nothing in the last ones
SIZES = [(1000, 100, 50), (8, 3, 2), (100, 100, 10), (3, 9, 2), (50, 50, 60)]


def owed(copies: Copies, u: mp.mpf, counts: list[int], charges: list[mp.mpf]) -> mp.mpf:
    """The left side of (8), u = a - 1."""
    total = mp.mpf(0)
    for branch in copies.branches:
        asked = mp.fsum(
            mp.mpf(branch.counts[c]) * tau for c, tau in zip(counts, charges, strict=True)
        )
        total += max(mp.mpf(0), asked - u * mp.mpf(branch.counts[0]))
    return total


def charges_of(copies: Copies, counts: list[int], what: str) -> np.ndarray:
    """Logarithms of charges: those of Theorem 22 of a cell, or any."""
    if what == "any":
        drawn = stream(65, experiment="charges", cell={}, role="sample", replicate=len(counts))
        with np.errstate(divide="ignore"):
            unit = np.log(np.expm1(LOG_ORDERS))
        return unit + drawn.normal(1.0, 2.0, (len(counts), LOG_ORDERS.size))
    profile = CellProfile(copies, 2.0, 1e-15, 2.0, 1.0, 1.0)
    return profile._charges(LOG_ORDERS, counts, profile._radii(counts))


@pytest.mark.parametrize("what", ["any", "of a cell"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_no_more_is_owed_than_the_base_has(size: tuple[int, int, int], what: str) -> None:
    n, b, m = size
    copies = tiny_mechanisms.copies(n, f"wr:{b},wr:{m}")
    counts = [c for c in range(1, len(copies.counts)) if copies.counts[c] > 1e-15]
    asked = charges_of(copies, counts, what)
    paid = copies.paid(LOG_ORDERS, counts, asked)
    for i, x in enumerate(LOG_ORDERS):
        u = mp.expm1(mp.mpf(float(x)))
        taus = [
            mp.exp(mp.mpf(float(charge[i]))) if charge[i] > -np.inf else mp.mpf(0)
            for charge in paid
        ]
        assert owed(copies, u, counts, taus) <= u * mp.mpf(copies.odds)
        assert all(
            charge[i] <= before[i] + 1e-11 for charge, before in zip(paid, asked, strict=True)
        )


def test_one_draw_is_charged_1_where_the_others_can_pay() -> None:
    copies = tiny_mechanisms.copies(10_000, "wr:10000,wr:200")
    counts = [c for c in range(1, len(copies.counts)) if copies.counts[c] > 1e-15]
    x = np.array([0.003, 0.01, 0.03])
    profile = CellProfile(copies, 4.0, 1e-15, 2.0, 1.0, 1.0)
    asked = profile._charges(x, counts, profile._radii(counts))
    paid = copies.paid(x, counts, asked)
    assert (paid[0] >= np.minimum(asked[0], 0.0) - 1e-12).all()
