"""What is refuted and proved about the privacy of many compositions (MUST, delta_c of Table 8 and Figure S2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from dpsub.papers.must.experiments.accounts import AccountsExperiment, Asked, adjacencies
from dpsub.papers.must.experiments.composition import CONSISTENT_NOISE, NOISES, noise_of_sum
from dpsub.papers.must.settings import FigureS2, Table8
from dpsub.reproduce.settings import (
    ExperimentSettings,
    Parts,
)

PRINTED_SCALE = "table8_printed_scale"
"""m sigma used as if it were in units of the clipping bound, which is how the printed bounds were made (erratum E2)."""


class ProvedComposition(AccountsExperiment):
    """delta(epsilon) after k compositions from both sides, next to the paper's pair; epsilon(1/n) where delta is tiny.

    "table8" is experiment 3 as it was run: noise as stated in units of the clipping bound, Poisson divided by the
    realised size of its samples, and by the fixed m as well; PRINTED_SCALE is the scale that made the printed bounds;
    CONSISTENT_NOISE is the larger noise of the consistent utilities, for which delta(2) is far below anything of
    interest and epsilon at delta = 1/n is asked for.
    """

    name: ClassVar[str] = "proved_composition"

    class Settings(ExperimentSettings):
        parts: Parts = 4
        table8: Table8 = Field(Table8(), description="Settings of Table 8.")
        figure_s2: FigureS2 = Field(FigureS2(), description="Settings of Figure S2.")

        def check(self) -> None:
            ProvedComposition.questions(self)

    @staticmethod
    def questions(settings: Settings) -> list[Asked]:
        return [*_table_8(settings.table8), *_figure_s2(settings.figure_s2)]


def _table_8(table: Table8) -> Iterator[Asked]:
    sizes = {"n": table.n, "b": table.b, "m": table.m}
    stated, consistent = NOISES["consistent"]
    clip = table.clip
    for name, noise, unit in (
        ("table8", stated, clip), (PRINTED_SCALE, stated, 1.0), (CONSISTENT_NOISE, consistent, clip)
    ):  # fmt: skip
        asked = ("epsilon", 1 / table.n) if name == CONSISTENT_NOISE else ("delta", table.epsilon)
        for sampler in table.samplers:
            scale = noise_of_sum(sampler, table, noise[1], noise[2]) / unit
            divided = ("realised", "fixed") if name == "table8" and sampler == "poisson" else ("fixed",)
            for denominator in divided:
                yield Asked(
                    table=name, sampler=sampler, **sizes, noise_multiplier=scale,
                    n_compositions=table.n_compositions, quantity=asked[0], given=asked[1],
                    adjacency=adjacencies(sampler)[0], denominator=denominator,
                )  # fmt: skip


def _figure_s2(figure: FigureS2) -> Iterator[Asked]:
    sizes = {"n": figure.n, "b": figure.b, "m": figure.m}
    for k in figure.n_compositions:
        for sampler in figure.samplers:
            yield Asked(
                table="figure_s2", sampler=sampler, **sizes, noise_multiplier=figure.scale, n_compositions=k,
                quantity="delta", given=figure.epsilon, adjacency=adjacencies(sampler)[0],
            )  # fmt: skip
