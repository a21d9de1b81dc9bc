"""What a reader opens first, and what says how it was made.

REQUIRED INPUTS: <results>/comparison.csv and all tables and figures
OUTPUTS: <results>/report/index.html, <results>/run/config.yaml, <results>/run/environment.json
"""

REMARK = (
    []
    if PLAN.config["verdicts"] == "enforce"
    else [
        "--remark='This configuration only reports its verdicts: its sizes need not be the published ones, and a"
        " verdict of differs or fails may mean no more than that.'"
    ]
)
# The code that shows things; what computes them runs its own jobs again.
SHOWN_PARTS = ("__init__.py", "artefacts", "claims*", "figures*", "tables*", "takeaways*")
SHOWN_BY = [
    path
    for folder in ("reproduce", *(f"papers/*/{part}" for part in SHOWN_PARTS))
    for found in (ROOT / "src/dpsub").glob(folder)
    for path in ([found] if found.is_file() else found.rglob("*.py"))
]


rule describe_run:
    output:
        config=f"{RESULTS}/run/config.yaml",
        environment=f"{RESULTS}/run/environment.json",
    log:
        f"{RESULTS}/logs/describe_run.log",
    localrule: True
    params:
        script=script("describe_run.py"),
        code=code("describe_run.py", "dpsub.reproduce.provenance"),
        config=json.dumps(PLAN.config),
        versions=json.dumps(provenance.versions()),
        commit=lambda wildcards: provenance.commit(ROOT),
    shell:
        "exec {START} {params.script:q} --settings {params.config:q} --commit {params.commit:q}"
        " --config {output.config:q} --environment {output.environment:q} > {log:q} 2>&1"


rule write_report:
    input:
        comparison=rules.collect_comparison.output,
        environment=rules.describe_run.output.environment,
        config=rules.describe_run.output.config,
        errata=[str(path) for path in errata_files()],
        page=sorted(shown((ROOT / "src/dpsub/reproduce/report/templates").iterdir())),
        artefacts=[path for paths in targets().values() for path in paths],
        data=[str(PLAN.data_file(name).with_suffix(".json")) for name in PLAN.data_sets(*PLAN.experiments)],
    output:
        report(f"{RESULTS}/report/index.html", caption="../report/report.rst", category="Report"),
    log:
        f"{RESULTS}/logs/write_report.log",
    localrule: True
    params:
        script=script("write_report.py"),
        code=provenance.digest(files=[ROOT / "workflow/scripts/write_report.py", *SHOWN_BY]),
        results=RESULTS,
        artefacts=[product.artefact.identifier for product in PLAN.products],
        seed=PLAN.config["seed"],
        configuration=provenance.settings_digest(PLAN.config),
        remark=REMARK,
    shell:
        "exec {START} {params.script:q} --results {params.results:q} --comparison {input.comparison:q}"
        " --environment {input.environment:q} --config {input.config:q} --data {input.data:q}"
        " --artefacts {params.artefacts} --seed {params.seed}"
        " --configuration {params.configuration} {params.remark} --output {output:q} > {log:q} 2>&1"
