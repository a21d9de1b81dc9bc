"""One test an erratum of Dong and Özgür: what errata.md says, shown by a computation."""

from __future__ import annotations

import math

import dpsub
from dpsub.papers.dong.accountant import Law, of_two_steps
from dpsub.papers.dong.experiments import HALF, ONE_OF_TWO


def test_do1_at_large_delta_poisson_samples_are_the_more_private_ones() -> None:
    for noise in (0.2, 0.5, 2.0):
        assert of_two_steps(ONE_OF_TWO, noise, 0.1) > of_two_steps(HALF, noise, 0.1)
    for noise, epsilon in ((0.5, 4.0), (2.0, 1.0)):
        assert of_two_steps(ONE_OF_TWO, noise, epsilon) < of_two_steps(HALF, noise, epsilon)


def test_do1_the_record_that_is_left_out_bounds_delta() -> None:
    # a threshold on the sum of both outputs attains nearly 1, whatever the step of the record
    noise = 0.1
    spread = noise * math.sqrt(2)
    attained = 1 - 2 * 0.5 * math.erfc(0.5 / spread / math.sqrt(2))
    assert attained > 0.99
    assert of_two_steps(ONE_OF_TWO, noise, 0.0) >= attained
    assert of_two_steps(HALF, noise, 0.0) <= 0.75


def test_do1_our_bounds_say_so_too_for_five_of_twenty_steps() -> None:
    asked = {"noise_multiplier": 0.3, "steps": 20, "epsilon": 1.0, "adjacency": "zero_out"}
    balanced = dpsub.account(dpsub.RandomAllocation(20, 5), quick=True, effort=None, **asked)
    poisson = dpsub.account(dpsub.Poisson(0.25), quick=True, effort=None, **asked)
    left_out = 0.75**20
    assert poisson.upper <= 1 - left_out + 1e-6
    assert balanced.lower > poisson.upper


def test_equal_chances_are_best_among_laws_of_one_of_two_steps() -> None:
    for noise in (0.3, 1.0, 4.0):
        for epsilon in (0.0, 0.5, 2.0):
            equal = of_two_steps(ONE_OF_TWO, noise, epsilon)
            for weight in (0.55, 0.8, 0.99):
                assert of_two_steps(Law(0.0, weight, 1 - weight, 0.0), noise, epsilon) >= equal
