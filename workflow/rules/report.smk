"""Reads tables, figures, their comparisons, and the verdicts that are expected.
Makes one list of all printed numbers with ours, the check of its verdicts, and the HTML report.
"""


rule collect_comparison:
    input:
        [made["files"]["comparison"] for made in ARTEFACTS.values()],
    output:
        comparison=f"{RESULTS}/comparison.csv",
        sums=f"{RESULTS}/run/sums/comparison.json",
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
        comparison=rules.collect_comparison.output.comparison,
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
    output:
        config=f"{RESULTS}/run/config.yaml",
        environment=f"{RESULTS}/run/environment.json",
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
    script:
        "../scripts/describe_run.py"


rule write_report:
    input:
        comparison=rules.collect_comparison.output.comparison,
        environment=rules.describe_run.output.environment,
        config=rules.describe_run.output.config,
        citation=str(ROOT / "CITATION.cff"),
        errata=PLAN["errata"],
        prose=PLAN["found"],
        cited=PLAN["cited"],
        page=PLAN["templates"],
        front=[one["file"] for one in PLAN["front"]],
        artefacts=files_of_artefacts(),
        data=[str(Path(data_set["file"]).with_suffix(".json")) for data_set in DATA.values()],
    output:
        index=report(
            f"{RESULTS}/report/index.html", caption="../report/report.rst", category="Report"
        ),
        pages=[
            report(
                f"{RESULTS}/report/{name}.html", caption="../report/report.rst", category="Report"
            )
            for name in (
                *dict.fromkeys(made["paper"] for made in ARTEFACTS.values()),
                "numbers",
            )
        ],
        sums=f"{RESULTS}/run/sums/report.json",
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
        front=PLAN["front"],
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


rule describe_results:
    input:
        sums=[
            *sums_of_artefacts(),
            rules.collect_comparison.output.sums,
            rules.write_report.output.sums,
        ],
        records=records_of(EXPERIMENTS),
        run=[*rules.describe_run.output, rules.check_verdicts.output[0]],
        environment=rules.describe_run.output.environment,
        data=[str(Path(data_set["file"]).with_suffix(".json")) for data_set in DATA.values()],
    output:
        f"{RESULTS}/ro-crate-metadata.json",
    log:
        f"{RESULTS}/logs/describe_results.log",
    localrule: True
    conda:
        "../envs/dpsub.yaml"
    script:
        "../scripts/describe_results.py"
