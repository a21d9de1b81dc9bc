"""riskcal: operational risks of DP-SGD, from dp-accounting's privacy loss distributions."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import UPPER

CODE = """\
from riskcal.accountants import CTDAccountant
accountant = CTDAccountant()
accountant.history = [({noise_multiplier}, {rate}, {steps})]
epsilon = accountant.get_epsilon(delta={delta})"""

PACKAGE = Package(
    title="riskcal",
    distribution="riskcal",
    versions=("1.5.1", "1.4.1", "1.3.0"),
    promise=(
        "Computes trade-off curves and calibrates noise to the risk of attacks. Its accountant has "
        "the interface of Opacus and composes dp-accounting's upper privacy loss distributions. It "
        "calls itself a research prototype."
    ),
    tracker="https://github.com/interpretable-dp/riskcal/issues",
    accountants=(
        Accountant(
            "riskcal",
            UPPER,
            (Way(("poisson gaussian add_remove", "all gaussian add_remove"), CODE),),
        ),
    ),
)
