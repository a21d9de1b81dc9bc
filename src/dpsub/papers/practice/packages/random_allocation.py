"""random-allocation: bounds for random allocation and shuffled batches."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import LOWER, UPPER

START = """\
import random_allocation.random_allocation_scheme as ra
config = ra.SchemeConfig(allocation_direct_alpha_orders=list(range(2, 61)))
question = dict(sigma={noise_multiplier}, num_steps={steps}, num_selected=1, num_epochs=1)
"""
ALLOCATION = """\
params = ra.PrivacyParams(delta={{delta}}, **question)
epsilon = ra.allocation_epsilon_{method}(params, config)"""
SHUFFLED = """\
import random_allocation.other_schemes.shuffle as ra
question = dict(sigma={{noise_multiplier}}, num_steps={{steps}}, num_selected=1, num_epochs=1)
params = ra.PrivacyParams(delta={{delta}}, **question)
epsilon = ra.shuffle_epsilon_{method}(params, ra.SchemeConfig())"""
ALLOCATED, EPOCH = ("random_allocation gaussian add_remove",), ("shuffle gaussian zero_out",)


def ways(allocation: str, shuffled: str) -> tuple[Way, ...]:
    """Return the ways to ask for one bound of both schemes."""
    return (
        Way(ALLOCATED, START + ALLOCATION.format(method=allocation)),
        Way(EPOCH, SHUFFLED.format(method=shuffled)),
    )


PACKAGE = Package(
    title="random-allocation",
    distribution="random-allocation",
    versions=("1.0.5",),
    # without which it cannot be imported
    requires=("pandas",),
    promise=(
        "Computes what the paper on random allocation by Feldman and Shenfeld compares: the least "
        "of its upper bounds and a lower bound for one epoch of random allocation, and both for "
        "one shuffled epoch. The lower bounds are a copy of dpsgd_batch_sampler_accounting, which "
        "is asked in no other way: its repository, google-research, has a gigabyte. The Poisson "
        "accountants of both are those of dp-accounting. Their Monte Carlo bound is not asked: "
        "with a confidence of 0.99 it is never below 4.6 over the number of draws, so that "
        "δ = 1e-6 takes five million, each of all steps."
    ),
    tracker="https://github.com/moshenfeld/random_allocation/issues",
    accountants=(
        Accountant("random-allocation upper", UPPER, ways("combined", "analytic")),
        Accountant("random-allocation lower", LOWER, ways("lower_bound", "lower_bound")),
    ),
)
