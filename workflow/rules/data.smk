"""Reads raw files: found in a folder or downloaded from data/SOURCES.csv, and checked by their sums.
Makes the prepared data sets that experiments read, each with its description; without raw files, a labelled stand-in.
"""

for name, data_set in DATA.items():

    rule:
        name:
            f"prepare_{name}"
        output:
            data=data_set["file"],
            description=str(Path(data_set["file"]).with_suffix(".json")),
        log:
            f"{RESULTS}/logs/prepare_data/{name}.log",
        priority: 100
        localrule: True
        conda:
            "../envs/dpsub.yaml"
        params:
            data_set=name,
            sources=str(ROOT / "data/SOURCES.csv"),
            choices=DATA_CHOICES,
            given=os.environ.get("DPSUB_DATA", ""),
            code=data_set["code"],
        script:
            "../scripts/prepare_data.py"
