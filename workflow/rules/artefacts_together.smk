"""Build small artefacts: one job makes all tables of a paper, another one makes its figures.

At smoke size a job takes longer to start than a table takes to build.
"""


def together():
    """Return the products of each paper by (paper, "tables" or "figures")."""
    groups = {}
    for product in PLAN.products:
        made = product.artefact
        key = made.paper, "figures" if made.kind == "figure" else "tables"
        groups.setdefault(key, []).append(product)
    return groups


def files_of(products):
    """Return the files of artefacts but their comparisons; the report shows one of each artefact."""
    files = []
    for product in products:
        made = product.artefact
        shown_as = "png" if made.kind == "figure" else "csv"
        for role, path in product.files.items():
            if role == shown_as:
                labels = {"artefact": made.identifier, "format": role}
                files.append(report(str(path), category=category_of(made), labels=labels))
            elif role != "comparison":
                files.append(str(path))
    return files


for (paper, kind), products in together().items():
    made = [product.artefact for product in products]
    read = sorted({name for artefact in made for name in artefact.experiments})

    rule:
        name:
            f"build_{kind}_of_{paper}"
        input:
            records=shown(PLAN.records(*read)),
            published=sorted({path for artefact in made for path in printed_numbers(artefact)}),
        output:
            files=files_of(products),
            comparison=shown(product.files["comparison"] for product in products),
        log:
            f"{RESULTS}/logs/build_{kind}/{paper}.log",
        conda:
            "../envs/dpsub.yaml"
        resources:
            mem_mb=lambda wildcards, attempt: doubled(2000, attempt),
            runtime=lambda wildcards, attempt: doubled(30, attempt),
        params:
            artefacts=[artefact.identifier for artefact in made],
            settings={
                name: setting
                for artefact in made
                for name, setting in PLAN.settings_of(artefact).items()
            },
            digests={name: PLAN.config_digest(name) for name in read},
            code=code_of(*made),
        script:
            "../scripts/build_artefacts.py"
