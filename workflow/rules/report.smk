"""What a reader opens first, and what says how it was made.

REQUIRED INPUTS: <results>/comparison.csv and all tables and figures
OUTPUTS: <results>/report/index.md and advice.md, <results>/run/config.yaml, <results>/run/environment.json
"""

REMARK = (
    []
    if PLAN.config["verdicts"] == "enforce"
    else [
        "--remark='This configuration only reports its verdicts: its sizes need not be the published ones, and a"
        " verdict of differs or fails may mean no more than that.'"
    ]
)


rule describe_run:
    output:
        config=f"{RESULTS}/run/config.yaml",
        environment=f"{RESULTS}/run/environment.json",
    log:
        f"{RESULTS}/logs/describe_run.log",
    localrule: True
    params:
        script=script("describe_run.py"),
        code=code("describe_run.py", "dpsub.provenance"),
        config=json.dumps(PLAN.config),
        versions=json.dumps(provenance.versions()),
    shell:
        "exec python {params.script:q} --settings {params.config:q} --config {output.config:q}"
        " --environment {output.environment:q} > {log:q} 2>&1"


rule write_report:
    input:
        comparison=rules.collect_comparison.output,
        environment=rules.describe_run.output.environment,
        artefacts=[path for paths in targets().values() for path in paths],
        data=[str(PLAN.data_file(name).with_suffix(".json")) for name in PLAN.data_sets(*PLAN.experiments)],
    output:
        report(f"{RESULTS}/report/index.md", caption="../report/report.rst", category="Report"),
    log:
        f"{RESULTS}/logs/write_report.log",
    localrule: True
    params:
        script=script("write_report.py"),
        code=code("write_report.py", "dpsub.report", *(type(product.artefact).__module__ for product in PLAN.products)),
        results=RESULTS,
        artefacts=[product.artefact.identifier for product in PLAN.products],
        seed=PLAN.config["seed"],
        configuration=settings.digest(PLAN.config),
        remark=REMARK,
    shell:
        "exec python {params.script:q} --results {params.results:q} --comparison {input.comparison:q}"
        " --environment {input.environment:q} --data {input.data:q} --artefacts {params.artefacts}"
        " --seed {params.seed} --configuration {params.configuration} {params.remark} --output {output:q} > {log:q} 2>&1"


FAIR = [product for product in PLAN.products if product.artefact.paper == "fair"]
DESCRIBED = (
    [str(PLAN.data_file(name).with_suffix(".json")) for name in PLAN.data_sets("fair_comparison")] if FAIR else []
)

if FAIR:

    rule write_advice:
        input:
            tables=[str(product.files["csv"]) for product in FAIR],
            data=DESCRIBED,
        output:
            report(f"{RESULTS}/report/advice.md", caption="../report/report.rst", category="Report"),
        log:
            f"{RESULTS}/logs/write_advice.log",
        params:
            script=script("write_advice.py"),
            code=code("write_advice.py", "dpsub.report.fair"),
            results=RESULTS,
            artefacts=[product.artefact.identifier for product in FAIR],
        shell:
            "exec python {params.script:q} --results {params.results:q} --artefacts {params.artefacts}"
            " --data {input.data:q} --output {output:q} > {log:q} 2>&1"
