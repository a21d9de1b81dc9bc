"""A small run as the report sees it: artefacts at the sizes of the smoke run, and names that try to
become HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from dpsub.data import adult
from dpsub.reproduce import artefacts, configuration, verdicts
from dpsub.reproduce.artefacts import OutputDirs, build, printed_rows
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.papers import errata_files
from dpsub.reproduce.report import Run, write_report

ROOT = Path(__file__).resolve().parents[1]
HOSTILE = "<script>window.hit=1</script>\"'><img src=x onerror=window.hit=1>|`{{7*7}}`</details>"
ADULT = {"dataset": "adult", "label": "synthetic", "rows": 41292}
LEFT_OUT = ("proved_noise", "peer_bounds", "peer_times")  # slow, and of no table that is shown


@dataclass(frozen=True)
class Made:
    """Artefacts that were built, and the run that they make."""

    results: Path
    run: Run

    @property
    def folder(self) -> Path:
        """Where the pages are."""
        return self.results / "report"

    def write(self, **changes: Any) -> dict[str, str]:
        """Write the pages with some fields of the run changed, and return their texts by name
        ("index", "must")."""
        write_report(self.folder, replace(self.run, **changes))
        return {
            path.stem: path.read_text(encoding="utf-8")
            for path in sorted(self.folder.glob("*.html"))
        }


def records(folder: Path) -> dict[str, pd.DataFrame]:
    """Return records of the main paper, and of the comparison, at the sizes of the smoke run; Adult
    is a stand-in."""
    config = configuration.load([ROOT / "config.yaml", ROOT / "workflow/smoke.yaml"])["experiments"]
    data = {"adult": folder / "adult.parquet"}
    adult.write(adult.scaled(adult.stand_in()), data["adult"], label="synthetic", sources={})
    found = {}
    for name, kind in REGISTRY.members().items():
        if (kind.paper == "must" and name not in LEFT_OUT) or name == "fair_comparison":
            settings = kind.settings(config[name])
            every, label = (
                range(kind().replicates(settings)),
                "synthetic" if kind().data_of(settings) else "",
            )
            found[name] = pd.concat(
                [
                    kind()
                    .compute(config[name], variant=variant, replicates=every, data=data)
                    .assign(variant=variant, data=label)
                    for variant in kind.variants
                ],
                ignore_index=True,
            )
    return found


def make(results: Path, names: Sequence[str]) -> Made:
    """Build artefacts below `results`."""
    dirs, given = OutputDirs.under(results), records(results)
    chosen = [artefacts.REGISTRY.get(name)() for name in names]
    frames = [
        verdicts.read(build(one, given, printed_rows(one), dirs)["comparison"]) for one in chosen
    ]
    run = Run(
        artefacts=chosen,
        dirs=dirs,
        comparison=pd.concat([frame for frame in frames if len(frame)], ignore_index=True),
        data=[ADULT],
        errata=errata_files(),
        provenance={"seed": "7", "commit": "0123abcd"},
        environment={"versions": {"numpy": "2.0.0"}, "installed": {"numpy": "2.0.0"}},
        configuration="seed: 7\n",
    )
    return Made(results, run)


def hostile(made: Made) -> dict[str, Any]:
    """Return fields of a run in which every text that comes from data or a configuration is
    hostile."""
    row = {
        **made.run.comparison.iloc[-1].to_dict(),
        "artefact": f"table{HOSTILE}",
        "row": f"a={HOSTILE.replace('=', '')}",
        "column": HOSTILE,
        "printed": HOSTILE,
        "kind": "structure",
        "verdict": "structure_only",
        "note": HOSTILE,
        "erratum": HOSTILE,
    }
    return {
        "comparison": pd.concat([made.run.comparison, pd.DataFrame([row])], ignore_index=True),
        "data": [{"dataset": "adult", "label": f"synthetic{HOSTILE}", HOSTILE: HOSTILE}],
        "provenance": {"seed": HOSTILE, HOSTILE: "7"},
        "environment": {"versions": {HOSTILE: HOSTILE}, "installed": {HOSTILE: HOSTILE}},
        "configuration": HOSTILE,
        "remarks": [HOSTILE],
    }
