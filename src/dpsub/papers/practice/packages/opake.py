"""Opake: privacy loss distributions in Rust."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import UPPER

START = """\
from opake.api.accounting.core import opake_accounting as opake
config = opake.DiscretizationConfig()
"""
POISSON = """\
step = opake.poisson_pld(opake.gaussian_pld({noise_multiplier}, config), {rate})
epsilon = step.self_compose({steps}).epsilon_at({delta})"""
ALL = """\
step = opake.gaussian_pld({noise_multiplier}, config)
epsilon = step.self_compose({steps}).epsilon_at({delta})"""
CUT = """\
question = {noise_multiplier}, {rate}, {m}, {n} + 1
step = opake.truncated_poisson_gaussian_pld(*question, config)
epsilon = step.self_compose({steps}).epsilon_at({delta})"""
ALLOCATION = """\
epoch = opake.random_allocation_gaussian_pld({noise_multiplier}, {steps}, 1, config)
epsilon = epoch.epsilon_at({delta})"""

PACKAGE = Package(
    title="Opake",
    distribution="opake-accounting",
    versions=("0.16.1",),
    promise=(
        "Composes privacy loss distributions as dp-accounting does, in Rust, for Poisson samples, "
        "samples cut at a largest size, and random allocation; ε is said to be the smallest that "
        "holds."
    ),
    tracker="https://pypi.org/project/opake-accounting",
    python="python3.13",
    accountants=(
        Accountant(
            "Opake",
            UPPER,
            (
                Way(("poisson gaussian add_remove",), START + POISSON),
                Way(("all gaussian add_remove",), START + ALL),
                Way(("truncated_poisson gaussian add_remove",), START + CUT),
                Way(("random_allocation gaussian add_remove",), START + ALLOCATION),
            ),
        ),
    ),
)
