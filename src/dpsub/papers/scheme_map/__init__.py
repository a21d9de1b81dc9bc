"""The noise that each way to draw batches needs, under every relation, at five trainings: a
multiplier that is proved, and one that an attack refutes."""

from dpsub.reproduce.papers import Paper

PAPER = Paper(
    key="scheme_map",
    title="Beyond the papers: the map of sampling schemes",
    rank=3,
    apart=True,
    front="map",
)
