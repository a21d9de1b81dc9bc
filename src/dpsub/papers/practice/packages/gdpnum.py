"""gdpnum: the smallest mu of Gaussian differential privacy that covers DP-SGD."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import UPPER

CODE = """\
import gdpnum, dp_accounting
question = dict(noise_multiplier={noise_multiplier}, sample_rate={rate}, num_steps={steps})
mu, _ = gdpnum.dpsgd.get_mu_and_regret_for_dpsgd(**question)
from_mu = dp_accounting.get_epsilon_gaussian
epsilon = from_mu(1 / mu, {delta})"""

PACKAGE = Package(
    title="gdpnum",
    distribution="gdpnum",
    versions=("0.1.2",),
    promise=(
        "Computes mu for which DP-SGD is mu-GDP, numerically and not in the limit; its "
        "documentation calls the value pessimistic. We turn mu into ε by dp-accounting's exact "
        "formula for Gaussian noise of multiplier 1/mu."
    ),
    tracker="https://github.com/interpretable-dp/gdpnum/issues",
    accountants=(
        Accountant(
            "gdpnum",
            UPPER,
            (Way(("poisson gaussian add_remove", "all gaussian add_remove"), CODE, "P6"),),
        ),
    ),
    reasons={
        "P6": (
            "False positive rates are read from the distribution of the other order, which "
            "dp-accounting rounds up as a distribution of its own. After 1000 steps at rate 0.01 "
            "its masses sum to 1 + 1.6e-5; the surplus lies in the tail where the rates of small δ "
            "are read, so that tests look worse than they are and mu comes out too small."
        )
    },
)
