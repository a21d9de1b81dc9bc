"""A run as an RO-Crate 1.1, for archives: the files of its results folder, the workflow that made
them, and its data sets."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

NAME = "ro-crate-metadata.json"
VERSION = "https://w3id.org/ro/crate/1.1"
LICENCE = "https://spdx.org/licenses/MIT"
AUTHORS = "the dpsub authors"
CONFIGURATION = "run/config.yaml"
FORMS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".tex": "application/x-tex",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
}


def crate(
    files: Iterable[str],
    environment: Mapping[str, Any],
    data: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the description of a run that made `files`, paths in its results folder, from prepared
    data sets, as the JSON file next to each describes it."""
    parts = [_file(path) for path in sorted(set(files))]
    sets = [_data_set(described) for described in data]
    given = [part for part in parts if part["name"] == CONFIGURATION]
    # An archive wants a day; a source without git has none of its own.
    day = environment["date"] or datetime.date.today().isoformat()
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": "Results of a run of dpsub",
        "description": "Tables, figures and claims of papers on privacy amplification by "
        "subsampling, regenerated, and their comparison with the printed numbers.",
        "datePublished": day,
        "license": {"@id": LICENCE},
        "hasPart": [{"@id": part["@id"]} for part in parts],
        "mentions": {"@id": "#run"},
    }
    authors = {"@id": "#authors", "@type": "Organization", "name": AUTHORS}
    # Not a File: the Snakefile is in the repository, at this version, and not in the folder.
    workflow = {
        "@id": "#workflow/Snakefile",
        "@type": ["SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "workflow/Snakefile of dpsub",
        "version": environment["commit"],
        "programmingLanguage": {"@id": "#snakemake"},
        "softwareRequirements": {"@id": "#dpsub"},
        "author": {"@id": "#authors"},
        "license": {"@id": LICENCE},
    }
    language = {
        "@id": "#snakemake",
        "@type": "ComputerLanguage",
        "name": "Snakemake",
        "url": "https://snakemake.readthedocs.io",
    }
    program = {
        "@id": "#dpsub",
        "@type": "SoftwareApplication",
        "name": "dpsub",
        "softwareVersion": environment["versions"]["dpsub"],
        "version": environment["commit"],
        "author": {"@id": "#authors"},
    }
    run = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": "Run of the workflow",
        "instrument": {"@id": "#workflow/Snakefile"},
        "object": [{"@id": one["@id"]} for one in (*given, *sets)],
        "result": [{"@id": part["@id"]} for part in parts if part not in given],
    }
    licence = {"@id": LICENCE, "@type": "CreativeWork", "name": "MIT licence"}
    descriptor = {
        "@id": NAME,
        "@type": "CreativeWork",
        "conformsTo": {"@id": VERSION},
        "about": {"@id": "./"},
    }
    graph = [descriptor, root, workflow, language, program, authors, run, licence, *sets, *parts]
    return {"@context": f"{VERSION}/context", "@graph": graph}


def _data_set(described: Mapping[str, Any]) -> dict[str, str]:
    return {
        "@id": f"#data/{described['dataset']}",
        "@type": "CreativeWork",
        "name": f"Data set {described['dataset']}, {described['label']}",
        "identifier": f"sha256:{described['sha256']}",
    }


def _file(path: str) -> dict[str, str]:
    described = {"@id": quote(path), "@type": "File", "name": path}
    form = FORMS.get(PurePosixPath(path).suffix)
    return described | ({"encodingFormat": form} if form else {})
