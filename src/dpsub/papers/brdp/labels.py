"""Display names that only this paper uses."""

from __future__ import annotations

from typing import ClassVar

from dpsub.reproduce.labels import Labels


class BrdpLabels(Labels):
    """Display names in tables, figures and the report."""

    name = "brdp"
    quantities: ClassVar = {
        "theorem3": "Theorem 3",
        "epsilon_y": "ε_y",
        "sigma_x": "σ_x",
        "n_individuals": "individuals",
        "n_subsets": "subsets",
        "n_repeats": "repetitions",
        "n_samples": "draws",
        "adult_attributes": "columns of Adult",
        "gowalla_checkins": "check-ins of Gowalla",
        "box_mass_pct": "share in the box, %",
        "whisker_mass_pct": "share between the whiskers, %",
    }
    words: ClassVar = {
        "lap": "Laplace",
        "gau": "Gaussian",
        "balle2020": "bounds of Balle et al. 2020",
        "lap_dp": "Laplace, DP",
        "lap_best": "Laplace, best rate",
        "gau_dp": "Gaussian, DP",
        "gau_best": "Gaussian, best rate",
        **{
            f"T1.{method}.runtime": f"Table I, {method}"
            for method in (
                "Lap-DP",
                "Gau-DP",
                "Lap-BRDP",
                "Gau-BRDP",
                "SMP-Lap-BRDP",
                "SMP-Gau-BRDP",
            )
        },
        "T1.ratio.BRDP/DP.lap": "Table I, Laplace, BRDP over DP",
        "T1.ratio.BRDP/DP.gau": "Table I, Gaussian, BRDP over DP",
        "T1.ratio.SMP/BRDP.lap": "Table I, Laplace, SMP over BRDP",
        "T1.ratio.SMP/BRDP.gau": "Table I, Gaussian, SMP over BRDP",
    }
