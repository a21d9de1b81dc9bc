"""Reads tables, figures, their comparisons, and the verdicts that are expected.
Makes one list of all printed numbers with ours, the check of its verdicts, and the HTML report.
"""


rule collect_comparison:
    input:
        [made["files"]["comparison"] for made in ARTEFACTS.values()],
    output:
        f"{RESULTS}/comparison.csv",
    log:
        f"{RESULTS}/logs/collect_comparison.log",
    localrule: True
    conda:
        "../envs/dpsub.yaml"
    params:
        code=PLAN["code"]["verdicts"],
    script:
        "../scripts/collect_comparison.py"


rule check_verdicts:
    input:
        comparison=rules.collect_comparison.output[0],
        expected=PLAN["expected"],
    output:
        f"{RESULTS}/run/verdicts.txt",
    log:
        f"{RESULTS}/logs/check_verdicts.log",
    localrule: True
    conda:
        "../envs/dpsub.yaml"
    params:
        mode=CONFIG["verdicts"],
        published=PLAN["published"],
        code=PLAN["code"]["verdicts"],
    script:
        "../scripts/check_verdicts.py"


rule describe_run:
    input:
        [str(Path(data_set["file"]).with_suffix(".json")) for data_set in DATA.values()],
    output:
        config=f"{RESULTS}/run/config.yaml",
        environment=f"{RESULTS}/run/environment.json",
        crate=f"{RESULTS}/ro-crate-metadata.json",
    log:
        f"{RESULTS}/logs/describe_run.log",
    localrule: True
    conda:
        "../envs/dpsub.yaml"
    params:
        config=CONFIG,
        versions=PLAN["versions"],
        commit=PLAN["commit"],
        date=PLAN["date"],
        files=[
            *(str(path).removeprefix(f"{RESULTS}/") for path in files_of_artefacts()),
            *("comparison.csv", "report/index.html", "run/config.yaml", "run/environment.json"),
        ],
    script:
        "../scripts/describe_run.py"


rule write_report:
    input:
        comparison=rules.collect_comparison.output[0],
        environment=rules.describe_run.output.environment,
        config=rules.describe_run.output.config,
        citation=str(ROOT / "CITATION.cff"),
        errata=PLAN["errata"],
        prose=PLAN["found"],
        cited=PLAN["cited"],
        page=PLAN["templates"],
        artefacts=files_of_artefacts(),
        data=[str(Path(data_set["file"]).with_suffix(".json")) for data_set in DATA.values()],
    output:
        report(f"{RESULTS}/report/index.html", caption="../report/report.rst", category="Report"),
        [
            report(
                f"{RESULTS}/report/{name}.html", caption="../report/report.rst", category="Report"
            )
            for name in (
                *dict.fromkeys(made["paper"] for made in ARTEFACTS.values()),
                "numbers",
            )
        ],
    log:
        f"{RESULTS}/logs/write_report.log",
    localrule: True
    conda:
        "../envs/dpsub.yaml"
    # pages are written in parallel
    threads: 4
    params:
        artefacts=list(ARTEFACTS),
        remarks=[PLAN["remark"]] if PLAN["remark"] else [],
        published=PLAN["published"],
        options=(
            "--configfile RESULTS/run/config.yaml"
            if workflow.config_settings.overwrite_config
            else ""
        ),
        seed=CONFIG["seed"],
        configuration=PLAN["config_digest"],
        code=PLAN["code"]["report"],
    script:
        "../scripts/write_report.py"
