"""Table 3: amplified (epsilon', delta') of six base epsilons, two mechanisms, two ratios of sensitivity to scale."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout

EPSILONS = (0.05, 0.5, 1.0, 2.0, 3.0, 4.5)


class Table3(Artefact):
    """Values of the privacy profiles that Figure 4 draws, at six points of its grid."""

    name = "table3"
    kind = "table"
    caption = (
        "Base and amplified privacy parameters (epsilon in nats) of the Laplace and Gaussian mechanisms under each "
        "sampler, at six base epsilons; exact values, no intervals."
    )
    experiments = ("amplification_grid",)
    keys = ("ratio", "mechanism", "sampler", "epsilon")
    layout = Layout(panels=("ratio", "mechanism"), stub=("sampler", "column"), heads=("epsilon",))

    def values(self, records: Records) -> pd.DataFrame:
        grid = self.needed(records, "amplification_grid")
        rows = []
        for (ratio, mechanism), block in grid.groupby(["ratio", "mechanism"], sort=False):
            for epsilon in EPSILONS:
                here = block[np.isclose(block["epsilon"], epsilon, rtol=0, atol=1e-9)]
                for count, record in enumerate(in_order(here).to_dict("records")):
                    fields = {"ratio": ratio, "mechanism": mechanism}
                    if count == 0:
                        base = {**fields, "sampler": "none", "epsilon": epsilon}
                        rows += [
                            {**base, "column": name, "variant": record["variant"], "value": record[name]}
                            for name in ("epsilon", "delta")
                        ]
                    row = {**fields, "sampler": record["sampler"], "epsilon": epsilon}
                    rows += [
                        {**row, "column": name, "variant": record["variant"], "value": record[name]}
                        for name in ("epsilon_amplified", "delta_amplified")
                    ]
        return values_frame(rows)
