"""Raw files are found or downloaded, checked, and prepared; or a labelled stand-in is made.

REQUIRED INPUTS: data/SOURCES.csv; the folder in DPSUB_DATA or the config, data/raw, or the network
OUTPUTS: data/interim/<results folder>/<data set>.parquet and .json; .npy and .json for points to be clustered
"""

from dpsub.data.dataset import REGISTRY as DATA_SETS

INTERIM = {name: PLAN.data_file(name) for name in PLAN.data_sets(*PLAN.experiments)}


for data_set, file in INTERIM.items():

    rule:
        name:
            f"prepare_{data_set}"
        output:
            data=str(file),
            description=str(file.with_suffix(".json")),
        log:
            f"{RESULTS}/logs/prepare_data/{data_set}.log",
        priority: 100
        localrule: True
        params:
            name=data_set,
            script=script("prepare_data.py"),
            code=code("prepare_data.py", "dpsub.data.fetch", DATA_SETS.get(data_set).__module__),
            sources=str(ROOT / "data/SOURCES.csv"),
            given=os.environ.get("DPSUB_DATA", ""),
            folder=PLAN.config["data"]["folder"] or "",
            fallback=PLAN.config["data"]["fallback"],
            download="--download" if PLAN.config["data"]["download"] else "--no-download",
        shell:
            "exec {START} {params.script:q} --dataset {params.name} --sources {params.sources:q} --raw data/raw"
            " --folder={params.folder:q} --fallback {params.fallback} {params.download} --output {output.data:q}"
            " > {log:q} 2>&1"
