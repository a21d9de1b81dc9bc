"""Tables, figures and claims from records; nothing heavy is computed, so a figure is restyled without new records.

REQUIRED INPUTS: the records of the artefact's experiments, its printed numbers in src/dpsub/papers/<paper>/published
OUTPUTS: <results>/tables, <results>/figures, <results>/comparison; clock times in <results>/run/timings
"""

import json

from dpsub.reproduce import published


def product_of(wildcards):
    return PRODUCTS[wildcards.artefact]


def records_of(wildcards):
    return shown(PLAN.records(*product_of(wildcards).artefact.experiments))


def printed_numbers(wildcards):
    """Return the files of printed numbers that the artefact is compared with, or quotes."""
    artefact = product_of(wildcards).artefact
    names = {artefact.name, *(quote.artefact for quote in artefact.quotes())}
    folder = ROOT / "src/dpsub/papers"
    known = published.artefacts(artefact.paper, folder)
    return [str(folder / artefact.paper / "published" / f"{name}.csv") for name in sorted(names) if name in known]


def pattern(kind, timed, role):
    """Return the path of one file of artefacts of this kind; the wildcard stands for paper and name."""
    for product in PLAN.products:
        if (product.artefact.kind == "figure") == (kind == "figure") and product.artefact.timed == timed:
            path = product.files[role]
            return str(path.parent.parent / f"{{artefact}}{path.suffix}")
    return f"{RESULTS}/{kind}-{timed}/{{artefact}}.{role}"  # no such artefact in this plan


def names(kind, timed=False):
    """Return the pattern of the identifiers: papers may have one name for a table of results and one of clock times."""
    return one_of(
        product.artefact.identifier
        for product in PLAN.products
        if (product.artefact.kind == "figure") == (kind == "figure") and product.artefact.timed == timed
    )


def listed(path, category):
    """Register a file for Snakemake's own report."""
    labels = {"artefact": "{artefact}", "format": Path(path).suffix[1:]}
    return report(path, caption="../report/artefact.rst", category=category, labels=labels)


rule build_table:
    input:
        records=records_of,
        published=printed_numbers,
    output:
        csv=listed(pattern("table", False, "csv"), "Tables"),
        md=pattern("table", False, "md"),
        tex=pattern("table", False, "tex"),
        comparison=f"{RESULTS}/comparison/{{artefact}}.csv",
    log:
        f"{RESULTS}/logs/build_table/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("table"),
    resources:
        mem_mb=memory,
        runtime=minutes,
    params:
        script=script("build_artefact.py"),
        code=lambda wildcards: code(
            "build_artefact.py",
            type(product_of(wildcards).artefact).__module__,
            "dpsub.reproduce.artefact",
            "dpsub.reproduce.records",
        ),
        caption=lambda wildcards: product_of(wildcards).artefact.caption,
        name=lambda wildcards: wildcards.artefact,
        published=str(ROOT / "src/dpsub/papers"),
        results=RESULTS,
        settings=lambda wildcards: json.dumps(PLAN.settings_of(product_of(wildcards).artefact), sort_keys=True),
        digests=lambda wildcards: [
            f"{name}={PLAN.config_digest(name)}" for name in product_of(wildcards).artefact.experiments
        ],
    shell:
        "exec {START} {params.script:q} --artefact {params.name} --published {params.published:q}"
        " --results {params.results:q} --settings {params.settings:q} --records {input.records:q} --configurations {params.digests:q} > {log:q} 2>&1"


use rule build_table as build_timing_table with:
    output:
        csv=listed(pattern("table", True, "csv"), "Clock times"),
        md=pattern("table", True, "md"),
        tex=pattern("table", True, "tex"),
        comparison=f"{RESULTS}/comparison/{{artefact}}.csv",
    log:
        f"{RESULTS}/logs/build_timing_table/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("table", timed=True),


use rule build_table as build_figure with:
    output:
        csv=pattern("figure", False, "csv"),
        pdf=pattern("figure", False, "pdf"),
        png=listed(pattern("figure", False, "png"), "Figures"),
        comparison=f"{RESULTS}/comparison/{{artefact}}.csv",
    log:
        f"{RESULTS}/logs/build_figure/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("figure"),


use rule build_table as build_timing_figure with:
    output:
        csv=pattern("figure", True, "csv"),
        pdf=pattern("figure", True, "pdf"),
        png=listed(pattern("figure", True, "png"), "Clock times"),
        comparison=f"{RESULTS}/comparison/{{artefact}}.csv",
    log:
        f"{RESULTS}/logs/build_timing_figure/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("figure", timed=True),
