"""Bring the records of a sweep together by cell: means and spreads, and paired differences from
Poisson sampling.

Both have one row for each cell; the memory does not grow with the number of cells.
"""

from pathlib import Path

from dpsub.reproduce import summary
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.job import logged

with logged(snakemake.log[0]):
    experiment = REGISTRY.get(snakemake.wildcards.experiment)
    keys = list(dict.fromkeys([*snakemake.params.vary, *experiment.keys]))
    measured = [
        name
        for name, kind in experiment.columns.items()
        if kind != "str" and name not in (*keys, "replicate")
    ]
    files = sorted(map(Path, [*snakemake.input, *snakemake.params.finished]))
    summary.write(
        files, keys, measured, Path(snakemake.output.summary), Path(snakemake.output.differences)
    )
