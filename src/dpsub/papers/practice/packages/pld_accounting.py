"""PLD_accounting: random allocation, and sampling of any privacy loss distribution."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import LOWER, UPPER

ALLOCATION = """\
from PLD_accounting import gaussian_allocation_epsilon_range
question = dict(sigma={{noise_multiplier}}, num_steps={{steps}}, delta={{delta}})
epsilon = gaussian_allocation_epsilon_range(**question)[{end}]"""
SAMPLED = """\
from PLD_accounting import subsample_pld
from dp_accounting.pld import privacy_loss_distribution
step = privacy_loss_distribution.from_{mechanism}_mechanism({{noise_multiplier}})
step = subsample_pld(pld=step, sampling_probability={{rate}})
epsilon = step.self_compose({{steps}}).get_epsilon_for_delta({{delta}})"""
ALLOCATED = ("random_allocation gaussian add_remove",)


def sampled(mechanism: str) -> Way:
    """Return the way to ask about samples of one mechanism."""
    kinds = (f"poisson {mechanism} add_remove", f"all {mechanism} add_remove")
    return Way(kinds, SAMPLED.format(mechanism=mechanism))


PACKAGE = Package(
    title="PLD_accounting",
    distribution="pld-accounting",
    versions=("2.0", "0.5.0"),
    promise=(
        "Bounds ε of random allocation from both sides, a record added or removed, and samples any "
        "privacy loss distribution of dp-accounting, rounded up."
    ),
    tracker="https://github.com/moshenfeld/PLD_accounting/issues",
    accountants=(
        Accountant(
            "PLD_accounting upper",
            UPPER,
            (
                Way(ALLOCATED, ALLOCATION.format(end=0)),
                sampled("gaussian"),
                sampled("laplace"),
            ),
        ),
        Accountant("PLD_accounting lower", LOWER, (Way(ALLOCATED, ALLOCATION.format(end=1)),)),
    ),
)
