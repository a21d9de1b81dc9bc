"""Schuchardt, Stoian, Kosmala and Günnemann 2024: groups of records and amplification, jointly."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="schuchardt",
    title="Schuchardt et al. 2024: groups of records",
    citation=Citation(
        authors=("Jan Schuchardt", "Mihail Stoian", "Arthur Kosmala", "Stephan Günnemann"),
        title=(
            "Unified mechanism-specific amplification by subsampling and group privacy "
            "amplification"
        ),
        venue="NeurIPS; arXiv:2403.04867",
        year=2024,
    ),
    rank=2,
)
