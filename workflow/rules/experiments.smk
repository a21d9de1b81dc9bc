"""One job a part of an experiment's replicates in one variant.

REQUIRED INPUTS: the prepared data sets, and the records of other experiments, that the experiment reads
OUTPUTS: <results>/records/<experiment>/<variant>/<part>.parquet;
         clock times in <results>/run/timings/records, measured while nothing else runs
"""

from dpsub.reproduce.experiments import REGISTRY as EXPERIMENTS

TIMED = [name for name in PLAN.experiments if EXPERIMENTS.get(name).timed]
UNTIMED = [name for name in PLAN.experiments if name not in TIMED]
VARIANTS = {part.variant for part in PARTS.values()}


def part_of(wildcards):
    try:
        return PARTS[wildcards.experiment, wildcards.variant, wildcards.part]
    except KeyError:
        raise WorkflowError(
            f"the plan has no part {'/'.join(wildcards)}; see the experiment's variants and parts"
        ) from None


rule run_experiment:
    input:
        data=lambda wildcards: list(data_files(wildcards.experiment).values()),
        records=lambda wildcards: shown(PLAN.records(*EXPERIMENTS.get(wildcards.experiment).needs_records)),
    output:
        records=f"{RESULTS}/records/{{experiment}}/{{variant}}/{{part}}.parquet",
    log:
        f"{RESULTS}/logs/run_experiment/{{experiment}}/{{variant}}/{{part}}.log",
    wildcard_constraints:
        experiment=one_of(UNTIMED),
        variant=one_of(VARIANTS),
        part=r"\d+-of-\d+",
    resources:
        mem_mb=memory,
        runtime=minutes,
    params:
        script=script("run_experiment.py"),
        code=lambda wildcards: code(
            "run_experiment.py", EXPERIMENTS.get(wildcards.experiment).__module__, "dpsub.reproduce.records"
        ),
        settings=lambda wildcards: json.dumps(configuration.of_experiment(PLAN.config, wildcards.experiment)),
        seed=PLAN.config["seed"],
        replicates=lambda wildcards: f"{part_of(wildcards).first}:{part_of(wildcards).stop}",
        data=lambda wildcards: [f"{name}={path}" for name, path in data_files(wildcards.experiment).items()],
    shell:
        "exec {START} {params.script:q} --experiment {wildcards.experiment} --variant {wildcards.variant}"
        " --part {wildcards.part} --replicates {params.replicates} --seed {params.seed} --code {params.code}"
        " --settings {params.settings:q} --output {output.records:q} --data {params.data:q}"
        " --records {input.records:q} > {log:q} 2>&1"


use rule run_experiment as time_experiment with:
    output:
        records=f"{RESULTS}/run/timings/records/{{experiment}}/{{variant}}/{{part}}.parquet",
    log:
        f"{RESULTS}/logs/time_experiment/{{experiment}}/{{variant}}/{{part}}.log",
    wildcard_constraints:
        experiment=one_of(TIMED),
        variant=one_of(VARIANTS),
        part=r"\d+-of-\d+",
    threads: workflow.cores or 1
