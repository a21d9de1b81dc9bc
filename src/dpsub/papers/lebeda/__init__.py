"""Lebeda, Regehr, Kamath and Steinke 2024: pitfalls of accounting for composed subsampling."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="lebeda",
    title="Lebeda et al. 2024: pitfalls under composition",
    citation=Citation(
        authors=("Christian Janos Lebeda", "Matthew Regehr", "Gautam Kamath", "Thomas Steinke"),
        title=(
            "Avoiding pitfalls for privacy accounting of subsampled mechanisms under composition"
        ),
        venue="arXiv:2405.20769",
        year=2024,
    ),
    rank=2,
)
