"""A made-up paper, which the runs of the tests reproduce: its folder is put among the papers of a
copy of the project (`tests/workflow/runs.py`)."""

from dpsub.reproduce.papers import Citation, Paper

PAPER = Paper(
    key="example",
    title="Roe 2021: means, walks and ages",
    citation=Citation(
        authors=("Richard Roe",),
        title="Means, walks and ages",
        venue="Journal of Examples",
        year=2021,
    ),
)
