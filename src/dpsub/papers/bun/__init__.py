"""Bun, Drechsler, Gaboardi, McMillan and Sarathy 2022: stratified and cluster sampling."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="bun",
    title="Bun, Drechsler, Gaboardi, McMillan and Sarathy 2022: stratified and cluster sampling",
    citation=Citation(
        authors=(
            "Mark Bun",
            "Jörg Drechsler",
            "Marco Gaboardi",
            "Audra McMillan",
            "Jayshree Sarathy",
        ),
        title="Controlling privacy loss in sampling schemes: an analysis of stratified and cluster "
        "sampling",
        venue="arXiv:2007.12674",
        year=2022,
    ),
)
