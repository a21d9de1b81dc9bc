"""What canaries show about the noise and the first centres of each mode (beyond Fay et al.)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks
from dpsub.importance.audit import audit_first_centres, audit_noise
from dpsub.papers.importance.experiments.importance_cells import MODES
from dpsub.reproduce.experiment import Experiment
from dpsub.streams import stream


class ImportanceAudit(Experiment):
    """One record an attack: the loss that is promised, and the one that the draws prove at the confidence.

    Attacks: noise, a lone canary under the noise on sums and counts; first_centres, an outlier that may become a first
    centre. Variants are the modes of the clustering.
    """

    name: ClassVar[str] = "importance_audit"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "attack": "str", "promised": "float64", "lower": "float64", "event": "str",
        "hits_with": "int64", "hits_without": "int64", "draws": "int64", "confidence": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("as_done", "stated", "consistent")

    def check(self, settings: Mapping[str, Any]) -> None:
        checks.integer("noise_draws", settings["noise_draws"], at_least=100)
        checks.integer("centre_draws", settings["centre_draws"], at_least=100)
        checks.real("confidence", settings["confidence"], above=0, below=1)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        mode, confidence, rows = MODES[variant], float(settings["confidence"]), []
        for attack, play, draws in (("noise", audit_noise, settings["noise_draws"]),
                                    ("first_centres", audit_first_centres, settings["centre_draws"])):  # fmt: skip
            rng = stream(root, experiment=self.name, cell={"attack": attack, "mode": mode}, role="noise", replicate=0)
            found = play(mode, rng, draws=int(draws), confidence=confidence)
            rows.append((0, attack, found.promised, found.lower, found.event, *found.hits, found.draws, confidence))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
