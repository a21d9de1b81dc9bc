"""diffprivlib: a budget accountant for mechanisms with given epsilon and delta."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import UPPER

CODE = """\
from diffprivlib import BudgetAccountant
accountant = BudgetAccountant(slack={delta})
for _ in range({steps}):
    accountant.spend(1 / {noise_multiplier}, 0)
epsilon = accountant.total()[0]"""

PACKAGE = Package(
    title="diffprivlib",
    distribution="diffprivlib",
    versions=("0.6.6", "0.6.5"),
    requires=("scikit-learn==1.6.1",),
    promise=(
        "Composes pure and approximate guarantees by the theorem for homogeneous mechanisms. It is "
        "asked about Laplace noise, where a step has epsilon = 1 / noise multiplier and delta = 0."
    ),
    tracker="https://github.com/IBM/differential-privacy-library/issues",
    accountants=(Accountant("diffprivlib", UPPER, (Way(("all laplace add_remove",), CODE),)),),
)
