"""What is wrong with answers of other accountants, shown by asking them and by data sets."""

from __future__ import annotations

import math

import dp_accounting as dp
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from prv_accountant import PRVAccountant
from prv_accountant.privacy_random_variables import LaplaceMechanism
from scipy.stats import norm

import dpsub

REPLACE = dp.NeighboringRelation.REPLACE_ONE


def asked(kind: type, event: dp.DpEvent, delta: float) -> float:
    """Epsilon under replacement."""
    return float(kind(neighboring_relation=REPLACE).compose(event).get_epsilon(delta))


def test_p1_noise_over_the_norm_bound_is_taken_as_noise_over_the_sensitivity() -> None:
    def sampled(noise: float) -> dp.DpEvent:
        sample = dp.SampledWithoutReplacementDpEvent(1000, 16, dp.GaussianDpEvent(noise))
        return dp.SelfComposedDpEvent(sample, 128)

    ours = dpsub.account(dpsub.Wor(16), 1000, noise_multiplier=1, steps=128, delta=1e-6)
    assert asked(RdpAccountant, sampled(1.0), 1e-6) < 2.65 < 10.9 < ours.lower
    assert ours.upper < asked(RdpAccountant, sampled(0.5), 1e-6)
    # one sum of all records: N(1, 25) against N(-1, 25), by the distribution function alone
    epsilon = asked(RdpAccountant, dp.GaussianDpEvent(5.0), 1e-5)
    cut = 25 * epsilon / 2
    attained = norm.sf((cut - 1) / 5) - math.exp(epsilon) * norm.sf((cut + 1) / 5)
    assert attained > 1e-3
    assert asked(PLDAccountant, dp.GaussianDpEvent(5.0), 1e-5) == pytest.approx(1.555, abs=1e-3)


def test_p2_estimates_of_composed_laplace_noise_lie_below_what_is_attained() -> None:
    accountant = PRVAccountant(
        LaplaceMechanism(mu=1 / 50), max_self_compositions=1000, eps_error=0.01, delta_error=1e-9
    )
    lower, estimate, upper = accountant.compute_epsilon(1e-6, 1000)
    ours = dpsub.account(
        dpsub.Poisson(1), noise_multiplier=50, steps=1000, delta=1e-6, mechanism="laplace"
    )
    assert lower < estimate < ours.lower <= ours.upper < upper
