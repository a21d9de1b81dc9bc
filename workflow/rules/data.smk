"""Reads raw files, found in a folder or downloaded, and checked by the sums of data/SOURCES.csv.
Makes the prepared data sets that experiments read, and labelled stand-ins where there are no raw files.
"""

if not all(Path(data_set["file"]).exists() for data_set in DATA.values()):
    check_folders(DATA_CHOICES["folder"])


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
