"""Run one part of one experiment in all its variants and write its records."""

from pathlib import Path

import pandas as pd

from dpsub.files import checksum
from dpsub.reproduce import experiments, provenance, records
from dpsub.reproduce.job import label_of, logged

with logged(snakemake.log[0]):
    params = snakemake.params
    experiment = experiments.REGISTRY.get(params.experiment)()
    data = {
        name: Path(path) for name, path in zip(params.data_sets, snakemake.input.data, strict=True)
    }
    read = [Path(path) for path in snakemake.input.records]
    (first, stop), others = params.replicates, records.gather(read)
    frames = [
        experiment.compute(
            {**params.settings, "variants": [variant], "parts": 1},
            variant=variant,
            replicates=range(first, stop),
            seed=params.seed,
            data=data,
            records=others,
        ).assign(variant=variant)
        for variant in params.variants
    ]
    origin = records.RunOrigin(
        experiment=experiment.name,
        part=snakemake.wildcards.part,
        first=first,
        stop=stop,
        seed=params.seed,
        settings=params.settings,
        config_digest=provenance.settings_digest(
            {"seed": params.seed, "variants": params.variants, **params.settings}
        ),
        code_digest=params.code,
        inputs={
            **{name: checksum(path) for name, path in data.items()},
            **{"/".join(path.parts[-3:]): checksum(path) for path in read},
        },
        data=", ".join(sorted({label_of(path) for path in data.values()})),
        versions=provenance.versions(),
    )
    frame = pd.concat(frames, ignore_index=True)
    records.write(Path(snakemake.output[0]), frame, columns=experiment.columns, origin=origin)
