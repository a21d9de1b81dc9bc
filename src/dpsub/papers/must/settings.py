"""Settings that experiments of this paper share; each stands here once."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpsub import sampling
from dpsub.reproduce import settings as s

MUST = ("must_ow", "must_ww")
"""The two samplers that the paper's statements call MUST, drawn from fewer records than WR."""

# The samplers of the paper's experiments; MUST.WO has the law of WR (Corollary 6), so that the
# experiments leave it out and only its draws are counted and timed (Tables 9 and 10).
FIVE = ("poisson", "wor", "wr", *MUST)
SIX = ("poisson", "wor", "wr", "must_wo", *MUST)
METRICS = ("accuracy", "sensitivity", "specificity", "ppv", "npv", "f1")
"""Metrics of a classifier, on the test part of Adult."""

CONSISTENT_NOISE = "table8_consistent_noise"
"""Name, in the records, of Table 8 composed at the larger noise of the consistent utilities."""

PRINTED_SCALE = "table8_printed_scale"
"""m sigma used as if it were in units of the clipping bound, which is how the printed bounds were
made (erratum E2)."""


class AmplificationCurves(s.Group):
    """Curves over base epsilon: Tables 2 and 3, Figures 4 and S3, Section S8."""

    @classmethod
    def key(cls) -> str:
        return "grid"

    n: s.FrameSize = 1000
    b: s.FirstStage = 500
    m: s.SampleSize = 400
    # WR, MUST.WO, MUST.OW and MUST.WW need the group profile at u times the shift: both mechanisms
    # have it in closed form, so that no black-box bound of group privacy is needed.
    mechanisms: s.Mechanisms = ("laplace", "gaussian")
    # The grid of Figure 4; the printed thresholds of Section S8 are its points, not the exact roots
    # (erratum E11).
    epsilon_step: s.Positive = Field(0.01, description="Step of the grid of base epsilon, in nats.")
    epsilon_max: s.Positive = Field(6, description="Last point of the grid, in nats.")


class Experiment1(s.Group):
    """Statistics of subsets: Tables 4 and 5."""

    n: s.FrameSize = 300
    # The variance estimate divides by m - 1.
    m: Annotated[s.SampleSize, Field(ge=2)] = 30
    # 70 has a row in Table 5 and no column in Table 4 (erratum E15).
    b: s.Sizes = (10, 20, 30, 50, 70, 100)
    epsilon_amplified: s.EpsilonAmplified = 0.1
    # The data are N(0, 1) and the paper does not clip them: 99.99 % lie in [-4, 4] (erratum E4).
    lower: float = Field(-4, description="Lower bound of the range of the data.")
    upper: float = Field(4, description="Upper bound of the range of the data.")


class Experiment2(s.Group):
    """Linear regression: Tables 6 and 7, Figure 6."""

    n: s.FrameSize = 1000
    b: s.FirstStage = 200
    m: s.SampleSize = 100
    clip: s.Norm = 3
    epsilon_amplified: s.Listed[s.Positive] = Field(
        (0.01, 0.001), description="Targets epsilon', in nats."
    )


class Experiment3(s.Group):
    """Logistic regression on Adult: Table 8, Figure S4."""

    b: s.FirstStage = 500
    m: s.SampleSize = 300
    clip: s.Norm = 3
    epsilon_amplified: s.EpsilonAmplified = 0.0005


class Table8(Experiment3):
    """The compositions behind the bounds delta_c of Table 8."""

    # Rows of the training part of Adult, of 41292; the accounting composes the paper's size,
    # whatever data the fits have read.
    n: s.FrameSize = 30969
    epsilon: s.Epsilon = 2
    # T of Section 4.2.3; the 3000 of Section 4.3 is a misprint (erratum E10).
    n_compositions: s.Releases = 1000
    samplers: s.Samplers = FIVE


class SizesOfFigureS2(s.Group):
    """Sizes of Figure S2, and of the curves of proved bounds."""

    n: s.FrameSize = 10000
    b: s.FirstStage = 118
    m: s.SampleSize = 200


class FigureS2(SizesOfFigureS2):
    """The compositions behind the curves of Figure S2."""

    # At 0.05 the mean loss of one occurrence is 1 / (2 s^2) = 200 nats, far beyond the L = 10 of
    # Figure S2.
    scale: float = Field(
        4, ge=0.05, description="Scale of the noise in units of one occurrence's shift."
    )
    epsilon: s.Epsilon = 1
    n_compositions: s.Sizes = Field(
        (200, 400, 600, 800, 1000), description="Numbers of composed releases."
    )
    # The paper says that MUST.WW fails here (erratum E16): it is composed all the same.
    samplers: s.Samplers = MUST


class DrawnSizes(s.Closed):
    """Sizes of one experiment of the paper."""

    n: s.FrameSize
    b: s.FirstStage
    m: s.SampleSize


class Draws(s.Group):
    """Repeated draws of every sampler: Tables 9 and 10."""

    draws: Annotated[
        int, Field(ge=2, le=100_000_000, description="Subsets drawn per sampler and setting.")
    ] = 10_000
    samplers: s.Samplers = SIX
    settings: s.Several[DrawnSizes] = Field(
        (
            DrawnSizes(n=Experiment1().n, b=50, m=Experiment1().m),
            DrawnSizes(n=Experiment2().n, b=Experiment2().b, m=Experiment2().m),
            DrawnSizes(n=Table8().n, b=Experiment3().b, m=Experiment3().m),
        ),
        description="Sizes (n, b, m), one entry for each experiment of the paper.",
    )

    def check(self) -> None:
        for sizes in self.settings:
            for sampler in self.samplers:
                sampling.of_sizes(sampler, n=sizes.n, m=sizes.m, b=sizes.b)
