"""JAX Privacy: dp-accounting's accountants behind the parameters of a training."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import UPPER

CODE = """\
from jax_privacy import accounting as a
more = dict({more})
params = a.DpParams(noise_multipliers={{noise_multiplier}}, delta={{delta}}, **more)
accountant = a.DpsgdTrainingAccountant(a.{config}())
epsilon = accountant.compute_epsilon({{steps}}, params)"""
# A million records, so that each rate of the grid is a batch of a whole number of them.
POISSON = "num_samples=1_000_000, batch_size=round(1e6 * {rate})"
FIXED = "num_samples={n}, batch_size={m}, sampling_method=a.SamplingMethod.FIXED_BATCH_SIZE"
CUT = "num_samples={n} + 1, batch_size=round({rate} * ({n} + 1)), truncated_batch_size={m}"
WOR = ("wor gaussian substitute", "wor gaussian zero_out", "wor gaussian add_remove")


def ways(config: str) -> tuple[Way, ...]:
    """Return the ways to ask one of the two accountants."""
    poisson = (
        "poisson gaussian add_remove",
        "poisson gaussian zero_out",
        "all gaussian add_remove",
    )
    return (
        Way(poisson, CODE.format(config=config, more=POISSON)),
        Way(WOR, CODE.format(config=config, more=FIXED), "P4"),
    )


PACKAGE = Package(
    title="JAX Privacy",
    distribution="jax-privacy",
    versions=("2.0.0",),
    not_asked={"1.0.0": "it pins jaxlib 0.6.2"},
    promise=(
        "Trains JAX models with DP-SGD and correlated noise. Its documentation states a guarantee "
        "for Poisson samples under add/remove and zero-out, and for batches of fixed size under "
        "replacement, zero-out and add/remove; the noise multiplier is the noise over the norm "
        "bound. For batches of fixed size it takes the answer for Poisson samples at half the "
        "noise."
    ),
    tracker="https://github.com/google-deepmind/jax_privacy/issues",
    accountants=(
        Accountant(
            "JAX Privacy PLD",
            UPPER,
            (
                *ways("PldAccountantConfig"),
                Way(
                    ("truncated_poisson gaussian add_remove",),
                    CODE.format(config="PldAccountantConfig", more=CUT),
                ),
            ),
        ),
        Accountant("JAX Privacy RDP", UPPER, ways("RdpAccountantConfig")),
    ),
    reasons={
        "P4": (
            "For batches of fixed size the answer is that for Poisson samples at half the noise, "
            "which bounds one step. Over several steps it takes the same order of the two data "
            "sets in each, but under replacement an adaptive adversary chooses the other records "
            "of each step, and thereby the order. Under zero-out and add/remove the answers hold."
        )
    },
)
