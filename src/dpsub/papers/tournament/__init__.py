"""Every sampler and schedule at one proved privacy, over sizes, epochs and targets: this project's
own tournament."""

from dpsub.reproduce.papers import Paper

PAPER = Paper(
    key="tournament",
    title="Beyond the papers: the tournament of samplers and schedules",
    rank=4,
    apart=True,
)
