"""Dong and Özgür 2026: k of t steps for every record, and a Monte Carlo accountant for it."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="dong",
    title="Dong and Özgür 2026: k of t steps",
    citation=Citation(
        authors=("Andy Dong", "Ayfer Özgür"),
        title="Less random, more private: what is the optimal subsampling scheme for DP-SGD?",
        venue="arXiv:2605.07072",
        year=2026,
    ),
    rank=2,
)
