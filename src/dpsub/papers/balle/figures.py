"""Figure 1 of the paper, and the effect of Poisson sampling on the error of a private total."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.papers.balle.claims import CURVES, PANELS
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.claims import Claim
from dpsub.reproduce.figures import Panel, curves, draw_panels, line, sampler_style, where
from dpsub.reproduce.labels import sampler_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The paper's legends are in its images alone: nothing in its text fixes n, m, theta or delta(0).
STATUS = "structure reproduced, parameters chosen"
BASES: dict[str, dict[str, Any]] = {
    "randomised_response": {"label": "randomised\nresponse", "color": "#CC79A7", "linestyle": "-"},
    "laplace": {"label": "Laplace", "color": "#0072B2", "linestyle": (0, (4, 1.5))},
    "gaussian": {"label": "Gaussian", "color": "#D55E00", "linestyle": (0, (1, 1.2))},
}
SIZES = ("#56B4E9", "#0072B2", "#002B55")  # light to dark with m
OTHERS: dict[str, tuple[Any, str, str]] = {
    "wr_no_group": ((0, (1, 1.2)), "with groups", "without"),
    "wr_black_box": ((0, (4, 1.5)), "white-box", "black-box"),
}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
PARTS = {"total_error": "-", "noise_error": (0, (4, 1.5)), "sampling_error": (0, (1, 1.2))}


class ProfilesAndBounds(Artefact):
    """Five panels, whose properties are all checked; the paper's parameters stand in its images
    only."""

    title = "Figure 1. Privacy profiles and subsampling bounds"
    name = "figure1"
    kind = "figure"
    caption = (
        "Privacy profiles: the shape of the curves is reproduced, with parameters of our choice, "
        "since the paper gives its own only in images. (a) Three mechanisms with equal δ at ε = 0. "
        "(b) The Gaussian and (c) the Laplace mechanism on samples with (WR) and without (WOR) "
        "replacement. (d) The Laplace mechanism under WR, with and without the effect of groups. "
        "(e) The same with white-box and black-box groups."
    )
    experiments = (CURVES,)
    keys = ("panel", "property")

    def rows(self, records: Records) -> list[dict[str, Any]]:
        """Return whether the properties of each panel hold."""
        rows = []
        for name, (panel, ask) in PANELS.items():
            for row in Claim(name, "", ask, self.experiments, variants=("stated",)).answers(
                records
            ):
                note = f"{STATUS}; {row['note']}" if "value" in row else row["note"]
                rows.append({"panel": panel, "property": row.pop("claim"), **row, "note": note})
        return rows

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, CURVES, variants=("stated",))
        # Points next to the end of a curve serve the claims about panel (c), not the picture.
        frame = frame[frame["point"] == "grid"].sort_values(
            ["panel", "curve", "level", "m", "x"], kind="stable"
        )
        by_panel = dict(iter(frame.groupby("panel")))
        limits = {
            panel: {"xlim": (0, part["x"].max()), "ylim": (0, None)}
            for panel, part in by_panel.items()
        }
        # Panels that stand side by side have one axis; without sampling the curve is above it.
        highest = frame[frame["curve"] != "none"].groupby("panel")["delta"].max()
        for pair in (["b", "c"], ["d", "e"]):
            for panel in pair:
                limits[panel]["ylim"] = (0, 1.05 * highest[pair].max())
        base = {"xlabel": "ε", "ylabel": "δ"}
        panels = [
            Panel(
                "base mechanisms, equal δ(0)",
                _bases(by_panel["a"]),
                {**base, **limits["a"]},
                "upper right",
            ),
            *(
                Panel(name, _sampled(by_panel[panel]), limits[panel], "upper right")
                for panel, name in (("b", "Gaussian, on samples"), ("c", "Laplace, on samples"))
            ),
            *(
                Panel(
                    f"Laplace, WR: {name}",
                    _groups(by_panel[panel], other),
                    limits[panel],
                    "upper right",
                )
                for panel, other, name in (
                    ("d", "wr_no_group", "effect of groups"),
                    ("e", "wr_black_box", "kind of groups"),
                )
            ),
            Panel("", [_parameters(frame)]),
        ]
        figure = draw_panels(
            panels, width=7.2, labels=self.labels(records), xlabel="ε′", ylabel="δ′"
        )
        columns = ["panel", "curve", "level", "m", "eta", "x", "delta", "log_delta"]
        return figure, frame[columns].reset_index(drop=True)


def _bases(frame: pd.DataFrame) -> list[Any]:
    """Curves of the three mechanisms at each start, each mechanism named once."""
    first = frame["level"].min()
    keys = [(name, level) for name in BASES for level in sorted(frame["level"].unique())]
    # Three starts, one legend entry: colour and dash tell mechanisms, the height of the start tells
    # delta(0).
    styles = {
        (name, level): BASES[name] | ({} if level == first else {"label": "_"})
        for name, level in keys
    }
    return [curves(frame, "x", "delta", by=("curve", "level"), styles=styles)]


def _sampled(frame: pd.DataFrame) -> list[Any]:
    sizes = frame.groupby("curve")["m"].first()
    styles = {
        name: sampler_style(name) | {"label": f"{sampler_label(name)}, m = {sizes[name]}"}
        for name in ("wor", "wr")
    }
    # Without sampling delta is ten times as large: on this axis the curve would leave no room for
    # the others.
    start = where(frame, curve="none")["delta"].max()

    def outside(axes: Axes) -> None:  # where both panels have no curve
        axes.text(
            0.97,
            0.48,
            f"without sampling,\nδ(0) = {start:.3f}:\nabove this axis",
            transform=axes.transAxes,
            ha="right",
            fontsize=6.5,
            color="#404040",
        )

    return [curves(frame, "x", "delta", by="curve", styles=styles, nested=1.2), outside]


def _groups(frame: pd.DataFrame, other: str) -> list[Any]:
    """Curves of each size, dashed for the other way to treat groups; then the meaning of the
    dashes."""
    dashes, plain, dashed = OTHERS[other]
    styles: dict[Any, dict[str, Any]] = {}
    for colour, m in zip(SIZES, sorted(frame["m"].unique()), strict=False):
        styles[m, "wr"] = {"color": colour, "alpha": 0.45, "linewidth": 3.0, "label": f"m = {m}"}
        styles[m, other] = {"color": colour, "linestyle": dashes, "label": "_"}
    # The legend explains dashes in grey, since colours stand for sizes.
    names = [
        line([], [], color="#606060", label=label, **style)
        for style, label in (
            ({"alpha": 0.45, "linewidth": 3.0}, plain),
            ({"linestyle": dashes}, dashed),
        )
    ]
    return [curves(frame, "x", "delta", by=("m", "curve"), styles=styles, marker=""), *names]


def _parameters(frame: pd.DataFrame) -> Any:
    """The parameters chosen, in the place of a sixth panel."""
    sampled = where(frame, curve="wor").iloc[0]
    starts = ", ".join(f"{level:g}" for level in sorted(where(frame, panel="a")["level"].unique()))
    sizes = f"n = {round(sampled['m'] / sampled['eta'])}, Δ/scale = {sampled['level']:g}"
    status = STATUS.replace(", ", ",\n")
    text = f"{status}\n\n(a) δ(0) = {starts}\n(b) to (e) {sizes}"

    def draw(axes: Axes) -> None:
        axes.axis("off")
        axes.text(0.0, 0.95, text, transform=axes.transAxes, fontsize=7, va="top", linespacing=1.5)

    return draw


class NoiseEfficiency(Artefact):
    """Efficiency gamma lambda / epsilon, and the error of a total from noise, from sampling and
    from both."""

    title = "What sampling costs and saves in noise"
    name = "noise_efficiency"
    kind = "figure"
    caption = (
        "What Poisson sampling at rate γ costs at equal ε. (a) Efficiency γλ/ε with λ = log(1 + "
        "(exp(ε) − 1)/γ): the noise on the total of all records, divided by the noise on the total "
        "of the sample scaled by 1/γ. (b) Standard deviation of the estimated total of n values "
        "spread over [0, 1]: from noise, from sampling (the same at every ε), and of both "
        "together. Both errors fall as γ rises: sampling never pays for itself in noise."
    )
    experiments = ("balle_noise",)
    keys = ("epsilon",)

    def rows(self, records: Records) -> list[dict[str, Any]]:
        """Return, for each epsilon, the efficiency at the smallest rate and whether it rises with
        the rate up to 1."""
        rows = []
        for epsilon, part in (
            self.needed(records, "balle_noise").sort_values("rate").groupby("epsilon")
        ):
            rises = part["efficiency"].is_monotonic_increasing and part["efficiency"].is_unique
            row = {"epsilon": epsilon, "variant": "rigorous"}
            rows += [
                {
                    **row,
                    "column": "efficiency_at_the_smallest_rate",
                    "value": part["efficiency"].iloc[0],
                },
                {
                    **row,
                    "column": "efficiency_rises_to_1",
                    "value": float(rises and part["efficiency"].max() <= 1),
                },
            ]
        return rows

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "balle_noise", variants=("rigorous",)).sort_values(
            ["epsilon", "rate"]
        )
        styles = {
            epsilon: {"color": colour, "label": f"ε = {epsilon:g}"}
            for colour, epsilon in zip(COLOURS, frame["epsilon"].unique(), strict=False)
        }
        # The sampling error does not depend on epsilon, and at rate 1 it is 0, which a log axis
        # cannot show.
        sampling = frame[
            (frame["epsilon"] == frame["epsilon"].min()) & (frame["sampling_error"] > 0)
        ]
        errors = [
            curves(
                frame,
                "rate",
                name,
                by="epsilon",
                styles=styles,
                label="_",
                linestyle=PARTS[name],
                nested=0.6 * (name == "total_error"),
            )
            for name in ("total_error", "noise_error")
        ]
        names = [
            line([], [], color="#606060", linestyle=PARTS[f"{name}_error"], label=f"(b): {name}")
            for name in ("total", "noise")
        ]
        names.append(
            line(
                sampling["rate"],
                sampling["sampling_error"],
                color="black",
                linestyle=PARTS["sampling_error"],
                label="(b): sampling",
            )
        )
        panels = [
            Panel(
                "efficiency: noise without / with sampling",
                [curves(frame, "rate", "efficiency", by="epsilon", styles=styles)],
                {"ylabel": "efficiency γλ / ε", "ylim": (0, 1)},
            ),
            Panel(
                "error of the estimated total",
                [*errors, *names],
                {"yscale": "log", "ylabel": f"standard deviation, n = {frame['n'].iloc[0]}"},
            ),
        ]
        figure = draw_panels(
            panels,
            columns=2,
            width=6.6,
            height=2.7,
            labels=self.labels(records),
            xlabel="sampling rate γ",
            xscale="log",
            xlim=(frame["rate"].min(), 1),
        )
        columns = ["n", "epsilon", "rate", "base_epsilon", "efficiency", *PARTS]
        return figure, frame[columns].reset_index(drop=True)
