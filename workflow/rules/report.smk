"""Compare every printed number with ours, check the verdicts, and write the HTML report."""

# The code that shows things; what computes them runs its own jobs again.
SHOWN_PARTS = (
    "__init__.py",
    "artefacts",
    "claims*",
    "evidence*",
    "figures*",
    "tables*",
    "numbers*",
)
PACKAGE = Path(provenance.__file__).parents[1]
SHOWN_BY = [
    path
    for folder in ("reproduce", *(f"papers/*/{part}" for part in SHOWN_PARTS))
    for found in PACKAGE.glob(folder)
    for path in ([found] if found.is_file() else found.rglob("*.py"))
]


rule collect_comparison:
    input:
        shown(product.files["comparison"] for product in PLAN.products),
    output:
        f"{RESULTS}/comparison.csv",
    log:
        f"{RESULTS}/logs/collect_comparison.log",
    localrule: True
    conda:
        "../envs/dpsub.yaml"
    params:
        code=provenance.digest("dpsub.reproduce.verdicts"),
    script:
        "../scripts/collect_comparison.py"


rule check_verdicts:
    input:
        comparison=rules.collect_comparison.output[0],
        expected=[
            str(path)
            for paper in papers().values()
            for path in paper.folder.glob("expected_verdicts.csv")
        ],
    output:
        f"{RESULTS}/run/verdicts.txt",
    log:
        f"{RESULTS}/logs/check_verdicts.log",
    localrule: True
    conda:
        "../envs/dpsub.yaml"
    params:
        mode=PLAN.config["verdicts"],
        published=PLAN.published,
        code=provenance.digest("dpsub.reproduce.verdicts"),
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
        config=PLAN.config,
        versions=provenance.versions(),
        commit=lambda wildcards: provenance.commit(ROOT),
        date=lambda wildcards: provenance.date(ROOT),
    script:
        "../scripts/describe_run.py"


rule write_report:
    input:
        comparison=rules.collect_comparison.output[0],
        environment=rules.describe_run.output.environment,
        config=rules.describe_run.output.config,
        citation=str(ROOT / "CITATION.cff"),
        errata=shown(errata_files()),
        prose=shown(path for paper in papers().values() for path in paper.folder.glob("found.md")),
        cited=shown(path for paper in papers().values() for path in paper.folder.glob("cited.csv")),
        page=sorted(shown((PACKAGE / "reproduce/report/templates").iterdir())),
        artefacts=[path for product in PLAN.products for path in shown(product.files.values())],
        data=[str(Path(path).with_suffix(".json")) for path in DATA.values()],
    output:
        report(f"{RESULTS}/report/index.html", caption="../report/report.rst", category="Report"),
        [
            report(
                f"{RESULTS}/report/{name}.html", caption="../report/report.rst", category="Report"
            )
            for name in (
                *dict.fromkeys(product.artefact.paper for product in PLAN.products),
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
        artefacts=[product.artefact.identifier for product in PLAN.products],
        remarks=[PLAN.remark] if PLAN.remark else [],
        published=PLAN.published,
        options=(
            "--configfile RESULTS/run/config.yaml"
            if workflow.config_settings.overwrite_config
            else ""
        ),
        seed=PLAN.config["seed"],
        configuration=provenance.settings_digest(PLAN.config),
        code=provenance.digest(files=SHOWN_BY),
    script:
        "../scripts/write_report.py"
