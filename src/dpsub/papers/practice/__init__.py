"""Shuffled batches, and the answers of other accountants: a study of this project."""

from dpsub.reproduce.papers import Paper

PAPER = Paper(
    key="practice",
    title="Beyond the papers: shuffled batches and other accountants",
    rank=3,
)
