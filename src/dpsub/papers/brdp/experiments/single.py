"""One release: the law of its noise, recycling rates, acceptance, and the literal loop put to a
test."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dpsub import checks
from dpsub.papers.brdp.releases import STATED, Budget, row
from dpsub.papers.brdp.settings import BUDGET, RELEASE, Amount, Draws, KernelName, Number, schema
from dpsub.recycling import Recycled, choice, paper
from dpsub.reproduce.experiment import Grid, Run
from dpsub.reproduce.settings import Delta, ExperimentSettings, Listed, Several
from dpsub.sampling.laws import clopper_pearson

MARKS = (1.0, 2.0)  # epsilon_y that are always among the points, for they stand in the text


class BrdpNoise(Grid):
    """The law of recycled noise, drawn and computed (Figure 2).

    Topics: "density" at points x; "histogram" of draws of the literal loop by bins with centre x;
    "summary". `value` is what was drawn, `law` what the law says; a density is not drawn. In the
    summary, `quantity` is acceptance, sd, or draws (mean number of kernel draws a release). The
    parameters are those of the paper.
    """

    name = "brdp_noise"
    stage = "simulate"
    columns = schema(f"topic method quantity x value law n_samples {BUDGET} rate scale exact_delta")
    variants = ("stated",)
    keys = ("topic", "method", "quantity", "x")

    class Settings(ExperimentSettings, Budget):
        epsilon: Amount = 2
        n_samples: Number = Field(100000, description="Draws of the loop.")
        bins: Annotated[int, Field(ge=4, le=10_000_000)] = Field(
            60, description="Bins on each side of 0."
        )
        half_width: Amount = 12

        def check(self) -> None:
            checks.real("half_width", self.half_width, above=self.bound)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        half, count = settings.half_width, settings.n_samples
        # an even number of bins has the bounds on edges if the half width is a multiple of the
        # bound
        edges = np.linspace(-half, half, 2 * settings.bins + 1)
        for method in ("gau_dp", "gau_br"):
            chosen = settings.chosen(method)
            law = chosen.law
            base = {
                "method": method,
                "n_samples": count,
                "rate": law.rate,
                "scale": law.kernel.scale,
                "exact_delta": chosen.true_delta,
                "quantity": "density",
                **settings.fields,
            }
            rng = run.streams.noise({**settings.fields, "method": method}, 0)
            # The literal loop, not the shortcut of drawing by inversion: Figure 2 tests the paper's
            # mechanism.
            released, draws = law.release_by_loop(np.zeros(count), rng)
            # The law is averaged over the bins, as a histogram is, so that the two can be compared.
            frequency = np.histogram(released, edges)[0] / (count * np.diff(edges))
            expected = np.diff(law.cdf(edges)) / np.diff(edges)
            for x, value, mean in zip(
                (edges[:-1] + edges[1:]) / 2, frequency, expected, strict=True
            ):
                yield {**base, "topic": "histogram", "x": x, "value": value, "law": mean}
            # places on both sides of each jump, so that it is drawn upright
            jumps = [
                np.nextafter(end, side)
                for end in (law.lower, law.upper)
                for side in (-np.inf, np.inf)
            ]
            for x in np.sort(np.concatenate([np.linspace(-half, half, 241), jumps])):
                density = float(np.exp(law.log_density(x)))
                yield {**base, "topic": "density", "x": x, "value": density, "law": density}
            for quantity, value, truth in (
                ("acceptance", (np.abs(released) <= law.upper).mean(), law.acceptance),
                ("sd", released.std(), law.sd),
                ("draws", draws.mean(), law.normaliser),
            ):
                yield {
                    **base,
                    "topic": "summary",
                    "quantity": quantity,
                    "x": 0.0,
                    "value": value,
                    "law": truth,
                }


class BrdpRates(Grid):
    """Recycling rates of Gaussian kernels that spend epsilon_y of epsilon alone, at the same delta
    (Figure 3).

    Variant stated: methods "baseline" (Theorem 2) and "algorithm1"; rigorous: "exact", the largest
    rate that the exact profile allows. `exact_delta` is what each really has at epsilon.
    """

    name = "brdp_rates"
    stage = "account"
    columns = schema(f"method y {BUDGET} epsilon_y scale rate acceptance exact_delta")
    variants = ("stated", "rigorous")
    axes = ("deltas",)
    keys = ("delta", "epsilon_y", "method")

    class Settings(ExperimentSettings):
        sensitivity: Amount = 1
        bound: Amount = 1
        epsilon: Amount = 3
        deltas: Several[Delta] = (0.001, 1e-5, 1e-10)
        y: float = Field(10, description="The answer, on which nothing depends.")
        points: Number = Field(30, description="Points of the grid.")

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        # The grid starts one step above 0: a kernel that spends nothing has no scale.
        last, theta = settings.epsilon, settings.bound
        grid = np.linspace(last / settings.points, last, settings.points)
        points = np.unique(np.concatenate([grid, [mark for mark in MARKS if mark < last]])).tolist()
        for cell in (Budget.of(settings, delta=delta) for delta in settings.deltas):
            # As in Section 6, the kernel spends the same delta as the release.
            for spent in points:
                kernel = cell.calibrated("gau", spent)
                if run.variant == "rigorous":
                    largest = choice.largest_rate(
                        kernel, last, cell.delta, -theta, theta, cell.sensitivity
                    )
                    laws = {"exact": largest.law}
                else:
                    laws = {
                        # Both are the paper's choices; what they really have is in `exact_delta`.
                        "baseline": cell.recycled(kernel, paper.baseline_rate(last, spent)),
                        "algorithm1": cell.recycled(kernel),
                    }
                for method, law in laws.items():
                    yield {
                        **cell.fields,
                        "method": method,
                        "y": settings.y,
                        "epsilon_y": spent,
                        "scale": kernel.scale,
                        "rate": law.rate,
                        "acceptance": law.acceptance,
                        "exact_delta": choice.true_delta(law, last),
                    }


class BrdpAcceptance(Grid):
    """Acceptance against epsilon (Figure 4), and the most that any noise can accept.

    Variant stated: plain noise and the paper's recyclers; rigorous: the best recyclers, and method
    "ceiling", the largest acceptance of any symmetric unimodal noise that is (epsilon,
    delta)-private, from above, with `exact_delta` the target and -1 for what it does not have.
    """

    name = "brdp_acceptance"
    stage = "account"
    columns = schema(f"{BUDGET} {RELEASE}")
    variants = ("stated", "rigorous")
    axes = ("sensitivities",)
    keys = ("sensitivity", "epsilon", "method")

    class Settings(ExperimentSettings):
        sensitivities: Listed[Amount] = Field((1, 5), description="Sensitivities, one panel each.")
        bound: Amount = 1
        delta: Delta = 1e-5
        epsilon_min: Amount = 0.1
        epsilon_max: Amount = 6
        points: Number = Field(40, description="Points of the paper's curves.")
        exact_points: Number = Field(
            16, description="Points of the best recyclers and of the ceiling."
        )

        def check(self) -> None:
            checks.real("epsilon_max", self.epsilon_max, above=self.epsilon_min)

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        stated = run.variant == "stated"
        points = settings.points if stated else settings.exact_points
        for sensitivity in settings.sensitivities:
            for epsilon in np.linspace(settings.epsilon_min, settings.epsilon_max, points).tolist():
                cell = Budget.of(settings, sensitivity=sensitivity, epsilon=epsilon)
                # The exact recyclers need a search a point, hence the coarser grid.
                for method in STATED if stated else ("gau_best", "lap_best"):
                    yield {**cell.fields, **row(method, cell.chosen(method))}
                if not stated:
                    # The target, as the programme bounds every noise that keeps it.
                    # The ceiling is a bound over all noise: it has no scale, rate or deviation.
                    absent = dict.fromkeys(("scale", "epsilon_y", "rate", "sd"), -1.0)
                    yield {
                        **cell.fields,
                        **absent,
                        "method": "ceiling",
                        "acceptance": cell.ceiling(),
                        "exact_delta": cell.delta,
                    }


class AuditCase(Budget):
    """One kernel."""

    kernel: KernelName
    epsilon_y: Amount
    # At 0.01 two million draws can refute a promise; at 1e-5 they could not.
    delta: Delta = 0.01


class BrdpAudit(Grid):
    """Draws of the loop on two neighbours, and the number of them with a loss above epsilon.

    `lower` and `upper` are limits of P(S) - e^epsilon P'(S) for the best set S, which is the exact
    delta; each end is missed with a chance of at most 1 - `confidence`. `claimed` is the delta that
    Algorithm 1 was asked for.
    """

    name = "brdp_audit"
    stage = "simulate"
    columns = schema(
        "kernel epsilon_y sensitivity bound epsilon claimed rate draws lower estimate upper exact"
    )
    variants = ("stated",)
    axes = ("cases",)
    keys = ("kernel", "epsilon_y", "sensitivity", "bound", "epsilon", "claimed")

    class Settings(ExperimentSettings):
        draws: Draws = Field(2000000, description="Draws on each side.")
        confidence: Annotated[float, Field(gt=0.5, lt=1)] = Field(
            0.999, description="Of each interval."
        )
        cases: Several[AuditCase] = Field(
            (
                AuditCase(kernel="lap", epsilon_y=0.5),
                AuditCase(kernel="lap", epsilon_y=0.9),
                # With a wide bound (8) is too small for Gaussian kernels too, near the sensitivity
                # it is too large (BR2, BR3).
                AuditCase(kernel="gau", epsilon_y=0.5, bound=10),
                AuditCase(kernel="gau", epsilon_y=0.9),
            ),
            description="Kernels and budgets.",
        )

    def rows(self, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        draws, confidence = settings.draws, settings.confidence
        for case in settings.cases:
            # Both neighbours are drawn from one stream, so that their draws are independent.
            rng = run.streams.noise(dict(case), 0)
            law, growth = (
                case.recycled(case.calibrated(case.kernel, case.epsilon_y)),
                math.exp(case.epsilon),
            )
            # The best event: where the loss exceeds epsilon, P(S) - e^epsilon P'(S) is delta
            # itself.
            hits = [
                _losses_above(
                    case.epsilon, law, law.release_by_loop(np.full(draws, value), rng).released
                )
                for value in (0.0, case.sensitivity)
            ]
            (low, high), (low_other, high_other) = (
                clopper_pearson(count, draws, confidence) for count in hits
            )
            yield {
                **{
                    name: getattr(case, name)
                    for name in ("kernel", "epsilon_y", "sensitivity", "bound", "epsilon")
                },
                "claimed": case.delta,
                "rate": law.rate,
                "draws": draws,
                # Each end takes the unfavourable limits of both probabilities.
                "lower": low - growth * high_other,
                "estimate": (hits[0] - growth * hits[1]) / draws,
                "upper": high - growth * low_other,
                "exact": choice.true_delta(law, case.epsilon),
            }


def _losses_above(epsilon: float, law: Recycled, released: np.ndarray) -> int:
    """Return the number of releases with a loss above epsilon, for the values 0 and D."""
    # At q = 1 a release outside has no density: infinite losses count, and 0 / 0 cannot be drawn.
    with np.errstate(invalid="ignore", divide="ignore"):
        loss = law.log_density(released) - law.log_density(released - law.sensitivity)
    return int(np.count_nonzero(loss > epsilon))
