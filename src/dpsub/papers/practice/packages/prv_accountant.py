"""prv-accountant: privacy loss distributions by the FFT, with a bound on the error."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import ESTIMATE, LOWER, UPPER

# The errors are the caller's choice; that of delta is small, so that what is compared is epsilon's.
CODE = """\
from prv_accountant import PRVAccountant
from prv_accountant.privacy_random_variables import *
error = dict(eps_error=0.01, delta_error={{delta}} / 1000)
accountant = PRVAccountant({law}, max_self_compositions={{steps}}, **error)
epsilon = accountant.compute_epsilon({{delta}}, {{steps}})[{end}]"""
LAWS = {
    "poisson gaussian": "PoissonSubsampledGaussianMechanism({rate}, {noise_multiplier})",
    "all gaussian": "GaussianMechanism({noise_multiplier})",
    "all laplace": "LaplaceMechanism(mu=1 / {noise_multiplier})",
}


def ways(end: int) -> tuple[Way, ...]:
    """Return the ways to ask for one of the three numbers."""
    return tuple(
        Way((f"{kind} add_remove",), CODE.format(law=law, end=end), "P2" if end == 1 else "")
        for kind, law in LAWS.items()
    )


PACKAGE = Package(
    title="prv-accountant",
    distribution="prv-accountant",
    versions=("0.2.0",),
    not_asked={"0.1.1.post1": "its interface is another one, for Gaussian noise alone"},
    requires=("setuptools<81",),
    promise=(
        "Returns a lower bound, an estimate and an upper bound on ε, a record added or removed, "
        "with errors that the caller sets; here 0.01 in ε."
    ),
    tracker="https://github.com/microsoft/prv_accountant/issues",
    accountants=(
        Accountant("prv-accountant upper", UPPER, ways(2)),
        Accountant("prv-accountant estimate", ESTIMATE, ways(1)),
        Accountant("prv-accountant lower", LOWER, ways(0)),
    ),
    reasons={
        "P2": (
            "The estimate lies below ε by less than the error that the caller sets, so it keeps "
            "what it states; who reports a guarantee should report the upper bound."
        )
    },
)
