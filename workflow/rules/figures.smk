"""Reads the records of experiments, and the numbers that a paper prints.
Makes figures (PDF, PNG, the drawn numbers as CSV), each with its comparison with the printed numbers.
"""


rule build_figure:
    input:
        records=lambda wildcards: records_of(ARTEFACTS[wildcards.artefact]["experiments"]),
        published=lambda wildcards: ARTEFACTS[wildcards.artefact]["printed"],
    output:
        csv=pattern("figure", False, "csv"),
        pdf=pattern("figure", False, "pdf"),
        png=listed(pattern("figure", False, "png"), "Figures"),
        comparison=[f"{RESULTS}/comparison/{{artefact}}.csv"],
        sums=f"{RESULTS}/run/sums/{{artefact}}.json",
    log:
        f"{RESULTS}/logs/build_figure/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("figure"),
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


use rule build_figure as build_timing_figure with:
    output:
        csv=pattern("figure", True, "csv"),
        pdf=pattern("figure", True, "pdf"),
        png=listed(pattern("figure", True, "png"), "Clock times"),
        comparison=[f"{RESULTS}/comparison/{{artefact}}.csv"],
        sums=f"{RESULTS}/run/sums/{{artefact}}.json",
    log:
        f"{RESULTS}/logs/build_timing_figure/{{artefact}}.log",
    wildcard_constraints:
        artefact=names("figure", timed=True),
