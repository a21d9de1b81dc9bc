"""The plan of a run, made in the environment of its jobs; rules/common.smk calls this where Snakemake
has not all that dpsub needs."""

from snakemake.utils import min_version

min_version("9.0")


include: "rules/common.smk"


container: config["config"].get("container")


rule make_plan:
    output:
        config["plan"],
    log:
        f"{config['plan'].removesuffix('.json')}/logs/make_plan.log",
    localrule: True
    conda:
        "envs/dpsub.yaml"
    params:
        config=config["config"],
        root=str(ROOT),
    script:
        "scripts/make_plan.py"
