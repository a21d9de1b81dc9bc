"""The plan of a run in plain values, as the rules of the workflow read it.

Snakemake need not have what dpsub needs: then a job in the environment of jobs writes the plan, and
the rules read the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsub.data.dataset import REGISTRY as DATA_SETS
from dpsub.errors import PlanError
from dpsub.reproduce import configuration, experiments, labels, provenance, published, report
from dpsub.reproduce.artefact import Artefact
from dpsub.reproduce.papers import errata_files, papers
from dpsub.reproduce.plan import Plan, Product, declared, identify

# The code that shows things; what computes them runs its own jobs again.
SHOWN_PARTS = (
    "__init__.py",
    "artefacts",
    "claims*",
    "evidence*",
    "figures*",
    "labels*",
    "tables*",
    "numbers*",
)
PACKAGE = Path(provenance.__file__).parents[1]


def planned(config: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return the plan of a configuration as JSON has it: files, settings and digests of code.

    The commit is that of the working tree at `root`.

    Raises
    ------
    PlanError
        As :func:`dpsub.reproduce.configuration.validate` and :class:`dpsub.reproduce.plan.Plan`.
    """
    plan = Plan(configuration.validate(config))
    folders = [paper.folder for paper in papers().values()]
    document = {
        "config": plan.config,
        "config_digest": provenance.settings_digest(plan.config),
        "results": str(plan.results),
        "remark": plan.remark,
        "published": plan.published,
        **provenance.of_now(root),
        "artefacts": {one.artefact.identifier: _artefact(plan, one) for one in plan.products},
        "experiments": {name: _experiment(plan, name) for name in plan.experiments},
        "data": {name: _data_set(plan, name) for name in plan.data_sets(*plan.experiments)},
        "targets": {name: one.artefact.identifier for name, one in plan.targets.items()},
        "ambiguous": {name: _ambiguous(name) for name in sorted(plan.ambiguous)},
        "errata": _shown(errata_files()),
        "found": _shown(path for folder in folders for path in folder.glob("found.md")),
        "cited": _shown(path for folder in folders for path in folder.glob("cited.csv")),
        "expected": _shown(
            path for folder in folders for path in folder.glob("expected_verdicts.csv")
        ),
        "front": _front(root),
        "templates": sorted(_shown((Path(report.__file__).parent / "templates").iterdir())),
        "code": {
            "verdicts": provenance.digest("dpsub.reproduce.verdicts"),
            "report": provenance.digest(files=_shown_by()),
        },
    }
    # The same values whether they come from here or from a file.
    return dict(json.loads(json.dumps(document)))


def _artefact(plan: Plan, product: Product) -> dict[str, Any]:
    made = product.artefact
    modules = (
        type(made).__module__,
        *([theirs.__module__] if (theirs := labels.REGISTRY.members().get(made.paper)) else []),
        "dpsub.reproduce.artefact",
        "dpsub.reproduce.records",
    )
    return {
        "paper": made.paper,
        "figure": made.kind == "figure",
        "timed": made.timed,
        "caption": made.caption,
        "files": {role: str(path) for role, path in product.files.items()},
        "experiments": list(made.experiments),
        "printed": _printed(made),
        "settings": plan.settings_of(made),
        "code": provenance.digest(*modules),
    }


def _printed(artefact: Artefact) -> list[str]:
    """Return the files of printed numbers that an artefact is compared with or quotes."""
    names = {artefact.name, *(quote.artefact for quote in artefact.quotes())}
    folder = papers()[artefact.paper].folder / "published"
    found = sorted(names & set(published.artefacts(artefact.paper)))
    return [str(folder / f"{name}.csv") for name in found]


def _front(root: Path) -> list[dict[str, str]]:
    """Return the pictures that stand first in the report, as the pages in docs/found keep them."""
    named = {
        f"{key}/{paper.front}": root / f"docs/found/pictures/{key}-{paper.front}.png"
        for key, paper in papers().items()
        if paper.front
    }
    return [
        {"title": made.title, "caption": made.caption, "file": str(named[made.identifier])}
        for made in declared()
        if made.identifier in named and named[made.identifier].exists()
    ]


def _experiment(plan: Plan, name: str) -> dict[str, Any]:
    kind = experiments.REGISTRY.get(name)
    return {
        "paper": kind.paper,
        "stage": kind.stage,
        "timed": kind.timed,
        "parts": {part.part: [part.first, part.stop] for part in plan.parts(name)},
        "record": str(plan.folder_of_records(name) / "{part}.parquet"),
        "records": _shown(plan.records(name)),
        "needs_records": list(kind.needs_records),
        "data_sets": list(plan.data_sets(name)),
        "variants": plan.variants(name),
        "settings": configuration.of_experiment(plan.config, name),
        "config_digest": plan.config_digest(name),
        "code": provenance.digest(kind.__module__, "dpsub.reproduce.records"),
    }


def _data_set(plan: Plan, name: str) -> dict[str, str]:
    return {"file": str(plan.data_file(name)), "code": code_of_data(name)}


def code_of_data(name: str) -> str:
    """Return the digest of the code that finds and prepares a data set."""
    return provenance.digest("dpsub.data.fetch", DATA_SETS.get(name).__module__)


def _ambiguous(name: str) -> str:
    """Return the sentence that lists the possible meanings of an ambiguous name."""
    try:
        identify(name)
    except PlanError as problem:
        return str(problem)
    raise AssertionError(f"{name} is the name of one artefact")


def _shown(paths: Any) -> list[str]:
    return [str(path) for path in paths]


def _shown_by() -> list[Path]:
    """Return the sources of the code that writes the report."""
    folders = ("reproduce", *(f"papers/*/{part}" for part in SHOWN_PARTS))
    found = [path for folder in folders for path in PACKAGE.glob(folder)]
    return [
        source for path in found for source in ([path] if path.is_file() else path.rglob("*.py"))
    ]
