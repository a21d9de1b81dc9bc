"""Numbers that the text prints, as it computes them and as they are."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.integrate import quad

from dpsub.amplification.survey import rates, sizes
from dpsub.papers.bun.experiments.bun_cases.cases import Case
from dpsub.sampling.allocation import rounded_sizes


def cases() -> Iterator[Case]:
    """Yield printed numbers: `stated` is ours under the paper's reading, `exact` the true value."""
    rate = 0.01
    for name, case, value in (
        ("Section 2.4 rate 1/100", "epsilon' of noise scale 1/n", rates.amplified(rate, 1.0)),
        ("Section 2.4 scale", "epsilon' of noise scale 1/(100 n)", rates.amplified(rate, 100.0)),
        ("Section 2.4 base", "epsilon on the sample for epsilon' 1", rates.base_for(rate, 1.0)),
    ):
        yield Case(name, case, "number", 1.0, value, value, value)
    density = quad(lambda x: x * x * 0.5 * math.exp(-abs(x)), -60, 60, points=[0.0], limit=200)[0]
    yield Case("P4.2 variance", "of Lap(1)", "number", 1.0, density, density, density)
    yield _deletion_estimators(epsilon=1.0, n=1000, small=1, jump=19)
    for n in (14, 15):
        (size,) = rounded_sizes("1/10", n, "half_up")
        yield Case("Section 4.3 sizes", f"r 1/10, n {n}", "number", 0.0, size, size, size)
    small = 1e-6
    worst = max(sizes.rounding_exact_at("1/10", small, n, "randomised") for n in range(10, 60))
    constant = sizes.rounding_printed("1/10", small) / (0.1 * small)
    yield Case("T4.3 constant", "r 1/10, small epsilon", "number", small, constant, constant, worst / (0.1 * small))
    above = 0
    for denominator in range(2, 40):
        for n in range(1, 120):
            traditional = max(rounded_sizes(f"1/{denominator}", n, "half_up"))
            above = max(above, max(rounded_sizes(f"1/{denominator}", n, "randomised")) - traditional)
    yield Case("T4.3 one more", "rates 1/2 to 1/39, n to 119", "number", 0.0, above, above, above)
    for epsilon in (0.1, 0.5, 1.0):
        ratios = [sizes.rounding_printed(r, epsilon) / rates.amplified(r, epsilon)
                  for r in np.geomspace(1e-6, 0.4, 40).tolist()]  # fmt: skip
        limit = 3 * (math.exp(epsilon) + 1)
        yield Case("Section 1.1 comparable", "largest ratio to simple random sampling, rates to 0.4", "upper", epsilon,
                   limit, limit, max(ratios))  # fmt: skip
    for text in ("1/10", "1/20", "1/100", "1/1000"):
        share = float(sizes.exact_rate(text))
        exact = sizes.rounding_base(text, 1.0)
        yield Case("Section 7.3 lambda", f"r {text}", "number", 1.0, 1 / (6 * share), exact, exact)
        found = sizes.rounding_printed(text, 1 / (6 * share))
        yield Case("Section 7.3 loss", f"r {text}, lambda epsilon/(6 r)", "number", 1.0, 1.0, found, found)


def _deletion_estimators(epsilon: float, n: int, small: int, jump: int) -> Case:
    """Proposition 4.2 with alpha taken over estimators that are private under add_remove.

    f is `small` for an even number of records and `small` + `jump` for an odd one. Replacing a record changes nothing,
    so that the sample of size f is a simple random sample and f itself is used without error. An estimator that is
    private under add_remove must confuse n and n + 1 records.
    """
    amplified = rates.amplified((small + jump) / n, epsilon)
    alpha = sizes.two_point_error(jump, amplified, longest=1)
    floors = [sizes.error_floor(value, epsilon, noise=noise) for value, noise in ((alpha, 1), (0.0, 2))]
    case = f"sizes {small} and {small + jump} of {n}"
    return Case("P4.2 deletion", case, "lower", epsilon, floors[0], floors[1], 0.0)
