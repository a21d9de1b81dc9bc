"""Write the pages of the report of a run."""

import json
from pathlib import Path

import yaml

from dpsub.reproduce import artefacts, report, sums, verdicts, yaml_files
from dpsub.reproduce.artefact import OutputDirs
from dpsub.reproduce.job import logged


def json_of(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


with logged(snakemake.log[0]):
    index, environment = Path(snakemake.output.index), json_of(snakemake.input.environment)
    configuration = Path(snakemake.input.config)
    results = index.parents[1]
    run = report.FinishedRun(
        artefacts=[artefacts.REGISTRY.get(name)() for name in snakemake.params.artefacts],
        dirs=OutputDirs.under(results),
        comparison=verdicts.read(Path(snakemake.input.comparison)),
        data=[json_of(path) for path in snakemake.input.data],
        errata=[Path(path) for path in snakemake.input.errata],
        provenance={
            "seed": str(snakemake.params.seed),
            "commit": environment["commit"],
            "configuration": snakemake.params.configuration[:12],
        },
        environment=environment,
        citation=yaml.safe_load(Path(snakemake.input.citation).read_text(encoding="utf-8")),
        configuration=configuration.read_text(encoding="utf-8"),
        timings=results / "run/timings/jobs",
        settings=yaml_files.read(configuration)["experiments"],
        remarks=snakemake.params.remarks,
        front=snakemake.params.front,
        options=snakemake.params.options,
        published=snakemake.params.published,
    )
    report.write_report(index.parent, run, processes=snakemake.threads)
    pages = map(Path, [index, *snakemake.output.pages])
    sums.write(Path(snakemake.output.sums), pages, results)
