"""dp-accounting: Renyi divergences and privacy loss distributions of events."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import UPPER

CODE = """\
import dp_accounting as dp
event = {event}
relation = dp.NeighboringRelation.{relation}
accountant = dp.{accountant}(neighboring_relation=relation)
epsilon = accountant.compose(event, {{steps}}).get_epsilon({{delta}})"""
NOISE = {
    "gaussian": "dp.GaussianDpEvent({noise_multiplier})",
    "laplace": "dp.LaplaceDpEvent({noise_multiplier})",
}
CUT = "dp.TruncatedSubsampledGaussianDpEvent({n} + 1, {rate}, {m}, {noise_multiplier})"
# Merged as pull request 414 and in no release yet; the first one that has it is asked by this.
ALLOCATED = """\
import dp_accounting as dp
noise = dp.GaussianDpEvent({noise_multiplier})
event = dp.RandomAllocationDpEvent(event=noise, num_selected=1, num_steps={steps})
epsilon = dp.pld.PLDAccountant().compose(event).get_epsilon({delta})"""
RELATIONS = {
    "add_remove": "ADD_OR_REMOVE_ONE",
    "substitute": "REPLACE_ONE",
    "zero_out": "REPLACE_SPECIAL",
}
RDP, PLD = "rdp.RdpAccountant", "pld.PLDAccountant"


def way(accountant: str, kind: str, event: str, erratum: str = "") -> Way:
    """Return the way to ask an accountant about one kind of releases."""
    relation = RELATIONS[kind.split()[-1]]
    code = CODE.format(event=event, relation=relation, accountant=accountant)
    return Way((kind,), code, erratum)


def poisson(noise: str) -> str:
    return f"dp.PoissonSampledDpEvent({{rate}}, {NOISE[noise]})"


PACKAGE = Package(
    title="dp-accounting",
    distribution="dp-accounting",
    versions=("0.6.0", "0.5.1", "0.4.4"),
    promise=(
        "Composes events under a relation that the caller names. A noise multiplier is documented "
        "as the noise over the norm bound of one record. The PLD accountant is pessimistic: its ε "
        "is an upper bound, as is that of the RDP accountant. RandomAllocationDpEvent is merged "
        "(pull request 414) and in no release: it will be asked in the first one that has it."
    ),
    tracker="https://github.com/google/differential-privacy/issues",
    accountants=(
        Accountant(
            "dp-accounting RDP",
            UPPER,
            (
                way(RDP, "poisson gaussian add_remove", poisson("gaussian")),
                way(RDP, "poisson gaussian zero_out", poisson("gaussian")),
                way(RDP, "all gaussian add_remove", NOISE["gaussian"]),
                way(RDP, "all gaussian substitute", NOISE["gaussian"], "P1"),
                way(
                    RDP,
                    "wor gaussian substitute",
                    f"dp.SampledWithoutReplacementDpEvent({{n}}, {{m}}, {NOISE['gaussian']})",
                    "P1",
                ),
                way(RDP, "all laplace add_remove", NOISE["laplace"]),
            ),
        ),
        Accountant(
            "dp-accounting PLD",
            UPPER,
            (
                *(
                    way(PLD, f"poisson gaussian {relation}", poisson("gaussian"))
                    for relation in RELATIONS
                ),
                way(PLD, "all gaussian add_remove", NOISE["gaussian"]),
                way(PLD, "all gaussian substitute", NOISE["gaussian"], "P1"),
                way(PLD, "all laplace add_remove", NOISE["laplace"]),
                way(PLD, "poisson laplace add_remove", poisson("laplace")),
                way(PLD, "truncated_poisson gaussian add_remove", CUT),
                Way(("random_allocation gaussian add_remove",), ALLOCATED),
            ),
        ),
    ),
    reasons={
        "P1": (
            "The noise multiplier is documented as the noise over the norm bound C of one record, "
            "and under replacement taken as the noise over the sensitivity, which is 2 C. This is "
            "issue 378, open since December 2025; pull request 464 of July 2026, open, halves the "
            "noise there, which these numbers support. 0.6.0 does not."
        )
    },
)
