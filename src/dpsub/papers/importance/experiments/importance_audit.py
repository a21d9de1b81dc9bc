"""What canaries show about the noise and the first centres of each mode (beyond Fay et al.)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import pandas as pd
from pydantic import Field

from dpsub.importance.audit import audit_first_centres, audit_noise
from dpsub.papers.importance.experiments.importance_cells import MODES
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Share


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

    class Settings(ExperimentSettings):
        noise_draws: Annotated[int, Field(ge=100)] = Field(40000, description="Runs with and without the canary, each.")
        centre_draws: Annotated[int, Field(ge=100)] = Field(8000, description="Runs with and without the outlier, each.")
        confidence: Share = Field(0.99, description="Of the lower bounds.")

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        mode, confidence, rows = MODES[run.variant], float(settings.confidence), []
        for attack, play, draws in (("noise", audit_noise, settings.noise_draws),
                                    ("first_centres", audit_first_centres, settings.centre_draws)):  # fmt: skip
            rng = run.streams.noise({"attack": attack, "mode": mode}, 0)
            found = play(mode, rng, draws=int(draws), confidence=confidence)
            rows.append((0, attack, found.promised, found.lower, found.event, *found.hits, found.draws, confidence))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
