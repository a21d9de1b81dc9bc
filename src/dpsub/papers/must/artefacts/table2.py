"""Table 2: eta and delta' of every sampler, as formulas and evaluated."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce.artefact import Artefact, Records, values_frame

# sampler -> (eta, delta'), delta_u being the group profile of u copies at the base epsilon
FORMULAS = {
    "poisson": (r"\gamma", r"\gamma\,\delta"),
    "wor": (r"m/n", r"(m/n)\,\delta"),
    "wr": (r"1-(1-\frac{1}{n})^m", r"\sum_{u=1}^m \binom{m}{u} n^{-u} (1-\frac{1}{n})^{m-u} \delta_u"),
    "must_wo": (r"1-(1-\frac{1}{n})^m", r"\sum_{u=1}^m \binom{m}{u} n^{-u} (1-\frac{1}{n})^{m-u} \delta_u"),
    "must_ow": (
        r"\frac{b}{n}(1-(1-\frac{1}{b})^m)",
        r"\frac{b}{n} \sum_{u=1}^m \binom{m}{u} b^{-u} (1-\frac{1}{b})^{m-u} \delta_u",
    ),
    "must_ww": (
        r"\sum_{j=1}^b P_j (1-(1-\frac{j}{b})^m)",
        r"\sum_{j=1}^b P_j \sum_{u=1}^m \binom{m}{u} (\frac{j}{b})^u (1-\frac{j}{b})^{m-u} \delta_u",
    ),
}


class Table2(Artefact):
    """The formulas, with eta at the configured sizes and the largest departure of the recorded grid from them."""

    name = "table2"
    kind = "table"
    caption = (
        "Inclusion probability eta and amplified delta' of each sampler, with epsilon' = log(1 + eta (exp(epsilon) - "
        "1)) for all; P_j is the Binomial(b, 1/n) probability of j copies after the first stage, delta_u the profile "
        "of a group of u. eta is evaluated at the configured sizes; the departure is the largest |epsilon' - formula| "
        "over the recorded grid, in nats."
    )
    experiments = ("amplification_grid",)
    keys = ("sampler",)

    def formulas(self) -> list[dict[str, str]]:
        return [
            {"sampler": sampler, "column": column, "printed": formula}
            for sampler, pair in FORMULAS.items()
            for column, formula in zip(("eta_formula", "delta_amplified_formula"), pair, strict=True)
        ]

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        grid = in_order(self.needed(records, "amplification_grid"))
        for (variant, sampler), cell in grid.groupby(["variant", "sampler"], sort=False):
            eta = float(cell["eta"].iloc[0])
            formula = np.log1p(eta * np.expm1(cell["epsilon"].to_numpy()))
            departure = float(np.max(np.abs(formula - cell["epsilon_amplified"].to_numpy())))
            rows += [
                {"sampler": sampler, "column": name, "variant": variant, "value": value}
                for name, value in (("eta", eta), ("departure", departure))
            ]
        return values_frame(rows)
