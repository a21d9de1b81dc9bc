"""Feldman and Shenfeld 2025 and 2026, two papers: random allocation, its bounds and its privacy
loss distribution."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="feldman",
    title="Feldman and Shenfeld 2025: random allocation",
    citation=Citation(
        authors=("Vitaly Feldman", "Moshe Shenfeld"),
        title="Privacy amplification by random allocation",
        venue="arXiv:2502.08202",
        year=2025,
    ),
    rank=2,
)
