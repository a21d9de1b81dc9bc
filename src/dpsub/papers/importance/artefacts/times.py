"""Tables 2 and 3 and Figure 5: clock times by data set, sampler and size, kept with the timings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from dpsub.papers.importance.artefacts.labels import APPENDIX, MAIN, SAMPLERS, TITLES, OnData, ordered, title_of
from dpsub.reproduce.artefact import Records, values_frame
from dpsub.reproduce.figures import finish, new, panel_letter
from dpsub.reproduce.layout import Layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENT = "importance_times"
PARTS = ("t_calibration", "t_weights", "t_sampling", "t_dp_lloyd")
BAR_SIZE = 20000.0
PAPERS = ("t_weights", "t_sampling", "t_dp_lloyd")  # what the paper's totals hold
CELL = ["dataset", "sampler", "m_paper", "backend"]


def medians(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the median time of each part of each cell, the total, and its share of full data's, in percent."""
    found = frame.groupby(CELL, sort=False).agg({**dict.fromkeys(PARTS, "median"), "data_label": "first", "m": "first",
                                                 "n": "first"}).reset_index()  # fmt: skip
    found["t_total"] = found[list(PAPERS)].sum(axis=1)
    full = found[found["sampler"] == "full"].set_index(["dataset", "backend"])["t_total"]
    places = pd.MultiIndex.from_frame(found[["dataset", "backend"]])
    found["rel_total_time"] = 100 * found["t_total"] / full.reindex(places).to_numpy()
    found["m_over_n_percent"] = 100 * found["m"] / found["n"]
    return found


class _Times(OnData):
    """Times of some data sets, in the paper's layout."""

    kind = "table"
    experiments = (EXPERIMENT,)
    keys = ("dataset", "sampler", "m", "backend")
    timed = True
    datasets: ClassVar[tuple[str, ...]]
    layout = Layout(panels=("dataset", "backend"), stub=("sampler", "m"), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, EXPERIMENT)
        rows = []
        for cell in medians(frame[frame["dataset"].isin(self.datasets)]).to_dict("records"):
            full, loop = cell["sampler"] == "full", cell["backend"] == "loop"
            fields = {"dataset": TITLES[cell["dataset"]], "sampler": cell["sampler"]}
            fields |= {} if full else {"m": cell["m_paper"]}
            fields |= {"backend": "loop"} if loop else {}
            columns = ("t_dp_lloyd", "t_total") if full else (*PARTS, "t_total")
            rows += [{**fields, "column": name, "variant": "stated", "value": cell[name],
                      "note": cell["data_label"]}
                     for name in (*columns, "rel_total_time", "m_over_n_percent")]  # fmt: skip
        return values_frame(rows)

    def labels(self, records: Records) -> tuple[str, ...]:
        frame = records.get(EXPERIMENT, pd.DataFrame({"dataset": [], "data_label": []}))
        return tuple(sorted(set(frame.loc[frame["dataset"].isin(self.datasets), "data_label"])))


CAPTION = (
    "Seconds of processor time of one evaluation of the weights, of sampling, and of DP-Lloyd on the sample at "
    "epsilon = 3 (medians over turns), their total, the total over that of full data, and the share of the records "
    "drawn, in percent. t_calibration, which the paper leaves out of its totals, is the search for the noise. loop: a "
    "plain loop over rows, as opposed to matrix products over blocks of rows. Stand-ins have fewer rows than the "
    "paper's data."
)


class Table2(_Times):
    """Times of the main data sets."""

    name = "table2"
    datasets = MAIN
    caption = CAPTION


class Table3(_Times):
    """Times of the data sets of the appendix."""

    name = "table3"
    datasets = APPENDIX
    caption = CAPTION


class Figure5(OnData):
    """Relative times over sizes, and what they consist of."""

    name = "figure5"
    kind = "figure"
    timed = True
    experiments = (EXPERIMENT,)
    keys = ("panel",)
    caption = (
        "Time of weights, sampling and DP-Lloyd over that of full data against the expected size (percent), by data "
        "set and sampler; dotted: the share of the records that is drawn. Last panel: parts of the relative time at "
        "one size. Processor time on this machine; a vectorised DP-Lloyd is faster than the paper's, so that the "
        "relative cost of weights and sampling is larger."
    )
    shown: ClassVar[tuple[str, ...]] = ("covertype", "ijcnn1", "pose", "kdd_protein", "fma")

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        found = medians(self.needed(records, EXPERIMENT))
        vectorised = found[(found["backend"] == "vectorised") & (found["sampler"] != "full")]
        names = [name for name in self.shown if name in set(found["dataset"])] or ordered(found)
        figure, grid = new(2, 3, width=7.2, height=4.4)
        for axes in grid.flat[len(names) : -1]:
            axes.set_axis_off()
        for axes, name in zip(grid.flat[:-1], names, strict=False):
            part = vectorised[vectorised["dataset"] == name]
            for sampler, curve in part.groupby("sampler", sort=False):
                axes.plot(curve["m_paper"], curve["rel_total_time"], **SAMPLERS[str(sampler)])
            line = part.drop_duplicates("m_paper").sort_values("m_paper")
            axes.plot(line["m_paper"], line["m_over_n_percent"], color="black", linestyle=":", label="share drawn")
            axes.set_xlabel("expected sample size m")
            axes.locator_params(axis="x", nbins=4)
            panel_letter(axes, title_of(name, part["data_label"]))
        for axes in grid[:, 0]:
            axes.set_ylabel("relative time (%)")
        found_handles = {text: handle for axes in grid.flat
                         for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}  # fmt: skip
        _bars(grid[1, 2], vectorised[vectorised["dataset"] == names[0]])
        figure.legend(list(found_handles.values()), list(found_handles), loc="outside lower center", ncols=4)
        return finish(figure), found


def _bars(axes: Axes, part: pd.DataFrame) -> None:
    """Parts of the relative time at the paper's size, or the largest one there is."""
    if part.empty:
        return
    size = BAR_SIZE if BAR_SIZE in set(part["m_paper"]) else float(part["m_paper"].max())
    chosen = part[part["m_paper"] == size]
    scale = chosen["rel_total_time"] / chosen["t_total"]
    below = pd.Series(0.0, index=chosen.index)
    for name, colour, label in (("t_dp_lloyd", "#009E73", "DP-Lloyd"), ("t_sampling", "#CC79A7", "sampling"),
                                ("t_weights", "#0072B2", "weights")):  # fmt: skip
        axes.bar(chosen["sampler"], chosen[name] * scale, bottom=below, color=colour, label=label, width=0.6)
        below = below + chosen[name] * scale
    axes.axhline(float(chosen["m_over_n_percent"].iloc[0]), color="black", linestyle=":", linewidth=0.9)
    axes.set_ylim(0, 1.35 * float(below.max()))
    axes.legend(loc="upper left", fontsize=6, ncols=3, columnspacing=0.8, handlelength=1)
    panel_letter(axes, f"{title_of(str(chosen['dataset'].iloc[0]), chosen['data_label'])}, m = {size:g}")
