"""How many different records the draws of a run of steps touch: the gradients that training would have to evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks, sampling
from dpsub.errors import ArgumentError
from dpsub.reproduce.sweeps.cells import CellExperiment, Cost
from dpsub.sampling import Sampler
from dpsub.sampling.frame import Frame
from dpsub.streams import stream

_BLOCK = 256
_SECONDS_PER_STEP = 5e-7
_SECONDS_PER_SLOT = 1.6e-8
_SLOTS_OF_FIRST_STAGE = 0.35  # what a record of the first stage costs, in slots of the last


class DistinctDraws(CellExperiment):
    """`steps` samples are drawn in each replicate; records say how many different records they touched.

    The same counts follow from the sampler's law, so a sweep of it is cheap, scales with its sizes alone, and can be
    checked: what the workflow is measured and tested with.
    """

    name: ClassVar[str] = "distinct_draws"
    axes: ClassVar[tuple[str, ...]] = ("steps",)
    columns: ClassVar[dict[str, str]] = {"gradients": "int64", "distinct_mean": "float64", "distinct_sd": "float64"}

    def check(self, fields: Mapping[str, Any]) -> None:
        if ":" in fields["sampler"]:
            raise ArgumentError(f"{self.name} takes samplers by name, got {fields['sampler']!r}; name another")
        _sampler(fields["sampler"], fields["n"], fields["m"], fields["b"])
        checks.integer("steps", fields["steps"], at_least=1)

    def cost(self, fields: Mapping[str, Any]) -> Cost:
        slots = fields["m"] + _SLOTS_OF_FIRST_STAGE * (fields["b"] or 0)
        each = fields["steps"] * (_SECONDS_PER_STEP + slots * _SECONDS_PER_SLOT)
        return Cost(setup=0.001, replicate=each, memory=_BLOCK * slots * 64 / 2**20)

    def run(self, fields: Mapping[str, Any], replicates: range, *, root: int, data: Mapping[str, Path]) -> pd.DataFrame:
        sampler = _sampler(fields["sampler"], fields["n"], fields["m"], fields["b"])
        frame, steps = Frame(fields["n"]), fields["steps"]
        rows = []
        for replicate in replicates:
            rng = stream(root, experiment=self.name, cell=fields, role="sample", replicate=replicate)
            blocks = [min(_BLOCK, steps - start) for start in range(0, steps, _BLOCK)]
            counts = np.concatenate([sampler.draw_block(frame, size, rng).distinct for size in blocks])
            rows.append((replicate, "", int(counts.sum()), float(counts.mean()), float(counts.std())))
        return pd.DataFrame(rows, columns=["replicate", "data", *self.columns])


@cache
def _sampler(name: str, n: int, m: int, b: int | None) -> Sampler:
    """Return the sampler; raises ArgumentError where the sizes contradict each other."""
    return sampling.of_sizes(name, n=n, m=m, b=b)
