"""Fourier Accountant: privacy loss distributions on a grid, composed by the FFT."""

from dpsub.papers.practice.packages import Accountant, Package, Way
from dpsub.papers.practice.settings import ESTIMATE

CODE = """\
import fourier_accountant
ask = fourier_accountant.get_epsilon_{relation}
question = dict(sigma={{noise_multiplier}}, q={{rate}}, ncomp={{steps}})
epsilon = ask(target_delta={{delta}}, **question)"""

PACKAGE = Package(
    title="Fourier Accountant",
    distribution="fourier-accountant",
    versions=("0.12.11", "0.12.0"),
    promise=(
        "Approximates ε of Poisson samples with Gaussian noise, a record removed or added, or "
        "substituted. It states no bound on its error: both the grid and its limits (20 by "
        "default) are the caller's choice."
    ),
    tracker="https://github.com/DPBayes/PLD-Accountant/issues",
    accountants=(
        Accountant(
            "Fourier Accountant",
            ESTIMATE,
            (
                Way(("poisson gaussian add_remove",), CODE.format(relation="R"), "P5"),
                Way(("poisson gaussian substitute",), CODE.format(relation="S"), "P5"),
            ),
        ),
    ),
    reasons={
        "P5": (
            "With the default grid and limits: at rate 0.001 too few points lie where the "
            "distribution of one step is concentrated; at delta = 1e-10 the iteration stops at an "
            "error as large as delta; and an ε near the limit of 20 is cut off."
        )
    },
)
