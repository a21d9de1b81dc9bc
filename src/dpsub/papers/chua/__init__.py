"""Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha and Zhang 2024, two papers: shuffled batches and
Poisson samples."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="chua",
    title="Chua et al. 2024: shuffled batches",
    citation=Citation(
        authors=(
            "Lynn Chua",
            "Badih Ghazi",
            "Pritish Kamath",
            "Ravi Kumar",
            "Pasin Manurangsi",
            "Amer Sinha",
            "Chiyuan Zhang",
        ),
        title="How private are DP-SGD implementations?",
        venue="ICML; arXiv:2403.17673",
        year=2024,
    ),
    rank=2,
)
