"""Ask other accountants about the settings of this study, and record their answers and versions.

By hand, where dp-accounting, prv-accountant and autodp are installed (the group `test` has them):
    python -m dpsub.papers.practice.ask_accountants

An answer is written with seven digits, rounded so that it claims no more than the accountant does:
upper bounds and estimates up, lower bounds down. Questions that an accountant has no method for,
refuses, or answers by no finite number are left out.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from dpsub.papers.practice.settings import ACCOUNTANTS, GRID, KEYS, LOWER, AccountingQuestion
from dpsub.reproduce import recording
from dpsub.reproduce.job import in_one_sentence

PUBLISHED = Path(__file__).parent / "published/accountants.csv"
ERRATA = {
    ("dp-accounting RDP", "substitute", "gaussian"): "P1",
    ("prv-accountant estimate", "add_remove", "laplace"): "P2",
}
"""Entry of the study's errata.md by accountant, adjacency and mechanism."""


def questions(setting: AccountingQuestion) -> Iterator[tuple[str, Callable[[], float]]]:
    """Yield the accountants that have a method for a setting, each with the call that asks it."""
    noise, steps, delta = setting.noise_multiplier, setting.steps, setting.delta
    if setting.sampler == "wor":
        # autodp takes a rate where the others take both sizes.
        rate = setting.m / setting.n
        yield "dp-accounting RDP", lambda: _dp_accounting(setting, "rdp", noise)
        # a reader may take the noise relative to 2 C, by which a replaced record moves the sum
        yield "dp-accounting RDP, noise over 2 C", lambda: _dp_accounting(setting, "rdp", noise / 2)
        yield "autodp RDP", lambda: _autodp(noise / 2, rate, steps, delta, replace=True)
        return
    # dp-accounting's Rényi accountant and prv-accountant have no subsampled Laplace mechanism.
    in_rdp = setting.mechanism == "gaussian" or setting.rate == 1
    if in_rdp:
        yield "dp-accounting RDP", lambda: _dp_accounting(setting, "rdp", noise)
    yield "dp-accounting PLD", lambda: _dp_accounting(setting, "pld", noise)
    # prv-accountant knows one relation: a record added or removed.
    if setting.adjacency == "add_remove" and in_rdp:
        for position, end in enumerate(("lower", "estimate", "upper")):
            yield f"prv-accountant {end}", partial(_prv_accountant_end, setting, position)
    # autodp takes the noise over the sensitivity: a replaced record moves the sum by up to 2 C.
    sensitivity = 1 if setting.adjacency == "add_remove" else 2
    if setting.mechanism == "laplace":
        if setting.rate == 1:
            yield "autodp RDP", lambda: _autodp_laplace(noise, steps, delta)
    else:
        scale = noise / sensitivity
        yield "autodp RDP", lambda: _autodp(scale, setting.rate, steps, delta)
        if setting.rate == 1:
            yield "autodp Gaussian", lambda: _autodp_gaussian(scale, steps, delta)


def _dp_accounting(setting: AccountingQuestion, kind: str, noise: float) -> float:
    import dp_accounting as dp
    from dp_accounting import pld, rdp

    laplace = setting.mechanism == "laplace"
    # GaussianDpEvent documents its noise multiplier as the noise over the norm bound of one record
    # (erratum P1).
    event = dp.LaplaceDpEvent(noise) if laplace else dp.GaussianDpEvent(noise)
    if setting.sampler == "wor":
        event = dp.SampledWithoutReplacementDpEvent(setting.n, setting.m, event)
    elif setting.rate < 1:
        event = dp.PoissonSampledDpEvent(setting.rate, event)
    relations = {
        "add_remove": dp.NeighboringRelation.ADD_OR_REMOVE_ONE,
        "substitute": dp.NeighboringRelation.REPLACE_ONE,
    }
    make = {"rdp": rdp.RdpAccountant, "pld": pld.PLDAccountant}[kind]
    accountant = make(neighboring_relation=relations[setting.adjacency])
    accountant.compose(dp.SelfComposedDpEvent(event, setting.steps))
    return float(accountant.get_epsilon(setting.delta))


def _prv_accountant_end(setting: AccountingQuestion, position: int) -> float:
    return _prv_accountant(setting)[position]


@cache
def _prv_accountant(setting: AccountingQuestion) -> tuple[float, float, float]:
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import (
        GaussianMechanism,
        LaplaceMechanism,
        PoissonSubsampledGaussianMechanism,
    )

    if setting.mechanism == "laplace":
        variable = LaplaceMechanism(mu=1 / setting.noise_multiplier)
    elif setting.rate == 1:
        variable = GaussianMechanism(setting.noise_multiplier)
    else:
        variable = PoissonSubsampledGaussianMechanism(setting.rate, setting.noise_multiplier)
    try:
        accountant = PRVAccountant(
            variable,
            max_self_compositions=setting.steps,
            # The caller's choice: the estimate may be off by as much (erratum P2).
            eps_error=0.01,
            # Small against delta, so that what is compared is the error of epsilon.
            delta_error=setting.delta / 1000,
        )
    except RuntimeError:  # its own check of the discretised law failed
        return math.nan, math.nan, math.nan
    lower, estimate, upper = accountant.compute_epsilon(setting.delta, setting.steps)
    return float(lower), float(estimate), float(upper)


def _autodp(noise: float, rate: float, steps: int, delta: float, *, replace: bool = False) -> float:
    from autodp import mechanism_zoo, transformer_zoo

    release = mechanism_zoo.GaussianMechanism(noise)
    if replace:
        release.neighboring = "replace_one"
    if rate < 1:
        sampled = transformer_zoo.AmplificationBySampling(PoissonSampling=not replace)
        release = sampled(release, rate, improved_bound_flag=True)
    return float(transformer_zoo.Composition()([release], [steps]).get_approxDP(delta))


def _autodp_gaussian(noise: float, steps: int, delta: float) -> float:
    from autodp import mechanism_zoo, transformer_zoo

    release = mechanism_zoo.ExactGaussianMechanism(noise)
    return float(transformer_zoo.ComposeGaussian()([release], [steps]).get_approxDP(delta))


def _autodp_laplace(noise: float, steps: int, delta: float) -> float:
    from autodp import mechanism_zoo, transformer_zoo

    composed = transformer_zoo.Composition()([mechanism_zoo.LaplaceMechanism(noise)], [steps])
    return float(composed.get_approxDP(delta))


def rows(grid: Sequence[AccountingQuestion] = GRID) -> Iterator[dict[str, str]]:
    """Yield the rows that are recorded, one per answer."""
    for setting in grid:
        for accountant, ask in questions(setting):
            answer = ask()
            # An accountant that gives up has claimed nothing that could be judged.
            if not math.isfinite(answer):
                continue
            package = accountant.partition(" ")[0]
            # An answer belongs to a version: later ones may differ.
            note = f"{package} {version(package)}, {ACCOUNTANTS[accountant]}"
            erratum = ERRATA.get((accountant, setting.adjacency, setting.mechanism), "")
            yield recording.row(
                KEYS,
                setting.given,
                recording.rounded(answer, is_lower=ACCOUNTANTS[accountant] == LOWER),
                accountant=accountant,
                erratum=erratum,
                note=note,
            )


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = list(rows())
    recording.write(PUBLISHED, KEYS, answers)


if __name__ == "__main__":
    with in_one_sentence():
        main()
