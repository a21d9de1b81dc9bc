"""Make tables, figures or lists of claims from records."""

from pathlib import Path

from dpsub.reproduce import artefact as base
from dpsub.reproduce import artefacts, records, sums
from dpsub.reproduce.job import logged

with logged(snakemake.log[0]):
    params = snakemake.params
    found = records.gather(map(Path, snakemake.input.records), config_digests=params.digests)
    results = Path(snakemake.output.comparison[0]).parents[2]
    written = []
    for name in params.artefacts:
        artefact = artefacts.REGISTRY.get(name)()
        files = base.build(
            artefact,
            {read: found[read] for read in artefact.experiments if read in found},
            base.printed_rows(artefact),
            base.OutputDirs.under(results),
            settings=params.settings,
            quoted=base.quoted_rows(artefact),
        )
        written += files.values()
    sums.write(Path(snakemake.output.sums), written, results)
