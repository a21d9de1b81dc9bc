"""Statements of Fay et al. as questions to records; those on data are put only to the paper's data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from dpsub.papers.importance.artefacts.labels import APPENDIX, MAIN, TITLES
from dpsub.reproduce.predicates import EQUAL, Finding, Frames, LackingError, Statement, pick

COSTS, NOISE, SUMS, PROFILES, DATA = (
    "importance_clustering", "importance_noise", "importance_sums", "importance_profiles", "importance_data",
)  # fmt: skip
MODES = ("stated", "as_done", "consistent")
CLOSE = 0.1  # what "almost identical" and "about" allow, relative
SUBSTANTIAL = 0.75  # a loss of at most this share is substantially smaller
SIGN_LEVEL = 0.05
GRID = (0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


def approximation(frames: Frames) -> Finding:
    """Section 2: epsilon' is about epsilon - log(1/p) for epsilon above 1, for every rate of the grid."""
    frame = pick(frames[PROFILES], topic="uniform")
    error = (frame["other"] / frame["psi"] - 1).abs()
    far = frame.iloc[int(np.argmax(error.to_numpy()))]
    growth = frame["q"] * np.expm1(np.minimum(frame["scale"], 700))
    note = (
        f"worst at p {far['q']:g}, epsilon {far['scale']:g}: {far['psi']:.3g} against {far['other']:.3g}; within "
        f"{error[growth > 30].max():.2g} where p (exp(epsilon) - 1) is above 30"
    )
    return Finding(bool((error <= CLOSE).all()), note)


def reduces(frames: Frames) -> Finding:
    """Section 3.1: with a profile constant in the weight Theorem 6 is Proposition 3."""
    frame = pick(frames[PROFILES], topic="uniform")
    error = float((frame["psi"] / frame["added"] - 1).abs().max())
    return Finding(error <= EQUAL, f"largest relative difference {error:.2g} over {len(frame)} cases")


def weights_agree(frames: Frames) -> Finding:
    """Figure 2, left: median relative difference of privacy-constrained and variance-optimal weights.

    The section defines the mechanism with standard Laplace noise, so that reading (b1) decides; the note has all.
    """
    frame = pick(frames[SUMS], topic="weight", sampler=("opt", "var"))
    found = {}
    for rule, part in frame.groupby("rule", sort=False):
        wide = part.pivot(index="rank", columns="sampler", values="weight")
        found[str(rule)] = float((wide["opt"] / wide["var"] - 1).abs().median())
    if "b1" not in found:
        raise LackingError("this run has no records of rule b1")
    note = ", ".join(f"{rule} {value:.1%}" for rule, value in found.items())
    return Finding(found["b1"] <= CLOSE, f"median relative difference by reading of the unstated rule: {note}")


def error_and_loss(frames: Frames) -> Finding:
    """Figure 2, right: substantially better than uniform. At equal size and noise: loss lower, error no larger by more
    than CLOSE, at every noise scale of the reading `free`.
    """
    frame = pick(frames[SUMS], topic="curve", rule="free", sampler=("opt", "unif"))
    losses, errors = (frame.pivot(index="scale", columns="sampler", values=name) for name in ("max_loss", "mse_exact"))
    loss, error = losses["opt"] / losses["unif"], errors["opt"] / errors["unif"]
    note = (
        f"largest loss {loss.min():.2f} to {loss.max():.2f} of uniform's, error {error.min():.3f} to {error.max():.3f} "
        f"of it at equal size; loss at most {SUBSTANTIAL:g} of it at {int((loss <= SUBSTANTIAL).sum())} of {len(loss)}"
    )
    return Finding(bool((loss <= SUBSTANTIAL).mean() > 0.5 and (error <= 1 + CLOSE).all()), note)


def size_limit(frames: Frames) -> Finding:
    """Section 4: no core-set probabilities beyond m = n x/r^2, "necessary"; it is, if the true limit is no larger."""
    frame = pick(frames[NOISE], data_label="table1", sampler="core").drop_duplicates("dataset")
    limit = frame["n"] * frame["mean_square"] / frame["radius"] ** 2
    ratio = frame["m_max"] / limit
    place = int(np.argmax(ratio.to_numpy()))
    row = frame.iloc[place]
    note = f"{TITLES[row['dataset']]}: printed limit {limit.iloc[place]:.0f}, true one {row['m_max']:.0f}"
    return Finding(bool((ratio <= 1 + EQUAL).all()), note)


def grid(frames: Frames) -> Finding:
    """Section 5: the targets that are run hold the eight of the text."""
    have = set(frames[COSTS]["epsilon"])
    lacking = [value for value in GRID if value not in have]
    if lacking:
        raise LackingError(f"this run has no epsilon {', '.join(f'{value:g}' for value in lacking)}")
    return Finding(True, "as in the text; 50, as in the released plots, as well" if 50.0 in have else "as in the text")


def real(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the records of these data sets.

    Raises
    ------
    LackingError
        If one of them is not the paper's in this run.
    """
    lacking = []
    for name in names:
        labels = sorted(set(frame.loc[frame["dataset"] == name, "data_label"]))
        if labels != ["real"]:
            lacking.append(f"{TITLES[name]} is {', '.join(labels) if labels else 'missing'}")
    if lacking:
        raise LackingError(f"not the real data: {'; '.join(lacking)}")
    return frame[frame["dataset"].isin(names)]


def every_real(frame: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Return the names of all data sets that are the paper's, and their records; of the main ones if there is none."""
    names = [name for name in TITLES if set(frame.loc[frame["dataset"] == name, "data_label"]) == {"real"}]
    return ", ".join(TITLES[name] for name in names), real(frame, names or list(MAIN))


def paired(frame: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """Return a row a cell (data set, size, finite target): medians, and how often `one` has the smaller cost."""
    chosen = frame[np.isfinite(frame["epsilon"]) & frame["sampler"].isin((one, other))]
    index = ["dataset", "m_paper", "epsilon", "replicate"]
    wide = chosen.pivot_table(index=index, columns="sampler", values="cost").dropna()
    smaller = (wide[one] < wide[other]).groupby(level=[0, 1, 2])
    found = pd.DataFrame({"wins": smaller.sum(), "repeats": smaller.size()})
    medians = wide.groupby(level=[0, 1, 2]).median()
    return found.assign(one=medians[one], other=medians[other])


def worse(cells: pd.DataFrame) -> np.ndarray:
    """Which cells have a larger median of `one` by a sign test over common repeats (two-sided, 5 % a cell)."""
    from scipy.stats import binomtest  # here, as its import takes longer than most jobs compute

    losses = cells["repeats"] - cells["wins"]
    p = [binomtest(int(k), int(n)).pvalue if n else 1.0 for k, n in zip(losses, cells["repeats"], strict=True)]
    return np.asarray((np.array(p) < SIGN_LEVEL) & (cells["one"] > cells["other"]).to_numpy())


def always_worst(names: Sequence[str]) -> Callable[[Frames], Finding]:
    """Return whether uniform sampling has the largest median cost in all cells of these data sets."""

    def ask(frames: Frames) -> Finding:
        frame = real(frames[COSTS], names)
        counts, cells = 0, 0
        for other in ("core", "opt"):
            found = paired(frame, other, "unif")
            counts, cells = counts + int((found["one"] < found["other"]).sum()), cells + len(found)
        return Finding(counts == cells, f"core or opt below uniform in {counts} of {cells} comparisons of medians")

    return ask


def on_par(frames: Frames) -> Finding:
    """Section 5: opt is not significantly worse than core in more than a tenth of the cells (of the paper's data)."""
    names, frame = every_real(frames[COSTS])
    found = paired(frame, "opt", "core")
    bad = worse(found)
    better = int((found["one"] < found["other"]).sum())
    note = f"{names}: opt significantly above core in {int(bad.sum())} of {len(found)} cells, below it in {better}"
    return Finding(float(bad.mean()) <= CLOSE, note)


def limit_at_zero(frames: Frames) -> Finding:
    """Section 5: at the smallest target costs are below the mean squared norm, on the paper's data."""
    names, chosen = every_real(frames[COSTS])
    least = chosen[chosen["epsilon"] == chosen["epsilon"].min()]
    cells = least.groupby(["dataset", "sampler", "m_paper"])
    ratio = (cells["cost"].median() / cells["mean_square"].first()).dropna()
    note = (
        f"{names}: at epsilon {least['epsilon'].iloc[0]:g} {ratio.min():.3f} to {ratio.max():.3f} of the mean squared "
        "norm"
    )
    return Finding(bool((ratio <= 1).all()), note)


def _gap(frames: Frames, m: float) -> float:
    """Mean over targets of (uniform - best other) / uniform on Ijcnn1, medians."""
    frame = pick(real(frames[COSTS], ["ijcnn1"]), m_paper=m)
    medians = frame[np.isfinite(frame["epsilon"])].groupby(["epsilon", "sampler"])["cost"].median().unstack()
    return float(((medians["unif"] - medians[["core", "opt"]].min(axis=1)) / medians["unif"]).mean())


def smallest_difference(frames: Frames) -> Finding:
    """Appendix B: on Ijcnn1 the samplers differ least at the largest size of Figure 6."""
    found = {m: _gap(frames, m) for m in (5000.0, 10000.0, 15000.0)}
    note = ", ".join(f"m {m:g}: {gap:.2%}" for m, gap in found.items())
    return Finding(abs(found[15000.0]) == min(map(abs, found.values())), f"uniform above the best other by {note}")


def worse_at(m: float) -> Callable[[Frames], Finding]:
    """Return whether uniform sampling is worse on Ijcnn1 at one size, on average over targets."""

    def ask(frames: Frames) -> Finding:
        frame = pick(real(frames[COSTS], ["ijcnn1"]), m_paper=m)
        found = paired(frame, "unif", "core")
        gap, bad = _gap(frames, m), worse(found)
        return Finding(gap > 0, f"above the best other by {gap:.2%} of its cost on average; significantly above core "
                               f"in {int(bad.sum())} of {len(found)} cells")  # fmt: skip

    return ask


STATEMENTS: tuple[Statement, ...] = (
    Statement("c01", (PROFILES,), approximation, variants=("stated",)),
    Statement("c10", (SUMS,), weights_agree, variants=("stated",)),
    Statement("c11", (SUMS,), error_and_loss, variants=("stated",)),
    Statement("c12", (NOISE,), size_limit, variants=("stated",)),
    Statement("c17", (COSTS,), grid, variants=("stated",)),
    Statement("c29", (COSTS,), always_worst(MAIN), variants=MODES),
    Statement("c30", (COSTS,), on_par, variants=MODES),
    Statement("c31", (COSTS,), limit_at_zero, variants=MODES),
    Statement("c32", (COSTS,), smallest_difference, variants=MODES),
    Statement("c33", (COSTS,), worse_at(10000.0), variants=MODES),
    Statement("c34", (COSTS,), always_worst(APPENDIX[1:]), variants=MODES),
    Statement("c36", (PROFILES,), reduces, variants=("stated",)),
)


def finite_maximum(values: pd.Series) -> float:
    """Return the largest finite value."""
    return float(values[values.map(math.isfinite)].max())
