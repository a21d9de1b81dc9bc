"""The jobs of a sweep's plan, and its summary; run_sweep.py writes the plan and calls this, as one run a results folder.

REQUIRED INPUTS: <results>/run/plan.json as the configuration, <results>/run/jobs/<part>.json
OUTPUTS: <results>/records/<experiment>/<variant>/<part>.parquet,
         <results>/summary/<experiment>.parquet, <results>/summary/<experiment>_differences.parquet
"""

from pathlib import Path
from types import SimpleNamespace

from snakemake.utils import min_version

from dpsub.data.dataset import REGISTRY as DATA_SETS

min_version("9.0")

ROOT = Path(str(workflow.current_basedir)).resolve().parent
RESULTS, JOBS = config["results"], config["jobs"]
EXPERIMENTS = sorted(config["code"])
PREPARED = sorted({name for job in JOBS.values() for name in job["data_sets"]})
PLAN = SimpleNamespace(
    config=config,
    experiments=EXPERIMENTS,
    data_sets=lambda *_: PREPARED,
    data_file=lambda name: Path(RESULTS) / "data" / f"{name}{DATA_SETS.get(name).suffix}",
)


include: "rules/jobs.smk"
include: "rules/resources.smk"
include: "rules/data.smk"


def data_of(wildcards):
    return [str(PLAN.data_file(name)) for name in JOBS[wildcards.part]["data_sets"]]


def records_of(wildcards):
    new = [
        f"{RESULTS}/records/{job['experiment']}/{job['variant']}/{part}.parquet"
        for part, job in JOBS.items()
        if job["experiment"] == wildcards.experiment
    ]
    return [*config["finished"][wildcards.experiment], *new]


rule all_cells:
    default_target: True
    input:
        expand(f"{RESULTS}/summary/{{experiment}}.parquet", experiment=EXPERIMENTS),


rule run_cells:
    input:
        job=f"{RESULTS}/run/jobs/{{part}}.json",
        data=data_of,
    output:
        f"{RESULTS}/records/{{experiment}}/{{variant}}/{{part}}.parquet",
    log:
        f"{RESULTS}/logs/run_cells/{{experiment}}/{{variant}}/{{part}}.log",
    benchmark:
        f"{RESULTS}/run/timings/records/{{experiment}}/{{variant}}/{{part}}.tsv"
    wildcard_constraints:
        experiment=one_of(EXPERIMENTS),
        part=one_of(JOBS),
    resources:
        mem_mb=lambda wildcards, attempt: grown("mem_mb", JOBS[wildcards.part]["memory"], attempt),
        runtime=lambda wildcards, attempt: grown("runtime", JOBS[wildcards.part]["minutes"], attempt),
    params:
        script=script("run_cells.py"),
        code=lambda wildcards: config["code"][wildcards.experiment],
        data=lambda wildcards, input: [f"{Path(path).stem}={path}" for path in input.data],
    shell:
        "exec {START} {params.script:q} --job {input.job:q} --code {params.code} --output {output:q}"
        " --data {params.data:q} > {log:q} 2>&1"


rule summarise_cells:
    input:
        records_of,
    output:
        summary=f"{RESULTS}/summary/{{experiment}}.parquet",
        differences=f"{RESULTS}/summary/{{experiment}}_differences.parquet",
    log:
        f"{RESULTS}/logs/summarise_cells/{{experiment}}.log",
    wildcard_constraints:
        experiment=one_of(EXPERIMENTS),
    localrule: True
    params:
        script=script("summarise_cells.py"),
        records=lambda wildcards: f"{RESULTS}/records/{wildcards.experiment}",
        vary=lambda wildcards: config["varied"][wildcards.experiment],
        code=code("summarise_cells.py", "dpsub.reproduce.summary"),
    shell:
        "exec {START} {params.script:q} --experiment {wildcards.experiment} --vary {params.vary:q}"
        " --records {params.records:q} --summary {output.summary:q} --differences {output.differences:q} > {log:q} 2>&1"
