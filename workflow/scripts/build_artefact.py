"""Make one table, figure or list of claims from records."""

from pathlib import Path

from dpsub.reproduce import artefact as base
from dpsub.reproduce import artefacts, records
from dpsub.reproduce.job import logged

with logged(snakemake.log[0]):
    artefact = artefacts.REGISTRY.get(snakemake.wildcards.artefact)()
    base.build(
        artefact,
        records.gather(map(Path, snakemake.input.records), config_digests=snakemake.params.digests),
        base.printed_rows(artefact),
        base.OutputDirs.under(Path(snakemake.output.comparison).parents[2]),
        settings=snakemake.params.settings,
        quoted=base.quoted_rows(artefact),
    )
