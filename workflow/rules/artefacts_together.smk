"""Build all artefacts of a run: one job makes all tables of a paper, another one makes its figures.

A job takes longer to start than most tables take to build. An artefact that is asked for by name is
built alone, from its own experiments, by `artefacts.smk`.
"""

import sys


def together():
    """Return the names of the artefacts of each paper by (paper, "tables" or "figures"), without
    those of clock times, whose experiments run last and alone."""
    groups = {}
    for name, made in ARTEFACTS.items():
        if made["timed"]:
            continue
        key = made["paper"], "figures" if made["figure"] else "tables"
        groups.setdefault(key, []).append(name)
    return groups


def is_one_asked_for(identifiers):
    """Return whether results are named on the command line, and not all of these artefacts are there
    already: whoever asks for one of them does not wait for the others."""
    # Snakemake knows its targets only after it has read the rules
    named = any(word in PLAN["targets"] or word.startswith(f"{RESULTS}/") for word in sys.argv[1:])
    made = (Path(ARTEFACTS[name]["files"]["comparison"]) for name in identifiers)
    return named and not all(path.exists() for path in made)


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

    # both rules make the same files
    order = [f"build_{kind}_of_{paper}", "build_figure" if kind == "figures" else "build_table"]
    workflow.ruleorder(*(reversed(order) if is_one_asked_for(identifiers) else order))
