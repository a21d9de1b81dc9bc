"""Noisy means of samples, random walks, and the ages of a real data set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import sampling
from dpsub.data import adult
from dpsub.reproduce import settings as kinds
from dpsub.reproduce.experiment import Cost, Experiment, Grid, Run, takes_first_stage
from dpsub.reproduce.records import recorded_first_stage
from dpsub.sampling.frame import Frame

_BLOCK = 256  # samples that are drawn together
# measured on one core, for the plan of a sweep
_SECONDS_PER_STEP, _SECONDS_PER_SLOT = 5e-7, 3e-8


class Means(Experiment):
    """The mean of many samples of the numbers 1 to n, with noise, and how many records they
    touch."""

    name: ClassVar[str] = "example_means"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "sampler": "str",
        "b": "int64",
        "steps": "int64",
        "mean": "float64",
        "distinct": "float64",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated",)
    axes: ClassVar[tuple[str, ...]] = ("samplers",)
    keys: ClassVar[tuple[str, ...]] = ("sampler", "b", "steps")

    class Settings(kinds.ExperimentSettings):
        parts: kinds.Parts = 1
        replicates: kinds.Replicates = 20
        n: kinds.FrameSize = 100
        m: kinds.SampleSize = 10
        b: kinds.FirstStage | None = 20
        steps: kinds.Iterations = 50
        samplers: kinds.Samplers = ("poisson", "wor", "must_ow")

        def check(self) -> None:
            for name in self.samplers:
                self.sampler(name)

        def sampler(self, name: str) -> sampling.Sampler:
            """Return a sampler of these sizes."""
            b = self.b if takes_first_stage(name) else None
            return sampling.of_sizes(name, n=self.n, m=self.m, b=b)

    def cells(self, settings: Any) -> Iterator[Any]:
        """Yield one sampler at a time; one without a first stage has no b."""
        for cell in super().cells(settings):
            staged = takes_first_stage(cell.samplers[0])
            yield cell if staged else cell.model_copy(update={"b": None})

    def cost(self, settings: Any) -> Cost:
        seconds = settings.steps * (_SECONDS_PER_STEP + settings.m * _SECONDS_PER_SLOT)
        return Cost(setup=0.001, replicate=seconds, memory=_BLOCK * settings.m * 64 / 2**20)

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        frame, steps, rows = Frame(settings.n), settings.steps, []
        for name in settings.samplers:
            b = recorded_first_stage(settings.b if takes_first_stage(name) else None)
            key = {"sampler": name, "b": b, "steps": steps}
            sampler = settings.sampler(name)
            blocks = [min(_BLOCK, steps - start) for start in range(0, steps, _BLOCK)]
            for replicate in run.replicates:
                rng = run.streams.sample(key, replicate)
                noise = run.streams.noise(key, replicate)
                drawn = [sampler.draw_block(frame, size, rng) for size in blocks]
                distinct = np.concatenate([block.distinct for block in drawn])
                mean = release(float(distinct.mean()), 0.1, noise)
                rows.append((replicate, *key.values(), mean, float(distinct.mean())))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


def release(value: float, sigma: float, rng: np.random.Generator) -> float:
    """Return a number with noise."""
    return value + sigma * float(rng.standard_normal())


class Walks(Experiment):
    """The end of a random walk with steps N(0, scale^2)."""

    name: ClassVar[str] = "example_walks"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "scale": "float64",
        "end": "float64",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated",)
    axes: ClassVar[tuple[str, ...]] = ("scales",)
    keys: ClassVar[tuple[str, ...]] = ("scale",)

    class Settings(kinds.ExperimentSettings):
        parts: kinds.Parts = 2
        replicates: kinds.Replicates = 40
        steps: kinds.Iterations = 50
        scales: kinds.Listed[kinds.Positive] = (1.0, 2.0)

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        rows = []
        for scale in settings.scales:
            for replicate in run.replicates:
                rng = run.streams.noise({"scale": scale}, replicate)
                steps = scale * rng.standard_normal(settings.steps)
                rows.append((replicate, scale, float(steps.sum())))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


class Trace(Grid):
    """One random walk, step by step."""

    name: ClassVar[str] = "example_trace"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "step": "int64",
        "place": "float64",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(kinds.ExperimentSettings):
        steps: kinds.Iterations = 50

    def rows(self, settings: Any, run: Run) -> Iterator[dict[str, Any]]:
        walk = run.streams.noise({}, 0).standard_normal(settings.steps)
        yield {"step": np.arange(1, settings.steps + 1), "place": walk.cumsum()}


class Ages(Grid):
    """The mean age, on the data set's own scale from 0 to 1."""

    name: ClassVar[str] = "example_ages"
    stage = "train"
    columns: ClassVar[dict[str, str]] = {"replicate": "int64", "group": "str", "age": "float64"}
    variants: ClassVar[tuple[str, ...]] = ("stated",)
    needs_data: ClassVar[tuple[str, ...]] = ("adult",)

    class Settings(kinds.ExperimentSettings):
        pass

    def rows(self, settings: Any, run: Run) -> Iterator[dict[str, Any]]:
        yield {"group": "all", "age": float(adult.load(run.data["adult"]).table["age"].mean())}
