"""Find or download, check and prepare raw files, or make a labelled stand-in."""

for data_set, file in DATA.items():

    rule:
        name:
            f"prepare_{data_set}"
        output:
            data=file,
            description=str(Path(file).with_suffix(".json")),
        log:
            f"{RESULTS}/logs/prepare_data/{data_set}.log",
        priority: 100
        localrule: True
        conda:
            "../envs/dpsub.yaml"
        params:
            data_set=data_set,
            sources=str(ROOT / "data/SOURCES.csv"),
            choices=DATA_CHOICES,
            given=os.environ.get("DPSUB_DATA", ""),
            code=DATA_CODE[data_set],
        script:
            "../scripts/prepare_data.py"
