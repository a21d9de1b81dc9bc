"""Opacus: three accountants for DP-SGD with Poisson samples."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import ESTIMATE, UPPER

CODE = """\
from opacus.accountants import create_accountant
accountant = create_accountant("{name}")
accountant.history = [({{noise_multiplier}}, {{rate}}, {{steps}})]
epsilon = accountant.get_epsilon(delta={{delta}})"""
KINDS = ("poisson gaussian add_remove", "all gaussian add_remove")

PACKAGE = Package(
    title="Opacus",
    distribution="opacus",
    versions=("1.6.0", "1.5.4"),
    promise=(
        "Trains PyTorch models with DP-SGD. Its `rdp` accountant bounds ε by Rényi divergences, "
        "and `prv`, the default, composes privacy loss distributions and returns the upper bound. "
        "`gdp` uses the central limit theorem and warns that it can understate ε."
    ),
    tracker="https://github.com/meta-pytorch/opacus/issues",
    accountants=(
        Accountant("Opacus RDP", UPPER, (Way(KINDS, CODE.format(name="rdp")),)),
        Accountant("Opacus PRV", UPPER, (Way(KINDS, CODE.format(name="prv")),)),
        Accountant("Opacus GDP", ESTIMATE, (Way(KINDS, CODE.format(name="gdp"), "P3"),)),
    ),
    reasons={
        "P3": (
            "The central limit theorem is a limit of many steps at a small rate and gives no bound "
            "at finite ones; the accountant's own warning says so (pull request 400). The error is "
            "largest for little noise and few steps. In issue 643, closed, the gap to `rdp` was "
            "put down to Rényi divergences alone: `gdp` is too small there, as well."
        )
    },
)
