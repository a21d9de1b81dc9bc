"""Reads prepared data sets, and records of calibrated noise where an experiment needs them.
Makes the records of trained models: DP-SGD for each sampler, clusterings; one rule an experiment, one job a part.
"""

for name, experiment in of_stage("train").items():

    rule:
        name:
            f"train_{name}"
        input:
            **reads(name),
        output:
            experiment["record"],
        log:
            f"{RESULTS}/logs/train_{name}/{{part}}.log",
        benchmark:
            f"{RESULTS}/run/timings/jobs/{name}/{{part}}.tsv"
        wildcard_constraints:
            part=r"\d+-of-\d+",
        # before tables and figures, which are short and fill the end of a run
        priority: 1
        group:
            submitted_with(experiment["paper"])
        conda:
            "../envs/dpsub.yaml"
        # clock times are measured while nothing else runs
        threads: cores_of(name)
        resources:
            **node_of(name),
            mem_mb=lambda wildcards, attempt: doubled(2000, attempt),
            runtime=lambda wildcards, attempt: doubled(MINUTES, attempt),
        params:
            **asked_of(name),
        script:
            "../scripts/run_experiment.py"
