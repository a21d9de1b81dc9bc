"""Number of different records in the draws of a run of steps: the gradients that training would
have to evaluate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import sampling
from dpsub.reproduce import settings as kinds
from dpsub.reproduce.experiment import Cost, Experiment, Run, narrowed, takes_first_stage
from dpsub.reproduce.records import recorded_first_stage
from dpsub.sampling.frame import Frame

# Steps that are drawn together: bounds the memory.
_BLOCK = 256
# Measured on one core, for the plan of a sweep; no result depends on them.
_SECONDS_PER_STEP = 5e-7
_SECONDS_PER_SLOT = 1.6e-8
_SLOTS_OF_FIRST_STAGE = 0.35  # what a record of the first stage costs, in slots of the last


class DistinctDraws(Experiment):
    """Number of different records among `steps` samples, drawn afresh in each replicate.

    The same counts follow from the sampler's law, so a sweep of it is cheap, scales with its sizes
    alone, and can be checked: what sweeps are measured and tested with. No artefact reads it.
    """

    class Settings(kinds.ExperimentSettings):
        """Sizes of the frame and of the samples."""

        replicates: kinds.Replicates = 2
        n: kinds.FrameSize = 1000
        m: kinds.SampleSize = 50
        b: kinds.FirstStage | None = 100
        steps: kinds.Iterations = 100
        samplers: kinds.Samplers = ("poisson", "wor", "must_ow")

        def check(self) -> None:
            for name in self.samplers:
                self.sampler(name)

        def sampler(self, name: str) -> sampling.Sampler:
            """Return a sampler of these sizes; raises ArgumentError where they contradict each
            other."""
            return sampling.of_sizes(
                name, n=self.n, m=self.m, b=self.b if takes_first_stage(name) else None
            )

    name: ClassVar[str] = "distinct_draws"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "sampler": "str",
        "n": "int64",
        "m": "int64",
        "b": "int64",
        "steps": "int64",
        "gradients": "int64",
        "distinct_mean": "float64",
        "distinct_sd": "float64",
    }
    variants: ClassVar[tuple[str, ...]] = ("consistent",)
    axes: ClassVar[tuple[str, ...]] = ("samplers",)
    keys: ClassVar[tuple[str, ...]] = ("sampler", "n", "m", "b", "steps")

    def cells(self, settings: Any) -> Iterator[Any]:
        """Yield one sampler at a time; one without a first stage has no b, so that sizes b give one
        cell of it."""
        for cell in super().cells(settings):
            staged = takes_first_stage(cell.samplers[0])
            yield cell if staged else narrowed(cell, b=None)

    def cost(self, settings: Any) -> Cost:
        slots = settings.m + _SLOTS_OF_FIRST_STAGE * recorded_first_stage(settings.b)
        each = settings.steps * (_SECONDS_PER_STEP + slots * _SECONDS_PER_SLOT)
        return Cost(setup=0.001, replicate=each, memory=_BLOCK * slots * 64 / 2**20)

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        frame, steps, rows = Frame(settings.n), settings.steps, []
        for name in settings.samplers:
            # A sampler without a first stage has the same records whatever b is.
            b = recorded_first_stage(settings.b if takes_first_stage(name) else None)
            fields = {"sampler": name, "n": settings.n, "m": settings.m, "b": b, "steps": steps}
            sampler = settings.sampler(name)
            blocks = [min(_BLOCK, steps - start) for start in range(0, steps, _BLOCK)]
            for replicate in run.replicates:
                rng = run.streams.sample(fields, replicate)
                counts = np.concatenate(
                    [sampler.draw_block(frame, size, rng).distinct for size in blocks]
                )
                rows.append(
                    (
                        replicate,
                        *fields.values(),
                        int(counts.sum()),
                        float(counts.mean()),
                        float(counts.std()),
                    )
                )
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
