"""How long the jobs of a run took, from the files that Snakemake leaves of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class Stage:
    """The jobs of one kind: "run_experiment/adult_logistic" or "build_table"."""

    name: str
    jobs: int
    seconds: float
    peak_mib: float


def stages(folder: Path) -> list[Stage]:
    """Return what the jobs took, the longest first; those of one experiment together, those of other rules together.

    Parameters
    ----------
    folder : Path
        Folder of files `<rule>/<...>.tsv` with the columns `s` (seconds) and `max_rss` (MiB, "-" if unknown).
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for path in sorted(folder.rglob("*.tsv")):
        table = pd.read_csv(path, sep="\t")
        parts = path.relative_to(folder).parts
        name = "/".join(parts[:2]) if parts[0].endswith("_experiment") else parts[0]
        memory = pd.to_numeric(table["max_rss"], errors="coerce").fillna(0.0)
        found.setdefault(name, []).append((float(table["s"].sum()), float(memory.max())))
    made = [
        Stage(name, len(jobs), sum(seconds for seconds, _ in jobs), max(peak for _, peak in jobs))
        for name, jobs in found.items()
    ]
    return sorted(made, key=lambda stage: (-stage.seconds, stage.name))
