"""Compute the cells of one job of a sweep and write their records."""

import time
from pathlib import Path

from dpsub.reproduce import sweep
from dpsub.reproduce.job import label_of, logged

with logged(snakemake.log[0]):
    data = {Path(path).stem: Path(path) for path in snakemake.input.data}
    label = ", ".join(sorted({label_of(path) for path in data.values()}))
    job, output = Path(snakemake.input.job), Path(snakemake.output[0])
    started = time.perf_counter()
    sweep.compute(job, output, data=data, label=label, code=snakemake.params.code)
    print(f"computed in {time.perf_counter() - started:.3f} s")
