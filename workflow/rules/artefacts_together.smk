"""Build small artefacts: one job makes all tables of a paper, another one makes its figures.

At smoke size a job takes longer to start than a table takes to build.
"""


def together():
    """Return the names of the artefacts of each paper by (paper, "tables" or "figures")."""
    groups = {}
    for name, made in ARTEFACTS.items():
        key = made["paper"], "figures" if made["figure"] else "tables"
        groups.setdefault(key, []).append(name)
    return groups


def files_of(names):
    """Return the files of artefacts but their comparisons; the report shows one of each artefact."""
    files = []
    for name in names:
        made = ARTEFACTS[name]
        shown_as = "png" if made["figure"] else "csv"
        for role, path in made["files"].items():
            if role == shown_as:
                labels = {"artefact": name, "format": role}
                files.append(report(path, category=category_of(made), labels=labels))
            elif role != "comparison":
                files.append(path)
    return files


for (paper, kind), identifiers in together().items():
    made = [ARTEFACTS[name] for name in identifiers]
    read = sorted({name for artefact in made for name in artefact["experiments"]})

    rule:
        name:
            f"build_{kind}_of_{paper}"
        input:
            records=records_of(read),
            published=sorted({path for artefact in made for path in artefact["printed"]}),
        output:
            files=files_of(identifiers),
            comparison=[artefact["files"]["comparison"] for artefact in made],
        log:
            f"{RESULTS}/logs/build_{kind}/{paper}.log",
        conda:
            "../envs/dpsub.yaml"
        resources:
            mem_mb=lambda wildcards, attempt: doubled(2000, attempt),
            runtime=lambda wildcards, attempt: doubled(30, attempt),
        params:
            artefacts=identifiers,
            settings={
                name: setting
                for artefact in made
                for name, setting in artefact["settings"].items()
            },
            digests=digests_of(read),
            code=[artefact["code"] for artefact in made],
        script:
            "../scripts/build_artefacts.py"
