"""Statements of Jiang et al. as questions to records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from dpsub.papers.brdp.artefacts.styles import SHORT
from dpsub.reproduce.predicates import Finding, Frames, LackingError, Statement, of_variant, pick

RATES, ACCEPTANCE, COMPOSITION, SAMPLING = "brdp_rates", "brdp_acceptance", "brdp_composition", "brdp_sampling"
ADULT, GOWALLA, TABLE, CHECKS, NOISE = "brdp_adult", "brdp_gowalla", "brdp_table1", "brdp_checks", "brdp_noise"
STATED, BOTH = ("stated",), ("stated", "rigorous")
METHODS = {short: name for name, short in SHORT.items()}
CONVERSIONS = ("closed form", "balle2020", "exact")

# Table I as printed, at delta 1e-5 and 1e-10, and what counts as agreement: a relative error, or a factor
TABLE1 = {
    "Lap-DP": ("18.98", "25.38"), "Gau-DP": ("4.77", "7.17"), "Lap-BRDP": ("16.8", "22.23"),
    "Gau-BRDP": ("4.72", "6.93"), "SMP-Lap-BRDP": ("49.37", "65.6"), "SMP-Gau-BRDP": ("13.13", "19.6"),
}  # fmt: skip
DELTAS = {"1e-5": 1e-5, "1e-10": 1e-10}
RELATIVE, FACTOR = 0.05, 10.0


def table_cell(method: str, printed: str, delta: float) -> Callable[[Frames], Finding]:
    """Return whether ours is within 5 % of a number of Table I; within a factor of 10 for sampled methods."""

    def ask(frames: Frames) -> Finding:
        rows = pick(frames[TABLE], method=METHODS[method], delta=delta)
        value = float(rows[rows["conversion"].isin(CONVERSIONS)]["composed"].iloc[0])
        if int(rows["n_compositions"].iloc[0]) != 1000:
            raise LackingError(f"this run composes {rows['n_compositions'].iloc[0]} releases, not 1000")
        ratio = value / float(printed)
        near = 1 / FACTOR <= ratio <= FACTOR if method.startswith("SMP") else abs(ratio - 1) <= RELATIVE
        return Finding(near, f"ours {value:.4g}, printed {printed}: {ratio:.3f} times")

    return ask


def composed(frames: Frames, delta: float) -> pd.Series:
    """Composed epsilon by method at one delta."""
    rows = pick(frames[TABLE], delta=delta)
    rows = rows[rows["conversion"].isin(CONVERSIONS) & (rows["method"] != "lap_low")]
    return rows.set_index("method")["composed"]


def gaussian_recycler_least(frames: Frames) -> Finding:
    """Section 8.3: of all methods the recycled Gaussian one leaks least."""
    parts, holds = [], True
    for delta in DELTAS.values():
        found = composed(frames, delta)
        best = str(found.idxmin())
        holds &= best == "gau_br"
        parts.append(f"delta {delta:g}: {SHORT[best]} {found[best]:.4g}, Gau-BRDP {found['gau_br']:.4g}")
    return Finding(holds, "; ".join(parts))


def sampled_leak_more(frames: Frames) -> Finding:
    """Table I: each sampled method leaks more than the same kernel without sampling."""
    parts, holds = [], True
    for delta in DELTAS.values():
        found = composed(frames, delta)
        for kernel in ("lap", "gau"):
            if f"{kernel}_smp" not in found.index:
                raise LackingError("sampled methods have no exact value")
            others = max(found[f"{kernel}_dp"], found[f"{kernel}_br"])
            holds &= bool(found[f"{kernel}_smp"] > others)
            parts.append(f"{kernel} {found[f'{kernel}_smp']:.3g} > {others:.3g}")
    return Finding(holds, "; ".join(parts))


def better_rate(frames: Frames) -> Finding:
    """Figure 3: Algorithm 1 gives at least the rate of Theorem 2."""
    wide = frames[RATES].pivot_table(index=["delta", "epsilon_y"], columns="method", values="rate")
    gain = wide["algorithm1"] - wide["baseline"]
    return Finding(bool((gain >= -1e-9).all()), f"gain {gain.min():.2g} to {gain.max():.3g} at {len(gain)} points")


def no_rate_at_the_end(frames: Frames) -> Finding:
    """Figure 3: a kernel that spends everything leaves no rate."""
    frame = frames[RATES]
    last = frame[np.isclose(frame["epsilon_y"], frame["epsilon"])]
    largest = float(last["rate"].abs().max())
    return Finding(largest <= 1e-6, f"largest rate {largest:.2g} at epsilon_y = epsilon")


def acceptance_gap(frames: Frames) -> pd.DataFrame:
    frame = frames[ACCEPTANCE]
    recycled = "gau_br" if (frame["method"] == "gau_br").any() else "gau_best"
    wide = frame.pivot_table(index=["sensitivity", "epsilon"], columns="method", values="acceptance")
    if "gau_dp" not in wide:
        wide = wide.join(frames["plain"].pivot_table(index=["sensitivity", "epsilon"], columns="method",
                                                      values="acceptance")["gau_dp"])  # fmt: skip
    return wide.assign(recycled=wide[recycled], gap=wide[recycled] - wide["gau_dp"]).dropna(subset=["gap"])


def recycling_accepts_more(frames: Frames) -> Finding:
    """Figure 4: never below plain noise, and a larger gap at sensitivity 5."""
    wide = acceptance_gap(frames)
    largest = wide["gap"].groupby("sensitivity").max()
    if len(largest) < 2:
        raise LackingError("this run has one sensitivity")
    holds = bool((wide["gap"] >= -1e-9).all() and largest.iloc[-1] > largest.iloc[0])
    gaps = ", ".join(f"{gap:.3f} at D {span:g}" for span, gap in largest.items())
    return Finding(holds, f"smallest gap {wide['gap'].min():.2g}; largest {gaps}")


def crosses_ninety(frames: Frames) -> Finding:
    """Section 7: acceptance 0.9 needs epsilon near 4.5, within 0.2."""
    wide = acceptance_gap(frames)
    curve = wide["recycled"].xs(1.0, level="sensitivity")
    above = curve[curve >= 0.9]
    if above.empty or curve.index[0] == above.index[0]:
        raise LackingError("this run does not cross 0.9")
    high = float(above.index[0])
    low = float(curve.index[curve.index < high][-1])
    at = low + (0.9 - curve[low]) / (curve[high] - curve[low]) * (high - low)
    return Finding(abs(at - 4.5) <= 0.2, f"at epsilon {at:.3f}", low, high)


def leaks_less(frames: Frames) -> Finding:
    """Figure 5: recycled below plain noise, both kernels, at every T from 2 on."""
    parts, holds = [], True
    for kernel, part in frames[COMPOSITION].groupby("kernel"):
        wide = part[part["n_compositions"] > 1].pivot_table(index="n_compositions", columns="method",
                                                           values=["lower", "upper"])  # fmt: skip
        above = wide.index[wide["upper"]["br"] >= wide["lower"]["dp"]].tolist()
        surely = wide.index[wide["lower"]["br"] > wide["upper"]["dp"]].tolist()
        holds &= not above
        first = f"not below at T = {', '.join(map(str, above))}" if above else "below"
        parts.append(f"{kernel}: {first}; surely above at {', '.join(map(str, surely)) or 'none'}")
    return Finding(holds, "; ".join(parts))


def tight(frames: Frames) -> Finding:
    """Theorem 3 against the exact composed epsilon, within 2 %."""
    key = ["kernel", "n_compositions"]
    stated, exact = (pick(frames[name], method="br").set_index(key) for name in (COMPOSITION, "exact"))
    above, below = stated["composed"] / exact["upper"], stated["composed"] / exact["lower"]
    off = (above > 1.02) | (below < 0.98)
    place = int((above - 1).abs().to_numpy().argmax())
    kernel, times = above.index[place]
    return Finding(not off.any(), f"{above.iloc[place]:.3f} times the exact epsilon for {kernel} at T = {times}")


def _rates(frames: Frames, query: str) -> pd.Series:
    rule = {"swapped", "corrected", "exact"} & set(frames[SAMPLING]["rule"])
    rows = pick(frames[SAMPLING], query=query)
    return rows[rows["rule"].isin(rule)].set_index("n").sort_index()["sampling_rate"]


def _listed(rates: pd.Series) -> str:
    return ", ".join(f"{rate:.3g} at {n}" for n, rate in rates.items())


def sum_needs_all(frames: Frames) -> Finding:
    """Figure 6a: above 0.95 for the sum."""
    rates = _rates(frames, "sum")
    return Finding(bool((rates > 0.95).all()), _listed(rates))


def average_needs_less(frames: Frames) -> Finding:
    """Figure 6a: below 0.9 for the average."""
    rates = _rates(frames, "avg")
    return Finding(bool((rates < 0.9).all()), _listed(rates))


def count_depends_on_size(frames: Frames) -> Finding:
    """Figure 6a: a smaller rate for fewer records, up to the grid of the search."""
    rates = _rates(frames, "cnt")
    steps = rates.diff().dropna()
    return Finding(bool((steps >= -0.01).all() and rates.iloc[-1] > rates.iloc[0]), _listed(rates))


def larger_data_accept_more(frames: Frames) -> Finding:
    """Figure 6b: acceptance does not fall with the number of records, for any query."""
    rule = {"swapped", "corrected", "exact"} & set(frames[SAMPLING]["rule"])
    rows = frames[SAMPLING][frames[SAMPLING]["rule"].isin(rule)]
    wide = rows.pivot_table(index="n", columns="query", values="acceptance").sort_index()
    drops = wide.diff().min()
    return Finding(bool((drops >= -1e-4).all()), "largest drop: " + ", ".join(f"{q} {d:.3g}" for q, d in drops.items()))


def _boxes(frames: Frames) -> pd.DataFrame:
    parts = [frames[name][frames[name]["view"] == "box"].assign(name=name) for name in (ADULT, GOWALLA)]
    return pd.concat(parts).pivot_table(index=["name", "panel"], columns="method", values="acceptance")


def _compared(frames: Frames, pairs: list[tuple[str, str]]) -> Finding:
    """Whether the first method of every pair accepts more than the second, in every panel with boxes."""
    wide, worse = _boxes(frames), []
    for high, low in pairs:
        for row in wide[wide[high] <= wide[low]].reset_index().to_dict("records"):
            place = f"{row['name'].removeprefix('brdp_')} {row['panel']}"
            worse.append(f"{place}: {SHORT[high]} {row[high]:.4g}, {SHORT[low]} {row[low]:.4g}")
    note = "; ".join(worse) or f"in all {len(wide)} panels"
    return Finding(not worse, note)


def recycled_always(frames: Frames) -> Finding:
    """Section 8.2: recycled noise accepts more than plain noise."""
    return _compared(frames, [("gau_br", "gau_dp"), ("lap_br", "lap_dp")])


def sampling_helps(frames: Frames) -> Finding:
    """Section 8.2: sampling enhances it further."""
    return _compared(frames, [("gau_smp", "gau_br"), ("lap_smp", "lap_br")])


def laplace_better(frames: Frames) -> Finding:
    """Section 8.2, "in general": recycled Laplace noise accepts at least as much as Gaussian, up to 1e-9 at 1."""
    wide = _boxes(frames)
    gap = wide["lap_br"] - wide["gau_br"]
    return Finding(bool((gap >= -1e-9).all()), f"gaps {gap.min():.3g} to {gap.max():.3g}")


def larger_spread(frames: Frames) -> Finding:
    """Section 3.2: a larger variance at the same budget."""
    frame = pick(frames[NOISE], topic="summary", quantity="sd").set_index("method")["law"]
    return Finding(bool(frame["gau_br"] > frame["gau_dp"]), f"sd {frame['gau_br']:.4g} against {frame['gau_dp']:.4g}")


def _cases(frames: Frames, statement: str) -> pd.DataFrame:
    return pick(frames[CHECKS], statement=statement)


def loss_has_unit_mean(frames: Frames) -> Finding:
    """Theorem 1: E exp(-loss) is 1 for every loss."""
    frame = _cases(frames, "T1 mean")
    off = (frame["claimed"] - frame["true"]).abs()
    worst = frame.iloc[int(off.to_numpy().argmax())]
    return Finding(bool((off <= 1e-9).all()), f"{worst['claimed']:.4f} in {worst['case']}")


def _kept(statement: str) -> Callable[[Frames], Finding]:
    def ask(frames: Frames) -> Finding:
        frame = _cases(frames, statement)
        ratio = frame["true"] / frame["claimed"]
        worst = frame.iloc[int(ratio.to_numpy().argmax())]
        note = f"kept in {int((ratio <= 1 + 1e-9).sum())} of {len(frame)}; {ratio.max():.4g} times in {worst['case']}"
        return Finding(bool((ratio <= 1 + 1e-9).all()), note)

    return ask


def _equal(statement: str, tolerance: float, *, relative: bool) -> Callable[[Frames], Finding]:
    def ask(frames: Frames) -> Finding:
        frame = _cases(frames, statement)
        error = (frame["claimed"] - frame["true"]).abs() / (frame["true"].abs() if relative else 1.0)
        worst = frame.iloc[int(error.to_numpy().argmax())]
        note = f"{worst['claimed']:.6g} for {worst['true']:.6g} in {worst['case']}"
        return Finding(bool((error <= tolerance).all()), note)

    return ask


def linear_cost(frames: Frames) -> Finding:
    """Remark 5: terms grow linearly with T; fewer have a weight that counts."""
    frame = _cases(frames, "R5")
    times = frame["case"].str.removeprefix("T ").astype(float)
    if len(frame) < 3:
        raise LackingError("a linear fit needs three numbers of releases")
    fit = float(np.corrcoef(times, frame["claimed"])[0, 1] ** 2)
    enough = bool((frame["true"] <= frame["claimed"]).all())
    last = frame.iloc[-1]
    return Finding(fit > 0.95 and enough, f"R2 {fit:.6f}; {last['true']:g} of {last['claimed']:g} terms count")


STATEMENTS: tuple[Statement, ...] = (
    *(Statement(f"T1.{method}.eps.{name}", (TABLE,), table_cell(method, printed, DELTAS[name]), variants=BOTH)
      for method, cells in TABLE1.items() for name, printed in zip(DELTAS, cells, strict=True)),
    Statement("T1.order.gaubrdp_min", (TABLE,), gaussian_recycler_least, variants=BOTH),
    Statement("T1.order.smp", (TABLE,), sampled_leak_more, variants=STATED),
    Statement("C.fig3.alg1_ge_baseline", (RATES,), better_rate, variants=STATED),
    Statement("C.fig3.endpoint", (RATES,), no_rate_at_the_end, variants=STATED),
    Statement("C.fig4.br_ge_dp", (ACCEPTANCE,), recycling_accepts_more, variants=STATED),
    Statement("C.fig4a.cross", (ACCEPTANCE,), crosses_ninety, variants=STATED),
    Statement("C.fig5.lower", (COMPOSITION,), leaks_less, variants=BOTH),
    *(Statement(f"C.fig6{row}", (SAMPLING,), ask, variants=("stated", "consistent", "rigorous")) for row, ask in (
        (".sum", sum_needs_all), (".avg", average_needs_less), (".cnt", count_depends_on_size),
        ("b.X", larger_data_accept_more),
    )),
    *(Statement(row, (ADULT, GOWALLA), ask, variants=STATED) for row, ask in (
        ("C.fig7.always", recycled_always), ("C.fig7.smp", sampling_helps), ("C.fig7.lap>gau", laplace_better),
    )),
    Statement("C.var", (NOISE,), larger_spread, variants=STATED),
    *(Statement(row, (CHECKS,), ask, variants=STATED) for row, ask in (
        ("C.thm1", loss_has_unit_mean), ("C.prop2", _kept("P3")), ("C.thm2", _kept("T2")),
        ("C.eq10", _equal("(10)", 1e-9, relative=False)), ("C.alg3", _equal("A3", 1e-9, relative=True)),
        ("C.rem5", linear_cost), ("C.prop6.sum", _equal("P6", 0.05, relative=True)),
        ("C.prop7", _equal("P7 swapped", 0.01, relative=False)),
    )),
    Statement("C.thm3", (COMPOSITION,), tight, shared={"exact": (COMPOSITION, "rigorous")}, variants=STATED),
)  # fmt: skip


def setting(frames: Frames, experiment: str, field: str, **fields: object) -> float:
    """Return one number that a run used."""
    return float(pick(of_variant(frames, experiment, "stated"), **fields)[field].iloc[0])
