"""Numbers and settings of the text."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpsub.papers.must.claims.shared import (
    ADULT,
    COMPOSED,
    CROSSINGS,
    DISTINCT,
    FIGURE_S2,
    MULTISETS,
    NOISE,
    TABLE8,
    real,
)
from dpsub.reproduce import claims as ask
from dpsub.reproduce.claims import STATED, Claim, Finding, Frames, Numbers, Setting, pick
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.statistics import Estimate

EXAMPLE_B, EXAMPLE_M = 10, 20  # the example of Section 3.1, n = 100
# b (1 - (1 - 1/b)^m) = 8.78, where the text says 10 (erratum E14).
DISTINCT_OF_EXAMPLE = float(-EXAMPLE_B * np.expm1(EXAMPLE_M * np.log1p(-1 / EXAMPLE_B)))
# percent of N(0, 1), the data of experiment 1, in [-4, 4]
COVERED = 100 * math.erf(4 / math.sqrt(2))

stated = partial(Claim, variants=STATED)


def rows_used(parts: list[str], frames: Frames) -> Estimate:
    """Rows of Adult that the fits used, where the data are real: counted, without error."""
    return Estimate(float(real(frames[ADULT])[parts].iloc[0].sum()), 0.0, 1)


def efficiency(frames: Frames) -> float:
    """Distinct records of WOR over those of MUST.WW in experiment 3, in percent above 1."""
    # By the exact law and not by draws: 300 / 225 - 1 = 33 %, of which the saving of work is 25 %
    # (erratum E10).
    mean = pick(frames[DISTINCT], experiment=3, sampler=("wor", "must_ww")).set_index("sampler")[
        "law_mean"
    ]
    return float(100 * (mean["wor"] / mean["must_ww"] - 1))


def largest_ratio(frames: Frames) -> float:
    """Sigma of the mean in Table 4: Poisson over the smallest of MUST.OW."""
    noise = pick(frames[NOISE], table="table4", statistic="mean", sampler=("poisson", "must_ow"))
    sigma = noise.groupby("sampler")["sigma"].min()
    return float(sigma["poisson"] / sigma["must_ow"])


NUMBERS: tuple[Claim | Setting, ...] = (
    *(
        Claim(
            f"s8_threshold_{mechanism}_{sampler_label(sampler)}",
            "Section S8",
            ask.number(
                Numbers(
                    CROSSINGS,
                    "delta",
                    where={"kind": "threshold", "mechanism": mechanism, "sampler": sampler},
                )
            ),
            # As stated the exact root, as done the last grid point of step 0.01 (erratum E11).
            column="delta_threshold",
            variants=("stated", "as_done"),
        )
        for mechanism in ("laplace", "gaussian")
        for sampler in MULTISETS
    ),
    stated("efficiency_ww", "Section 4.3", efficiency, (DISTINCT,), "pct_efficiency_increase"),
    stated(
        "exp1_sigma_ratio",
        "Section 4.2.1",
        largest_ratio,
        (NOISE,),
        "max_sigma_ratio_Poisson_over_MUST.OW",
    ),
    stated(
        "adult_inv_n",
        "Section 4.2.3",
        ask.number(Numbers(NOISE, "delta", where=TABLE8)),
        column="one_over_n",
    ),
    stated(
        "s2_dx",
        "Section S7",
        ask.number(
            Numbers(COMPOSED, lambda f: 2 * f["half_width"] / f["grid_size"], where=FIGURE_S2)
        ),
        column="delta_x",
    ),
    stated(
        "sgd_k",
        "Section 4.2.3",
        ask.number(Numbers(COMPOSED, "n_compositions", where=TABLE8)),
        column="iterations_k",
    ),
    *(
        Setting(claim, column, f"composition.{path}")
        for claim, column, path in (
            ("adult_T", "iterations_k", "table8.n_compositions"),
            ("eps_c", "epsilon_c", "table8.epsilon"),
            ("fa_L", "L", "table8.half_width"),
            ("fa_r_WR", "r", "table8.grid_size_wr"),
            ("fa_r_other", "r", "table8.grid_size"),
            *((f"s2_{name}", name, f"figure_s2.{name}") for name in ("n", "m", "b")),
            ("s2_sigma", "sigma", "figure_s2.scale"),
            ("s2_L", "L", "figure_s2.half_width"),
            ("s2_r", "r", "figure_s2.grid_size"),
            ("s2_eps", "epsilon", "figure_s2.epsilon"),
            *((f"s2_k{200 * (i + 1)}", "k", f"figure_s2.n_compositions.{i}") for i in range(5)),
        )
    ),
    *(
        Setting(f"fig4_{short}", name, f"amplification_grid.{name}")
        for short, name in (("n", "n"), ("m", "m"), ("b", "b"), ("eps_max", "epsilon_max"))
    ),
    *(
        Setting(f"fig5_{name}_{short}", f"{name}_{end}", f"design_surface.{name}_{end}")
        for name in ("m", "b")
        for short, end in (("lo", "min"), ("hi", "max"))
    ),
    stated(
        "sgd_p",
        "Section 4.2.3",
        ask.number(Numbers(ADULT, "n_parameters"), "max"),
        column="parameters_p",
    ),
    *(
        stated(row, "Section 4.2.3", partial(rows_used, parts), (ADULT,), column)
        for row, column, parts in (
            ("adult_records", "records", ["n_train", "n_test"]),
            ("adult_train", "training_rows", ["n_train"]),
            ("adult_test", "test_rows", ["n_test"]),
        )
    ),
    stated(
        "exp1_cover",
        "Section 4.1",
        # A fact about N(0, 1): the data are not clipped, and 0.006 % lie outside the range (erratum
        # E4).
        lambda _: Finding(COVERED > 99.99, f"{COVERED:.4f} % inside"),
        column="pct_inside_bounds_lower_limit",
    ),
    stated(
        "sec31_ow_distinct",
        "Section 3.1",
        lambda _: Finding(
            DISTINCT_OF_EXAMPLE, f"expectation b (1 - (1 - 1/b)^m); never more than {EXAMPLE_B}"
        ),
        column="gradients_computed",
    ),
    stated(
        "sec31_wo_sizes",
        "Section 3.1",
        # m of b slots without replacement: with b < m there is no such sample (erratum E14).
        lambda _: Finding(EXAMPLE_B >= EXAMPLE_M, f"b = {EXAMPLE_B} < m = {EXAMPLE_M}"),
    ),
)
