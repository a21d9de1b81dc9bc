"""All samplers at equal proved privacy: a comparison of this project."""

from dpsub.reproduce.papers import Paper

PAPER = Paper(
    key="fair",
    title="Beyond the papers: all samplers at equal proved privacy",
    rank=2,
)
