"""A small run as the report sees it: artefacts at the sizes of the smoke run, and names that try to
become HTML."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from dpsub.data import adult
from dpsub.reproduce import artefacts, configuration, settings, verdicts
from dpsub.reproduce.artefacts import OutputDirs, build, printed_rows
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.papers import errata_files
from dpsub.reproduce.report import FinishedRun, write_report

ROOT = Path(__file__).resolve().parents[1]
HOSTILE = "<script>window.hit=1</script>\"'><img src=x onerror=window.hit=1>|`{{7*7}}`</details>"
ADULT = {"dataset": "adult", "label": "synthetic", "rows": 41292}


@dataclass(frozen=True)
class Made:
    """Artefacts that were built, and the run that they make."""

    results: Path
    run: FinishedRun

    @property
    def folder(self) -> Path:
        """Folder of the pages."""
        return self.results / "report"

    def write(self, **changes: Any) -> dict[str, str]:
        """Write the pages with some fields of the run changed, and return their texts by name
        ("index", "demo")."""
        write_report(self.folder, replace(self.run, **changes))
        return {
            path.stem: path.read_text(encoding="utf-8")
            for path in sorted(self.folder.glob("*.html"))
        }


def records(
    folder: Path, experiments: Collection[str], over: Mapping[str, Any]
) -> dict[str, pd.DataFrame]:
    """Return records of experiments at the sizes of the smoke run; Adult is a stand-in."""
    config = configuration.load([ROOT / "config.yaml", ROOT / "workflow/smoke.yaml"])["experiments"]
    data = {"adult": folder / "adult.parquet"}
    adult.write(adult.scaled(adult.stand_in()), data["adult"], label="synthetic", sources={})
    chosen = {name: settings.merge(config[name], over.get(name, {})) for name in experiments}
    return {name: _records_of(name, chosen[name], data) for name in experiments}


def _records_of(name: str, chosen: dict[str, Any], data: dict[str, Path]) -> pd.DataFrame:
    kind = REGISTRY.get(name)
    experiment, typed = kind(), kind.settings(chosen)
    replicates = range(experiment.replicates(typed))
    label = "synthetic" if experiment.data_of(typed) else ""
    frames = [
        experiment.compute(chosen, variant=variant, replicates=replicates, data=data).assign(
            variant=variant, data=label
        )
        for variant in kind.variants
    ]
    return pd.concat(frames, ignore_index=True)


def make(
    results: Path,
    names: Sequence[str],
    over: Mapping[str, Any] | None = None,
    shown: Mapping[str, Any] | None = None,
) -> Made:
    """Build artefacts below `results`, from records at the sizes `over` those of the smoke run; the
    pages are shown these settings of experiments."""
    dirs = OutputDirs.under(results)
    chosen = [artefacts.REGISTRY.get(name)() for name in names]
    read = {experiment for artefact in chosen for experiment in artefact.experiments}
    given = records(results, sorted(read), over or {})
    frames = [
        verdicts.read(build(one, given, printed_rows(one), dirs)["comparison"]) for one in chosen
    ]
    run = FinishedRun(
        artefacts=chosen,
        dirs=dirs,
        comparison=pd.concat([one for one in frames if len(one)] or frames[:1], ignore_index=True),
        data=[ADULT],
        errata=errata_files(),
        provenance={"seed": "7", "commit": "0123abcd"},
        environment={
            "commit": "0123abcd",
            "date": "2026-11-23",
            "versions": {"dpsub": "0.2.0", "numpy": "2.0.0"},
            "installed": {"numpy": "2.0.0"},
        },
        settings=dict(shown or {}),
        citation=yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8")),
        configuration="seed: 7\n",
    )
    return Made(results, run)


def hostile(made: Made) -> dict[str, Any]:
    """Return fields of a run in which every text that comes from data or a configuration is
    hostile."""
    # a row whose names are hostile, but whose numbers are those of a real one
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
        "environment": {
            "commit": HOSTILE,
            "date": HOSTILE,
            "versions": {"dpsub": "0.2.0", HOSTILE: HOSTILE},
            "installed": {HOSTILE: HOSTILE},
        },
        "configuration": HOSTILE,
        "remarks": [HOSTILE],
    }
