"""Zhao and Liu 2023: multistage sampling (MUST)."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="must",
    title="Zhao and Liu 2023: multistage sampling (MUST)",
    citation=Citation(
        authors=("Xingyuan Zhao", "Fang Liu"),
        title="Enhancing trade-offs in privacy, utility, and computational efficiency through "
        "multistage sampling technique (MUST)",
        venue="arXiv:2312.13389v1",
        year=2023,
    ),
    rank=0,
)
