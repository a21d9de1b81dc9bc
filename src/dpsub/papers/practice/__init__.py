"""Shuffled batches, and the answers of other accountants: a study of this project."""

from dpsub.reproduce.papers import Paper

PAPER = Paper(
    key="practice",
    title="Beyond the papers: schedules that people train with, and what other accountants answer",
    rank=3,
)
