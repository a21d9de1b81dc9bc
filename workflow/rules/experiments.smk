"""Run one job for each part of an experiment's replicates; clock times are measured while nothing else runs."""


rule run_experiment:
    input:
        data=lambda wildcards: [
            DATA[name] for name in EXPERIMENTS[wildcards.experiment]["data_sets"]
        ],
        records=lambda wildcards: records_of(EXPERIMENTS[wildcards.experiment]["needs_records"]),
    output:
        f"{RESULTS}/records/{{experiment}}/{{part}}.parquet",
    log:
        f"{RESULTS}/logs/run_experiment/{{experiment}}/{{part}}.log",
    benchmark:
        f"{RESULTS}/run/timings/jobs/{{experiment}}/{{part}}.tsv"
    wildcard_constraints:
        experiment=one_of(UNTIMED),
        part=r"\d+-of-\d+",
    # before tables and figures, which are short and fill the end of a run
    priority: 1
    conda:
        "../envs/dpsub.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: doubled(2000, attempt),
        runtime=lambda wildcards, attempt: doubled(30, attempt),
    params:
        seed=CONFIG["seed"],
        variants=lambda wildcards: EXPERIMENTS[wildcards.experiment]["variants"],
        settings=lambda wildcards: EXPERIMENTS[wildcards.experiment]["settings"],
        replicates=lambda wildcards: part_of(wildcards),
        data_sets=lambda wildcards: EXPERIMENTS[wildcards.experiment]["data_sets"],
        code=lambda wildcards: EXPERIMENTS[wildcards.experiment]["code"],
    script:
        "../scripts/run_experiment.py"


use rule run_experiment as time_experiment with:
    output:
        f"{RESULTS}/run/timings/records/{{experiment}}/{{part}}.parquet",
    log:
        f"{RESULTS}/logs/time_experiment/{{experiment}}/{{part}}.log",
    benchmark:
        f"{RESULTS}/run/timings/jobs/{{experiment}}/{{part}}.tsv"
    wildcard_constraints:
        experiment=one_of(TIMED),
        part=r"\d+-of-\d+",
    # alone on the machine; at smoke size the times mean nothing
    threads: 1 if CONFIG["size"] == "smoke" else workflow.cores or 1
