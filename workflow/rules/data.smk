"""Raw files are found or downloaded, checked, and prepared; or a labelled stand-in is made.

REQUIRED INPUTS: data/SOURCES.csv; the folder in DPSUB_DATA or the config, data/raw, or the network
OUTPUTS: data/interim/<results folder>/<data set>.parquet and .json; .npy and .json for points to be clustered
"""

from dpsub.data import known

INTERIM = PLAN.data_file("{data_set}")
POINTS = [name for name in PLAN.data_sets(*PLAN.experiments) if known.suffix_of(name) != INTERIM.suffix]


rule prepare_data:
    output:
        table=str(INTERIM),
        description=str(INTERIM.with_suffix(".json")),
    log:
        f"{RESULTS}/logs/prepare_data/{{data_set}}.log",
    wildcard_constraints:
        data_set=one_of(set(PLAN.data_sets(*PLAN.experiments)) - set(POINTS)),
    priority: 100
    localrule: True
    params:
        script=lambda wildcards: script(known.script_of(wildcards.data_set)),
        code=lambda wildcards: code(known.script_of(wildcards.data_set), known.module_of(wildcards.data_set)),
        sources=str(ROOT / "data/SOURCES.csv"),
        given=lambda wildcards: os.environ.get("DPSUB_DATA", ""),
        folder=PLAN.config["data"]["folder"] or "",
        fallback=PLAN.config["data"]["fallback"],
        download="--download" if PLAN.config["data"]["download"] else "--no-download",
    shell:
        "exec {START} {params.script:q} --sources {params.sources:q} --folder={params.folder:q} --raw data/raw"
        " --fallback {params.fallback} {params.download} --output {output.table:q} > {log:q} 2>&1"


use rule prepare_data as prepare_points with:
    output:
        table=str(INTERIM.with_suffix(".npy")),
        description=str(INTERIM.with_suffix(".json")),
    log:
        f"{RESULTS}/logs/prepare_points/{{data_set}}.log",
    wildcard_constraints:
        data_set=one_of(POINTS),
