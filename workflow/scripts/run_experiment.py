"""Run one part of one experiment in one variant and write its records."""

from pathlib import Path

from dpsub.reproduce import experiments, provenance, records
from dpsub.reproduce.job import label_of, logged

with logged(snakemake.log[0]):
    wildcards, params = snakemake.wildcards, snakemake.params
    experiment = experiments.REGISTRY.get(wildcards.experiment)()
    data = {name: Path(path) for name, path in zip(params.data_sets, snakemake.input.data, strict=True)}
    read = [Path(path) for path in snakemake.input.records]
    first, stop = params.replicates
    frame = experiment.compute(
        # What else is computed, and where, is no setting of this job: it must not make it run again.
        {**params.settings, "variants": [wildcards.variant], "parts": 1},
        variant=wildcards.variant,
        replicates=range(first, stop),
        seed=params.seed,
        data=data,
        records=records.gather(read),
    )
    origin = records.Origin(
        experiment=wildcards.experiment,
        variant=wildcards.variant,
        part=wildcards.part,
        first=first,
        stop=stop,
        seed=params.seed,
        settings=params.settings,
        config_digest=provenance.settings_digest({"seed": params.seed, **params.settings}),
        code_digest=params.code,
        inputs={
            **{name: provenance.file_digest(path) for name, path in data.items()},
            **{"/".join(path.parts[-3:]): provenance.file_digest(path) for path in read},
        },
        data=", ".join(sorted({label_of(path) for path in data.values()})),
        versions=provenance.versions(),
    )
    records.write(Path(snakemake.output[0]), frame, columns=experiment.columns, origin=origin)
