"""Reads the records of experiments, and the numbers that a paper prints.
Makes tables and lists of claims (CSV, Markdown, LaTeX), each with its comparison with the printed numbers.
"""


rule build_table:
    input:
        records=lambda wildcards: records_of(ARTEFACTS[wildcards.artefact]["experiments"]),
        published=lambda wildcards: ARTEFACTS[wildcards.artefact]["printed"],
    output:
        csv=listed(pattern("table", False, "csv"), "Tables"),
        md=pattern("table", False, "md"),
        tex=pattern("table", False, "tex"),
        comparison=[f"{RESULTS}/comparison/{{artefact}}.csv"],
        sums=f"{RESULTS}/run/sums/{{artefact}}.json",
    log:
        f"{RESULTS}/logs/build_table/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("table"),
    conda:
        "../envs/dpsub.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: doubled(2000, attempt),
        runtime=lambda wildcards, attempt: doubled(MINUTES, attempt),
    params:
        artefacts=lambda wildcards: [wildcards.artefact],
        caption=lambda wildcards: ARTEFACTS[wildcards.artefact]["caption"],
        settings=lambda wildcards: ARTEFACTS[wildcards.artefact]["settings"],
        digests=lambda wildcards: digests_of(ARTEFACTS[wildcards.artefact]["experiments"]),
        code=lambda wildcards: ARTEFACTS[wildcards.artefact]["code"],
    script:
        "../scripts/build_artefacts.py"


use rule build_table as build_timing_table with:
    output:
        csv=listed(pattern("table", True, "csv"), "Clock times"),
        md=pattern("table", True, "md"),
        tex=pattern("table", True, "tex"),
        comparison=[f"{RESULTS}/comparison/{{artefact}}.csv"],
        sums=f"{RESULTS}/run/sums/{{artefact}}.json",
    log:
        f"{RESULTS}/logs/build_timing_table/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("table", timed=True),
