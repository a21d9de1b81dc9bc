"""The literal enumeration against the package's laws: exact, no draws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsub.sampling import Multistage, MustWW, Sampler
from tests.statistical import forward
from tests.statistical.test_draws import TINY, case_ids, stages_of

MORE: list[tuple[Sampler, int]] = [
    (Multistage(chain), n) for chain, n in forward.chains(40, n_max=4, size_max=4, seed=5)
]


def multiplicity_and_distinct(joint: dict[tuple[int, ...], Fraction], record: int) -> tuple[list, list]:
    top = max(max(outcome) for outcome in joint)
    n = len(next(iter(joint)))
    copies, distinct = [Fraction(0)] * (top + 1), [Fraction(0)] * (n + 1)
    for outcome, probability in joint.items():
        copies[outcome[record]] += probability
        distinct[sum(count > 0 for count in outcome)] += probability
    return copies, distinct


def differs(law: np.ndarray, exact: list[Fraction]) -> float:
    """Largest relative difference; infinite if one has mass where the other has none."""
    width = max(len(law), len(exact))
    ours = np.pad(law, (0, width - len(law)))
    theirs = np.pad(np.array([float(p) for p in exact]), (0, width - len(exact)))
    if ((ours == 0) != (theirs == 0)).any():
        return np.inf
    positive = theirs > 0
    return float(np.max(np.abs(ours[positive] / theirs[positive] - 1)))


@pytest.mark.parametrize(("sampler", "n"), TINY + MORE, ids=case_ids(TINY + MORE))
def test_laws_equal_enumeration(sampler: Sampler, n: int) -> None:
    joint = forward.law(stages_of(sampler), n)
    assert sum(joint.values()) == 1
    for record in (0, n - 1):
        copies, distinct = multiplicity_and_distinct(joint, record)
        assert differs(sampler.multiplicity_law(n).pmf, copies) < 1e-13
        assert differs(sampler.distinct_law(n), distinct) < 1e-13


def test_enumeration_tells_a_wrong_size() -> None:
    copies, distinct = multiplicity_and_distinct(forward.law(stages_of(MustWW(3, 3)), 3), 0)
    wrong = MustWW(4, 3)
    assert differs(wrong.multiplicity_law(3).pmf, copies) > 1e-3
    assert differs(wrong.distinct_law(3), distinct) > 1e-3
