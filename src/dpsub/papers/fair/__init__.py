"""Every sampler at one proved privacy: this project's own comparison."""

from dpsub.reproduce.papers import Paper

PAPER = Paper(
    key="fair",
    title="Beyond the papers: every sampler at one proved privacy",
    rank=2,
)
