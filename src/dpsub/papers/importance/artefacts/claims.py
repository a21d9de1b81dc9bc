"""Numbers and statements of the text of Fay et al., each with a value that a computation on records gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpsub.data.described import EIGHT
from dpsub.papers.importance.artefacts.labels import OnData
from dpsub.papers.importance.artefacts.statements import COSTS, DATA, NOISE, PROFILES, STATEMENTS, SUMS, finite_maximum
from dpsub.papers.importance.artefacts.times import BAR_SIZE
from dpsub.reproduce.artefact import Records, values_frame
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.predicates import Frames, LackingError, of_variant, pick

Read = Callable[[Frames], float]


class Claims(OnData):
    """What the paper states: settings, numbers, and comparisons of samplers."""

    name = "claims"
    kind = "claims"
    caption = (
        "Numbers and statements of Fay et al., each computed from the records: 1 where a statement holds, 0 where it "
        "fails; the note gives the numbers that decide. As done: the released code; consistent: the repaired "
        "algorithm. Statements on data are judged on the paper's data only."
    )
    experiments = (DATA, SUMS, NOISE, COSTS, PROFILES)
    keys = ("claim",)
    layout = Layout(stub=("claim",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = list(_numbers(records))
        for statement in STATEMENTS:
            rows += statement.answers(records)
        return values_frame(rows)

    def labels(self, records: Records) -> tuple[str, ...]:
        """None: each statement says itself on what data it is judged."""
        return ()


def _field(experiment: str, name: str, **where: object) -> Read:
    return lambda frames: float(pick(of_variant(frames, experiment, "stated"), **where)[name].iloc[0])


def _extreme(experiment: str, name: str, largest: bool, **where: object) -> Read:
    def read(frames: Frames) -> float:
        values = pick(of_variant(frames, experiment, "stated"), **where)[name]
        return finite_maximum(values) if largest else float(values.min())

    return read


def _laplace_variance(frames: Frames) -> float:
    """Noise part of the error per dimension over the squared scale: what the exact error has beyond sampling's."""
    frame = pick(of_variant(frames, SUMS, "stated"), topic="curve", sampler="unif", rule="free")
    last = frame.sort_values("scale").iloc[-1]
    first = frame.sort_values("scale").iloc[0]
    n, norms = last["n"], []
    # error = 2 b^2 d + (n/m - 1) S at both ends: two equations, the factor of b^2 d and S unknown
    for row in (first, last):
        norms.append((row["scale"] ** 2 * row["d"], n / row["m"] - 1, row["mse_exact"]))
    (a, b, y), (c, e, z) = norms
    return float(np.round((y * e - z * b) / (a * e - c * b), 9))


def _share_drawn(frames: Frames) -> float:
    """Of Covertype at the size of Figure 5, right, by Table 1's number of rows."""
    return 100 * BAR_SIZE / EIGHT["covertype"].n


def _repeats(frames: Frames) -> float:
    return float(of_variant(frames, COSTS, "stated")["replicate"].nunique())


def _size(largest: bool) -> Read:
    def read(frames: Frames) -> float:
        sizes = of_variant(frames, NOISE, "stated")["m_paper"]
        sizes = sizes[sizes > 0]
        return float(sizes.max() if largest else sizes.min())

    return read


def _target_of_sizes(largest: bool) -> Read:
    """Full data is run at the targets of Figures 4 and 7 only."""
    return _extreme(NOISE, "epsilon", largest, sampler="full", data_label="table1")


def _rho(frames: Frames) -> float:
    """The constant that the split between counts and sums was computed with, (4 d rho^2)^(1/3) = 1 / offset."""
    row = pick(of_variant(frames, NOISE, "stated"), data_label="table1").iloc[0]
    return float(np.round(np.sqrt(1 / (4 * row["d"] * row["offset"] ** 3)), 9))


NUMBERS: dict[tuple[str, str], Read] = {
    ("c02", "n"): _field(SUMS, "n"),
    ("c03", "d"): _field(SUMS, "d"),
    ("c04", "variance"): _field(SUMS, "variance_per_dimension"),
    ("c05", "m"): lambda frames: float(np.round(_field(SUMS, "m", topic="weight", sampler="opt")(frames), 6)),
    ("c06", "smallest_scale"): lambda frames: float(np.round(_extreme(SUMS, "scale", False, topic="curve")(frames), 9)),
    ("c07", "largest_scale"): lambda frames: float(np.round(_extreme(SUMS, "scale", True, topic="curve")(frames), 6)),
    ("c08", "runs"): _field(SUMS, "runs", topic="curve"),
    ("c09", "variance"): _laplace_variance,
    ("c13", "iterations"): _field(COSTS, "iterations"),
    ("c14", "clusters"): _field(COSTS, "clusters"),
    ("c15", "rho"): _rho,
    ("c16", "percentile"): _field(DATA, "percentile"),
    ("c18", "share"): _field(NOISE, "mixing", sampler="core"),
    ("c20", "replicates"): _repeats,
    ("c21", "smallest_m"): _size(False),
    ("c22", "largest_m"): _size(True),
    ("c23", "smaller_epsilon"): _target_of_sizes(False),
    ("c23", "larger_epsilon"): _target_of_sizes(True),
    ("c26", "percent"): _share_drawn,
}


def _numbers(records: Frames) -> Iterator[dict[str, Any]]:
    for (row, column), read in NUMBERS.items():
        base = {"claim": row, "column": column, "variant": "stated"}
        try:
            yield {**base, "value": read(records)}
        except LackingError as reason:
            yield {**base, "note": str(reason)}
