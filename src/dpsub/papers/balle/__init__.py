"""Balle, Barthe and Gaboardi 2018: amplification by couplings and divergences."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="balle",
    title="Balle, Barthe and Gaboardi 2018: couplings and divergences",
    citation=Citation(
        authors=("Borja Balle", "Gilles Barthe", "Marco Gaboardi"),
        title="Privacy amplification by subsampling: tight analyses via couplings and divergences",
        venue="NeurIPS; arXiv:1807.01647",
        year=2018,
    ),
)
