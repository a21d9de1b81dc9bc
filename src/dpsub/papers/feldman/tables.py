"""Our bounds on epsilon of random allocation, and the packages' answers."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.feldman.settings import ASKED
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Column, Part, Table


class BoundsTable(Table):
    title = "ε of k of t steps, of k epochs of 1 of t/k steps, and of Poisson samples"
    name = "bounds"
    caption = (
        "Both bounds on ε at δ, from an attack (lower) and a proof (upper), at settings of the "
        "experiments of random-allocation 1.0.5. allocation: k of t steps. epochs: k epochs of 1 "
        "of t/k steps, by which both packages bound them. poisson: rate k/t. The curves of the "
        "papers have no printed numbers that could be read."
    )
    keys = ASKED
    layout = Layout(stub=ASKED, heads=("column",))
    parts = (
        Part(
            "feldman_bounds",
            {
                f"{name}_{end}": f"{name}_{end}"
                for name in ("allocation", "epochs", "poisson")
                for end in ("lower", "upper")
            },
            variant="stated",
        ),
    )


def both(group: pd.DataFrame) -> str:
    """Return our two bounds, between which the true epsilon lies."""
    record = group.iloc[0]
    return f"attained {record['allocation_lower']:.7g}, proved {record['allocation_upper']:.7g}"


class AnswersTable(Table):
    title = "Answers of both packages, compared with a proof and an attack"
    name = "answers"
    caption = (
        "ε that the packages answer, and whether the answer holds for k of t steps. analytic and "
        "recursive: Poisson samples at a larger rate; decomposition: Poisson samples at the rate "
        "1/t and a smaller δ; direct: Rényi divergences; lower: a lower bound; upper: by the "
        "privacy loss distribution. An upper bound is proved (yes) if it is at least our upper "
        "bound, refuted (no) if an attack attains more; for a lower bound the other way round. An "
        "empty cell is open. Answers are rounded in the package's favour in the seventh digit."
    )
    keys = ("package", "method", *ASKED)
    layout = Layout(panels=("package",), stub=("method", *ASKED), heads=("column",))
    parts = (
        # the package's own claim: its answer holds
        Part("feldman_answers", {"holds": Column(lambda group: 1.0)}, variant="stated"),
        Part(
            "feldman_answers",
            {"holds": Column("holds", note=both, empty=True)},
            variant="rigorous",
        ),
    )
