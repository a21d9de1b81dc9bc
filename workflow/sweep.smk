"""The jobs of a sweep's plan, and its summary; run_sweep.py writes the plan and calls this, as one run a results folder.

REQUIRED INPUTS: <results>/run/plan.json as the configuration, <results>/run/jobs/<part>.json
OUTPUTS: <results>/records/experiment=<name>/part-<part>.parquet,
         <results>/summary/experiment=<name>.parquet, <results>/summary/differences=<name>.parquet
"""

from pathlib import Path
from types import SimpleNamespace

from snakemake.utils import min_version

min_version("9.0")

ROOT = Path(str(workflow.current_basedir)).resolve().parent
RESULTS, JOBS = config["results"], config["jobs"]
EXPERIMENTS = sorted(config["code"])
DATA_SETS = sorted({name for job in JOBS.values() for name in job["data_sets"]})
PLAN = SimpleNamespace(
    config=config,
    experiments=EXPERIMENTS,
    data_sets=lambda *_: DATA_SETS,
    data_file=lambda name: Path(RESULTS) / "data" / f"{name}.parquet",
)


include: "rules/jobs.smk"
include: "rules/resources.smk"
include: "rules/data.smk"


def data_of(wildcards):
    return [str(PLAN.data_file(name)) for name in JOBS[wildcards.part]["data_sets"]]


def records_of(experiment):
    named = [part for part, job in JOBS.items() if job["experiment"] == experiment]
    return [f"{RESULTS}/records/experiment={experiment}/part-{part}.parquet" for part in named]


rule all_cells:
    default_target: True
    input:
        [f"{RESULTS}/summary/experiment={name}.parquet" for name in EXPERIMENTS],


rule run_bundle:
    input:
        job=f"{RESULTS}/run/jobs/{{part}}.json",
        data=data_of,
    output:
        records=f"{RESULTS}/records/experiment={{experiment}}/part-{{part}}.parquet",
    log:
        f"{RESULTS}/logs/run_bundle/{{experiment}}/{{part}}.log",
    wildcard_constraints:
        experiment=one_of(EXPERIMENTS),
        part="[0-9a-f]{32}",
    resources:
        mem_mb=lambda wildcards, attempt: grown("mem_mb", JOBS[wildcards.part]["memory"], attempt),
        runtime=lambda wildcards, attempt: grown("runtime", JOBS[wildcards.part]["minutes"], attempt),
    params:
        script=script("run_bundle.py"),
        code=lambda wildcards: config["code"][wildcards.experiment],
        data=lambda wildcards, input: [f"{Path(path).stem}={path}" for path in input.data],
    shell:
        "exec {START} {params.script:q} --job {input.job:q} --code {params.code} --output {output.records:q}"
        " --data {params.data:q} > {log:q} 2>&1"


rule summarise_cells:
    input:
        lambda wildcards: records_of(wildcards.experiment),
    output:
        f"{RESULTS}/summary/experiment={{experiment}}.parquet",
        f"{RESULTS}/summary/differences={{experiment}}.parquet",
    log:
        f"{RESULTS}/logs/summarise_cells/{{experiment}}.log",
    wildcard_constraints:
        experiment=one_of(EXPERIMENTS),
    localrule: True
    params:
        script=script("summarise_cells.py"),
        results=RESULTS,
        parts=config["parts"],
        code=code("summarise_cells.py", "dpsub.reproduce.sweeps.by_cell", "dpsub.reproduce.sweeps.differences"),
    shell:
        "exec {START} {params.script:q} --results {params.results:q} --experiment {wildcards.experiment} > {log:q} 2>&1"
