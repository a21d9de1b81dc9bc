"""Every way to draw batches that is accounted for here, under every relation, at five trainings:
what is proved, and what an attack refutes."""

from dpsub.reproduce.papers import Paper

PAPER = Paper(
    key="map",
    title="Beyond the papers: the map of sampling schemes",
    rank=3,
    apart=True,
)
