"""Jiang, Du, Sharma and Yan 2024: budget recycling."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="brdp",
    title="Jiang, Du, Sharma and Yan 2024: budget recycling",
    citation=Citation(
        authors=("Bo Jiang", "Jian Du", "Sagar Sharma", "Qiang Yan"),
        title="Budget recycling differential privacy",
        venue="arXiv:2403.11445",
        year=2024,
    ),
)
