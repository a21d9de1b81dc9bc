"""What the jobs of a run took, from the last line of each job's log (`dpsub.reproduce.provenance.cost`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_COST = re.compile(r"^(\d+\.\d+) s of processor time, at most (\d+) MiB of memory$", re.MULTILINE)


@dataclass(frozen=True)
class TimedStage:
    """The jobs of one kind: "run_experiment/adult_logistic" or "build_table"."""

    name: str
    jobs: int
    seconds: float
    peak_mib: float


def stages(folder: Path) -> list[TimedStage]:
    """Return what the jobs took, the longest first; those of one experiment together, those of other rules together.

    Parameters
    ----------
    folder : Path
        Folder of logs, `<rule>.log` or `<rule>/<...>.log`; those of jobs that have not ended do not count.
    """
    found: dict[str, list[tuple[float, int]]] = {}
    for path in sorted(folder.rglob("*.log")):
        said = _COST.findall(path.read_text(encoding="utf-8", errors="replace"))
        if said:
            parts = path.relative_to(folder).with_suffix("").parts
            name = "/".join(parts[:2]) if parts[0].endswith("_experiment") else parts[0]
            found.setdefault(name, []).append((float(said[-1][0]), int(said[-1][1])))
    made = [
        TimedStage(name, len(jobs), sum(seconds for seconds, _ in jobs), max(peak for _, peak in jobs))
        for name, jobs in found.items()
    ]
    return sorted(made, key=lambda stage: (-stage.seconds, stage.name))
