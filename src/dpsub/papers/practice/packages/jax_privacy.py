"""JAX Privacy: dp-accounting's accountants behind the parameters of a training."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import ONE_READING, UPPER

EVENTS, BUNDLED = "2.3.0.dev0+8967688", "2.0.0"
"""Versions with events for dp-accounting, and with accountants of their own."""
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


EVENT = """\
import dp_accounting as dp
from jax_privacy import accounting
event = accounting.{event}
relation = dp.NeighboringRelation.{relation}
accountant = dp.{accountant}(neighboring_relation=relation)
epsilon = accountant.compose(event).get_epsilon({{delta}})"""
STEPS = "{noise_multiplier}, {steps}"
SAMPLED = f"dpsgd_event({STEPS}, sampling_prob={{rate}})"
LIMITED = "sampling_prob={rate}, num_examples={n} + 1, truncated_batch_size={m}"
SIZES = "dataset_size={n}, batch_size={m}"
RDP, PLD = "rdp.RdpAccountant", "pld.PLDAccountant"


def event(accountant: str, relation: str, event: str, *kinds: str, erratum: str = "") -> Way:
    """Return the way to ask an accountant of dp-accounting about an event."""
    code = EVENT.format(accountant=accountant, relation=relation, event=event)
    return Way(kinds, code, erratum)


def events(accountant: str) -> tuple[Way, ...]:
    """Return the ways to ask about Poisson samples."""
    added = "poisson gaussian add_remove", "all gaussian add_remove"
    return (
        event(accountant, "ADD_OR_REMOVE_ONE", SAMPLED, *added),
        event(accountant, "REPLACE_SPECIAL", SAMPLED, "poisson gaussian zero_out"),
    )


def fixed(noise: str, erratum: str = "") -> tuple[Way, ...]:
    """Return the way to ask about batches of fixed size with the noise in some unit."""
    named = f"fixed_dpsgd_event({noise}, {{steps}}, {SIZES})"
    return (event(RDP, "REPLACE_ONE", named, "wor gaussian substitute", erratum=erratum),)


PACKAGE = Package(
    title="JAX Privacy",
    distribution="jax-privacy",
    versions=(EVENTS, BUNDLED),
    repository="https://github.com/google-deepmind/jax_privacy",
    commits={EVENTS: "8967688c26d46f3b74bfdfe61ef1f984b887abab"},
    requires=(
        "absl-py",
        "dp-accounting==0.6.0",
        "jax==0.8.1",
        "jaxlib==0.8.1",
        "optax @ git+https://github.com/google-deepmind/optax"
        "@2edbcbe2390da13983b92cbef94ac0460ecde1c5",
        "scipy",
    ),
    not_asked={
        "2.2.0": "pip has no such release, and 2.3.0.dev0 is newer",
        "1.0.0": "it pins jaxlib 0.6.2",
    },
    promise=(
        "Trains JAX models with DP-SGD and correlated noise. 2.0.0 has accountants of its own, for "
        "Poisson samples under add/remove and zero-out and for batches of fixed size under all "
        "three relations, with the noise over the norm bound. The newest state, commit 8967688 of "
        "August 2026, has none: it makes events for dp-accounting (0.6.0 here). Its event for "
        "batches of fixed size is for the RDP accountant under replacement. Its documentation "
        "calls the argument the noise multiplier of the mechanism, without a unit."
    ),
    tracker="https://github.com/google-deepmind/jax_privacy/issues",
    accountants=(
        Accountant(
            "JAX Privacy events PLD",
            UPPER,
            (
                *events(PLD),
                event(
                    PLD,
                    "ADD_OR_REMOVE_ONE",
                    f"truncated_dpsgd_event({STEPS}, {LIMITED})",
                    "truncated_poisson gaussian add_remove",
                ),
            ),
            (EVENTS,),
        ),
        Accountant("JAX Privacy events RDP", UPPER, events(RDP), (EVENTS,)),
        Accountant(
            "JAX Privacy events RDP, noise over C",
            ONE_READING,
            fixed("{noise_multiplier}", "P7"),
            (EVENTS,),
        ),
        Accountant(
            "JAX Privacy events RDP, noise over 2 C",
            ONE_READING,
            fixed("{noise_multiplier} / 2", "P7"),
            (EVENTS,),
        ),
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
            (BUNDLED,),
        ),
        Accountant("JAX Privacy RDP", UPPER, ways("RdpAccountantConfig"), (BUNDLED,)),
    ),
    reasons={
        "P4": (
            "For batches of fixed size the answer is that for Poisson samples at half the noise, "
            "which bounds one step. Over several steps it takes the same order of the two data "
            "sets in each, but under replacement an adaptive adversary chooses the other records "
            "of each step, and thereby the order. Under zero-out and add/remove the answers hold."
        ),
        "P7": (
            "The argument has two readings. As noise over the norm bound C, which is how "
            "GaussianDpEvent defines it, these answers are too small. As noise over the "
            "sensitivity 2 C, which clipped_grad's `sensitivity` returns for REPLACE_ONE, all "
            "answers are upper bounds. The default of `sensitivity` is zero-out, and returns C. "
            "One sentence in the documentation of `fixed_dpsgd_event` would settle it."
        ),
    },
)
