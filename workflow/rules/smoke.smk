"""Reads what tables.smk and figures.smk read, in whose place it stands at smoke size.
Makes all tables of a paper in one job, its figures in another: a job takes longer to start than a small table.
"""

for kind, figure in (("tables", False), ("figures", True)):
    for paper, identifiers in of_papers(figure).items():
        made = [ARTEFACTS[name] for name in identifiers]
        experiments = sorted({name for artefact in made for name in artefact["experiments"]})

        rule:
            name:
                f"build_{kind}_of_{paper}"
            input:
                records=records_of(experiments),
                published=sorted({path for artefact in made for path in artefact["printed"]}),
            output:
                files=listed_together(identifiers),
                comparison=[artefact["files"]["comparison"] for artefact in made],
                sums=f"{RESULTS}/run/sums/{kind}_of_{paper}.json",
            log:
                f"{RESULTS}/logs/build_{kind}/{paper}.log",
            group:
                submitted_with(paper)
            conda:
                "../envs/dpsub.yaml"
            resources:
                mem_mb=lambda wildcards, attempt: doubled(2000, attempt),
                runtime=lambda wildcards, attempt: doubled(MINUTES, attempt),
            params:
                artefacts=identifiers,
                settings={
                    name: setting
                    for artefact in made
                    for name, setting in artefact["settings"].items()
                },
                digests=digests_of(experiments),
                code=[artefact["code"] for artefact in made],
            script:
                "../scripts/build_artefacts.py"
