"""What the papers are called; a paper that is not listed is shown by its key."""

from __future__ import annotations

TITLES = {
    "must": "Zhao and Liu 2023: multistage sampling (MUST)",
    "balle": "Balle, Barthe and Gaboardi 2018: couplings and divergences",
    "brdp": "Jiang, Du, Sharma and Yan 2024: budget recycling",
    "bun": "Bun, Drechsler, Gaboardi, McMillan and Sarathy 2022: stratified and cluster sampling",
    "importance": "Fay, Mair and Sjölund 2024: importance sampling",
    "fair": "Beyond the papers: every sampler at one proved privacy",
}


def title(paper: str) -> str:
    """Return the display name of a paper."""
    return TITLES.get(paper, paper)
