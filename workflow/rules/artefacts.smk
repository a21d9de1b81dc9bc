"""Build tables, figures and claims from records; a figure is restyled without new records."""


rule build_table:
    input:
        records=lambda wildcards: records_of(ARTEFACTS[wildcards.artefact]["experiments"]),
        published=lambda wildcards: ARTEFACTS[wildcards.artefact]["printed"],
    output:
        csv=listed(pattern("table", False, "csv"), "Tables"),
        md=pattern("table", False, "md"),
        tex=pattern("table", False, "tex"),
        comparison=[f"{RESULTS}/comparison/{{artefact}}.csv"],
    log:
        f"{RESULTS}/logs/build_table/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("table"),
    conda:
        "../envs/dpsub.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: doubled(2000, attempt),
        runtime=lambda wildcards, attempt: doubled(30, attempt),
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
    log:
        f"{RESULTS}/logs/build_timing_table/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("table", timed=True),


use rule build_table as build_figure with:
    output:
        csv=pattern("figure", False, "csv"),
        pdf=pattern("figure", False, "pdf"),
        png=listed(pattern("figure", False, "png"), "Figures"),
        comparison=[f"{RESULTS}/comparison/{{artefact}}.csv"],
    log:
        f"{RESULTS}/logs/build_figure/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("figure"),


use rule build_table as build_timing_figure with:
    output:
        csv=pattern("figure", True, "csv"),
        pdf=pattern("figure", True, "pdf"),
        png=listed(pattern("figure", True, "png"), "Clock times"),
        comparison=[f"{RESULTS}/comparison/{{artefact}}.csv"],
    log:
        f"{RESULTS}/logs/build_timing_figure/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("figure", timed=True),
