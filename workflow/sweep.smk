"""The cells of a sweep that are not finished, and its summaries; scripts/run_sweep.py writes the plan that this reads."""

from snakemake.utils import min_version

min_version("9.0")


include: "rules/common.smk"


from dpsub.reproduce import planned, provenance
from dpsub.reproduce.sweep import prepared_file

RESULTS, JOBS, DATA_CHOICES = config["results"], config["jobs"], config["data"]
EXPERIMENTS = sorted(config["code"])
DATA = {
    name: {"file": str(prepared_file(Path(RESULTS), name)), "code": planned.code_of_data(name)}
    for job in JOBS.values()
    for name in job["data_sets"]
}


include: "rules/data.smk"


def job_of(wildcards):
    """Return a job of the plan; an error if it is not in the plan."""
    if wildcards.part not in JOBS:
        refuse(f"the plan has no job {wildcards.part}; plan the sweep again")
    return JOBS[wildcards.part]


def new_cells(wildcards):
    return [
        f"{RESULTS}/records/{job['experiment']}/{job['variant']}/{part}.parquet"
        for part, job in JOBS.items()
        if job["experiment"] == wildcards.experiment
    ]


rule all_cells:
    default_target: True
    input:
        expand(f"{RESULTS}/summary/{{experiment}}.parquet", experiment=EXPERIMENTS),


rule run_cells:
    input:
        job=f"{RESULTS}/run/jobs/{{part}}.json",
        data=lambda wildcards: [DATA[name]["file"] for name in job_of(wildcards)["data_sets"]],
    output:
        f"{RESULTS}/records/{{experiment}}/{{variant}}/{{part}}.parquet",
    log:
        f"{RESULTS}/logs/run_cells/{{experiment}}/{{variant}}/{{part}}.log",
    benchmark:
        f"{RESULTS}/run/timings/records/{{experiment}}/{{variant}}/{{part}}.tsv"
    wildcard_constraints:
        experiment=one_of(EXPERIMENTS),
        # no list of the jobs, which Snakemake would read through for each of them
        part="[0-9a-f]+",
    conda:
        "envs/dpsub.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: doubled(job_of(wildcards)["memory"], attempt),
        runtime=lambda wildcards, attempt: doubled(job_of(wildcards)["minutes"], attempt),
    params:
        code=lambda wildcards: config["code"][wildcards.experiment],
    script:
        "scripts/run_cells.py"


rule summarise_cells:
    input:
        new_cells,
    output:
        summary=f"{RESULTS}/summary/{{experiment}}.parquet",
        differences=f"{RESULTS}/summary/{{experiment}}_differences.parquet",
    log:
        f"{RESULTS}/logs/summarise_cells/{{experiment}}.log",
    wildcard_constraints:
        experiment=one_of(EXPERIMENTS),
    localrule: True
    conda:
        "envs/dpsub.yaml"
    params:
        vary=lambda wildcards: config["varied"][wildcards.experiment],
        # no inputs, as the rule above matches them: no job of this plan makes them
        finished=lambda wildcards: config["finished"][wildcards.experiment],
        code=provenance.digest("dpsub.reproduce.summary"),
    script:
        "scripts/summarise_cells.py"


onsuccess:
    print(
        f"the cells of {RESULTS}, one per row, and their paired differences from Poisson sampling: {RESULTS}/summary/"
    )


onerror:
    print(failures(Path(RESULTS), STARTED))
