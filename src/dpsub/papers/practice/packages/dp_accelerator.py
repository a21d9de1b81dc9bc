"""DP Accelerator: Renyi accounting in Rust."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import UPPER

CODE = """\
from dp_accelerator import DPSGDAccountant
# a million records, so that the rate is a batch of a whole number of them
accountant = DPSGDAccountant({noise_multiplier}, round(1e6 * {rate}), 1_000_000)
epsilon = accountant.get_epsilon({steps}, {delta})"""

PACKAGE = Package(
    title="DP Accelerator",
    distribution="dp-accelerator",
    versions=("0.1.0",),
    promise="Computes guarantees of DP-SGD by Rényi divergences, for any training library.",
    tracker="https://github.com/AxiomaticLabs/dp-accelarator/issues",
    accountants=(
        Accountant(
            "DP Accelerator",
            UPPER,
            (Way(("poisson gaussian add_remove", "all gaussian add_remove"), CODE),),
        ),
    ),
)
