"""A run as an RO-Crate 1.1, for archives: the files of its results folder with their sums, the
workflow that made them, and its data sets.

python -m dpsub.reproduce.crate results     # compares a results folder with its description
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from dpsub.errors import DataError
from dpsub.files import checksum

NAME = "ro-crate-metadata.json"
VERSION = "https://w3id.org/ro/crate/1.1"
SUM = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
"""The one term that RO-Crate 1.1 lacks."""
NOT_DESCRIBED = ("README.md", NAME, "logs/", "run/sums/", "run/timings/")
"""Files and folders of results that differ from run to run, or describe the others."""
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
    sums: Mapping[str, str],
    environment: Mapping[str, Any],
    data: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the description of a run from the SHA-256 sums of the files that it made, by their
    paths in its results folder, and its prepared data sets, as the JSON file next to each describes
    it."""
    parts = [_file(path, sums[path]) for path in sorted(sums)]
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
    return {"@context": [f"{VERSION}/context", SUM], "@graph": graph}


def differences(results: Path) -> Iterator[str]:
    """Yield a line for each file of a results folder that differs from the folder's description, is
    missing, or is not described.

    Raises
    ------
    DataError
        If there is no description.
    """
    try:
        graph = json.loads((results / NAME).read_text(encoding="utf-8"))["@graph"]
        sums = {part["name"]: part["sha256"] for part in graph if part["@type"] == "File"}
    except (OSError, ValueError, LookupError, TypeError):
        raise DataError(
            f"{results} must hold {NAME} of a finished run, with the sums of its files; run the "
            "workflow, or name another folder"
        ) from None
    for path, written in sums.items():
        if not (results / path).is_file():
            yield f"missing: {path}"
        elif checksum(results / path) != written:
            yield f"changed: {path}"
    there = sorted(path for path in results.rglob("*") if path.is_file())
    for path in (path.relative_to(results).as_posix() for path in there):
        if path not in sums and not path.startswith(NOT_DESCRIBED):
            yield f"added: {path}"


def _data_set(described: Mapping[str, Any]) -> dict[str, str]:
    return {
        "@id": f"#data/{described['dataset']}",
        "@type": "CreativeWork",
        "name": f"Data set {described['dataset']}, {described['label']}",
        "identifier": f"sha256:{described['sha256']}",
    }


def _file(path: str, sha256: str) -> dict[str, str]:
    described = {"@id": quote(path), "@type": "File", "name": path, "sha256": sha256}
    form = FORMS.get(PurePosixPath(path).suffix)
    return described | ({"encodingFormat": form} if form else {})


def main(arguments: list[str]) -> int:
    """Compare a results folder with its description; 1 for a difference, 2 for no description."""
    if len(arguments) != 1:
        print("usage: python -m dpsub.reproduce.crate RESULTS", file=sys.stderr)
        return 2
    results = Path(arguments[0])
    try:
        found = list(differences(results))
    except DataError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    if not found:
        own = checksum(results / NAME)
        print(f"all files of {results} are as {NAME} describes them, whose own sum is {own}")
        return 0
    print(*found, sep="\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
