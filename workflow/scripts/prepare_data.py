"""Find or download the raw files of a data set, prepare it, and write what the experiments read."""

from pathlib import Path

from dpsub.data import fetch
from dpsub.data.dataset import REGISTRY
from dpsub.reproduce.job import logged

with logged(snakemake.log[0]):
    choices, data_set = snakemake.params.choices, REGISTRY.get(snakemake.params.data_set)()
    obtained = fetch.obtain(
        data_set.source or data_set.name,
        data_set.files,
        sources=Path(snakemake.params.sources),
        raw=Path("data/raw"),
        folder=Path(choices["folder"]) if choices["folder"] else None,
        download=choices["download"],
        fallback=choices["fallback"],
    )
    if obtained.reason:
        print(f"{data_set.name}: working with a synthetic stand-in ({obtained.reason})")
    rows = data_set.make(obtained, Path(snakemake.output.data))
    print(f"{data_set.name}: {rows} records ({obtained.label}) in {snakemake.output.data}")
