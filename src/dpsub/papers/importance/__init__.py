"""Fay, Mair and Sjölund 2024: importance sampling."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="importance",
    title="Fay, Mair and Sjölund 2024: importance sampling",
    citation=Citation(
        authors=("Dominik Fay", "Sebastian Mair", "Jens Sjölund"),
        title="Personalized privacy amplification via importance sampling",
        venue="Transactions on Machine Learning Research",
        year=2024,
    ),
)
