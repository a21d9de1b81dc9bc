"""A run as an RO-Crate 1.1, for archives: the files of its results folder and what made them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

NAME = "ro-crate-metadata.json"
VERSION = "https://w3id.org/ro/crate/1.1"
LICENCE = "https://spdx.org/licenses/MIT"
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


def crate(files: Iterable[str], environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a run that made `files`, paths in its results folder."""
    parts = [_file(path) for path in sorted(set(files))]
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
    program = {
        "@id": "#dpsub",
        "@type": "SoftwareApplication",
        "name": "dpsub",
        "softwareVersion": environment["versions"]["dpsub"],
        "version": environment["commit"],
    }
    run = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": "Run of the workflow",
        "instrument": {"@id": "#dpsub"},
        "result": root["hasPart"],
    }
    licence = {"@id": LICENCE, "@type": "CreativeWork", "name": "MIT licence"}
    descriptor = {
        "@id": NAME,
        "@type": "CreativeWork",
        "conformsTo": {"@id": VERSION},
        "about": {"@id": "./"},
    }
    graph = [descriptor, root, program, run, licence, *parts]
    return {"@context": f"{VERSION}/context", "@graph": graph}


def _file(path: str) -> dict[str, str]:
    described = {"@id": quote(path), "@type": "File", "name": path}
    form = FORMS.get(PurePosixPath(path).suffix)
    return described | ({"encodingFormat": form} if form else {})
