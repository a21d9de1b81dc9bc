"""Birrell, Ebrahimi, Behnia and Pacheco 2024: Rényi bounds for batches of fixed size."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="birrell",
    title="Birrell et al. 2024: batches of fixed size",
    citation=Citation(
        authors=("Jeremiah Birrell", "Reza Ebrahimi", "Rouzbeh Behnia", "Jason Pacheco"),
        title=(
            "Differentially private stochastic gradient descent with fixed-size minibatches: "
            "tighter RDP guarantees with or without replacement"
        ),
        venue="NeurIPS; arXiv:2408.10456",
        year=2024,
    ),
    rank=2,
)
