"""Numbers, settings and statements of the text of Fay et al.; statements about data are judged only
on the paper's data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from scipy import special

from dpsub.data.described import EIGHT
from dpsub.data.point_sets import PERCENTILE
from dpsub.importance.calibrate import RHO
from dpsub.importance.samplers import WeightedLaplaceSum
from dpsub.papers.importance.labels import APPENDIX, MAIN, TITLES
from dpsub.reproduce import claims
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.claims import (
    EQUAL,
    STATED,
    Claim,
    Finding,
    Frames,
    MissingRecordsError,
    Numbers,
    Setting,
    number,
    pick,
)

COSTS, NOISE, SUMS, PROFILES = (
    f"importance_{name}" for name in ("clustering", "noise", "sums", "profiles")
)
CLOSE = 0.1  # what "almost identical" and "about" allow, relative
SUBSTANTIAL = 0.75  # a loss of at most this share is substantially smaller
SIGN_LEVEL = 0.05
GRID = (0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


def approximation(frames: Frames) -> Finding:
    """Section 2: epsilon' is about epsilon - log(1/p) for epsilon above 1, for every rate of the
    grid."""
    frame = pick(frames[PROFILES], topic="uniform")
    error = (frame["other"] / frame["psi"] - 1).abs()
    worst = frame.iloc[int(np.argmax(error.to_numpy()))]
    # exp overflows beyond 709, and the condition holds long before.
    growth = frame["q"] * np.expm1(np.minimum(frame["scale"], 700))
    note = (
        f"worst at p {worst['q']:g}, epsilon {worst['scale']:g}: {worst['psi']:.3g} against "
        f"{worst['other']:.3g}; within {error[growth > 30].max():.2g} where "
        "p (exp(epsilon) - 1) is above 30"
    )
    return Finding(bool((error <= CLOSE).all()), note)


def weights_agree(frames: Frames) -> Finding:
    """Figure 2, left: median relative difference of privacy-constrained and variance-optimal
    weights.

    The section defines the mechanism with standard Laplace noise, so that reading (b1) decides; the
    note has all.
    """
    frame = pick(frames[SUMS], topic="weight", sampler=("opt", "var"))
    differences = {}
    for rule, part in frame.groupby("rule", sort=False):
        # "Almost identical" speaks of the weights as a whole: the median decides, not the worst
        # point.
        wide = part.pivot(index="rank", columns="sampler", values="weight")
        differences[str(rule)] = float((wide["opt"] / wide["var"] - 1).abs().median())
    if "b1" not in differences:
        raise MissingRecordsError("this run has no records of rule b1")
    note = ", ".join(f"{rule} {value:.1%}" for rule, value in differences.items())
    return Finding(
        differences["b1"] <= CLOSE,
        f"median relative difference by reading of the unstated rule: {note}",
    )


def error_and_loss(frames: Frames) -> Finding:
    """Figure 2, right: substantially better than uniform. At equal size and noise: loss lower,
    error no larger by more than CLOSE, at every noise scale of the reading `free`.
    """
    frame = pick(frames[SUMS], topic="curve", rule="free", sampler=("opt", "unif"))
    wide = frame.pivot(index="scale", columns="sampler", values=["max_loss", "mse_exact"])
    loss, error = (wide[name, "opt"] / wide[name, "unif"] for name in ("max_loss", "mse_exact"))
    note = (
        f"largest loss {loss.min():.2f} to {loss.max():.2f} of uniform's, error {error.min():.3f} "
        f"to {error.max():.3f} of it at equal size; loss at most {SUBSTANTIAL:g} of it at "
        f"{(loss <= SUBSTANTIAL).sum()} of {len(loss)}"
    )
    return Finding(bool((loss <= SUBSTANTIAL).mean() > 0.5 and (error <= 1 + CLOSE).all()), note)


def size_limit(frames: Frames) -> Finding:
    """Section 4: no coreset probabilities beyond m = n x/r^2, "necessary"; it is, if the true limit
    is no larger."""
    # The limits need the paper's Table 1 alone, and no data.
    frame = (
        pick(frames[NOISE], data_label="table1", sampler="core")
        .drop_duplicates("dataset")
        .set_index("dataset")
    )
    limit = frame["n"] * frame["mean_square"] / frame["radius"] ** 2
    ratio = frame["m_max"] / limit
    far = str(ratio.idxmax())
    note = f"{TITLES[far]}: printed limit {limit[far]:.0f}, true one {frame['m_max'][far]:.0f}"
    return Finding(bool((ratio <= 1 + EQUAL).all()), note)


def grid(frames: Frames) -> Finding:
    """Section 5: the targets that are run hold the eight of the text."""
    targets = set(frames[COSTS]["epsilon"])
    lacking = [value for value in GRID if value not in targets]
    if lacking:
        raise MissingRecordsError(
            f"this run has no epsilon {', '.join(f'{value:g}' for value in lacking)}"
        )
    return Finding(
        # The released plots have 50 where the text has 30 (IM20): both are run.
        True,
        "as in the text; 50, as in the released plots, as well"
        if 50.0 in targets
        else "as in the text",
    )


# Statements on data


def real(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the records of these data sets; MissingRecordsError if one of them is not the paper's
    in this run."""
    labels = frame.groupby("dataset")["data_label"].agg(
        lambda data_labels: ", ".join(sorted(set(data_labels)))
    )
    lacking = [
        f"{TITLES[name]} is {labels.get(name, 'missing')}"
        for name in names
        if labels.get(name) != "real"
    ]
    if lacking:
        raise MissingRecordsError(f"not the real data: {'; '.join(lacking)}")
    return frame[frame["dataset"].isin(names)]


def every_real(frame: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Return the names of all data sets that are the paper's, and their records; of the main ones
    if there is none."""
    real_sets = set(frame.loc[frame["data_label"] == "real", "dataset"])
    names = [name for name in TITLES if name in real_sets]
    return ", ".join(TITLES[name] for name in names), real(frame, names or MAIN)


def paired(frame: pd.DataFrame, sampler: str, other: str) -> pd.DataFrame:
    """Return the median costs of two samplers, one row for each cell (data set, size, finite
    target).

    `worse` says whether `sampler` has the larger median, and a sign test over common repeats agrees
    (two-sided, 5 % a cell).
    """
    chosen = frame[np.isfinite(frame["epsilon"]) & frame["sampler"].isin((sampler, other))]
    by_cell = ["dataset", "m_paper", "epsilon"]
    # Runs that failed on either side leave no pair.
    wide = chosen.pivot_table(
        index=[*by_cell, "replicate"], columns="sampler", values="cost"
    ).dropna()
    losses = (wide[sampler] >= wide[other]).groupby(level=by_cell).agg(["sum", "size"])
    # Repeats share their uniform numbers and so are paired: a sign test, both tails of the
    # binomial.
    p = 2 * special.bdtr(
        np.minimum(losses["sum"], losses["size"] - losses["sum"]), losses["size"], 0.5
    )
    costs = wide.groupby(level=by_cell).median()
    return costs.assign(worse=(p < SIGN_LEVEL) & (costs[sampler] > costs[other]))


def always_worst(names: Sequence[str], frames: Frames) -> Finding:
    """Whether uniform sampling has the largest median cost in all cells of these data sets."""
    frame = real(frames[COSTS], names)
    pairs = {other: paired(frame, other, "unif") for other in ("core", "opt")}
    holds = pd.concat([costs[other] < costs["unif"] for other, costs in pairs.items()])
    note = f"core or opt below uniform in {holds.sum()} of {len(holds)} comparisons of medians"
    return Finding(bool(holds.all()), note)


def on_par(frames: Frames) -> Finding:
    """Section 5: opt is not significantly worse than core in more than a tenth of the cells (of the
    paper's data)."""
    names, frame = every_real(frames[COSTS])
    cells = paired(frame, "opt", "core")
    # A tenth of the cells may be worse: "on par" does not mean better everywhere.
    better, worse = (cells["opt"] < cells["core"]).sum(), cells["worse"]
    note = (
        f"{names}: opt significantly above core in {worse.sum()} of {len(cells)} cells, below it "
        f"in {better}"
    )
    return Finding(bool(worse.mean() <= CLOSE), note)


def limit_at_zero(frames: Frames) -> Finding:
    """Section 5: at the smallest target costs are below the mean squared norm, on the paper's
    data."""
    names, chosen = every_real(frames[COSTS])
    # The smallest target of the run: the text speaks of the limit at zero, which no grid has.
    least = chosen[chosen["epsilon"] == chosen["epsilon"].min()]
    cells = least.groupby(["dataset", "sampler", "m_paper"])
    ratio = (cells["cost"].median() / cells["mean_square"].first()).dropna()
    ends = f"{ratio.min():.3f} to {ratio.max():.3f}"
    note = f"{names}: at epsilon {least['epsilon'].iloc[0]:g} {ends} of the mean squared norm"
    return Finding(bool((ratio <= 1).all()), note)


def above_the_best(frames: Frames, m: float) -> float:
    """Mean over targets of (uniform - best other) / uniform on Ijcnn1, medians."""
    frame = pick(real(frames[COSTS], ["ijcnn1"]), m_paper=m)
    # Levels without noise are no targets.
    medians = (
        frame[np.isfinite(frame["epsilon"])]
        .groupby(["epsilon", "sampler"])["cost"]
        .median()
        .unstack()
    )
    return float(
        ((medians["unif"] - medians[["core", "opt"]].min(axis=1)) / medians["unif"]).mean()
    )


def smallest_difference(frames: Frames) -> Finding:
    """Appendix B: on Ijcnn1 the samplers differ least at the largest size of Figure 6."""
    # The three sizes that Figure 6 has for Ijcnn1.
    gaps = {m: above_the_best(frames, m) for m in (5000.0, 10000.0, 15000.0)}
    note = ", ".join(f"m {m:g}: {gap:.2%}" for m, gap in gaps.items())
    return Finding(
        abs(gaps[15000.0]) == min(map(abs, gaps.values())),
        f"uniform above the best other by {note}",
    )


def worse_at(m: float, frames: Frames) -> Finding:
    """Whether uniform sampling is worse on Ijcnn1 at one size, on average over targets."""
    # The gap is to the better of both others; the note's sign test is against the coreset.
    cells = paired(pick(real(frames[COSTS], ["ijcnn1"]), m_paper=m), "unif", "core")
    gap = above_the_best(frames, m)
    return Finding(
        gap > 0,
        f"above the best other by {gap:.2%} of its cost on average; significantly above core in "
        f"{cells['worse'].sum()} of {len(cells)} cells",
    )


FIXED = tuple(
    Setting(claim, column, f"importance_{path}")
    for claim, column, path in (
        ("c02", "n", "sums.n"),
        ("c03", "d", "sums.d"),
        ("c05", "m", "sums.m"),
        ("c06", "smallest_scale", "sums.scale_min"),
        ("c07", "largest_scale", "sums.scale_max"),
        ("c08", "runs", "sums.runs"),
        ("c13", "iterations", "clustering.iterations"),
        ("c14", "clusters", "clustering.clusters"),
        ("c18", "share", "clustering.mixing"),
        ("c20", "replicates", "clustering.replicates"),
        ("c21", "smallest_m", "clustering.cells.sizes.pose.rows.0"),
        ("c22", "largest_m", "clustering.cells.sizes.covertype.rows.2"),
        ("c23", "smaller_epsilon", "clustering.cells.size_epsilons.0"),
        ("c23", "larger_epsilon", "clustering.cells.size_epsilons.1"),
        ("c24", "epsilon", "times.epsilon"),
        ("c25", "m", "times.sizes.covertype.3"),
    )
)
NUMBERS = (
    # those of a lambda are written into the code, whatever the records are
    Claim(
        "c04",
        "Section 3.3",
        number(Numbers(SUMS, "variance_per_dimension")),
        column="variance",
        variants=STATED,
    ),
    # of the noise that is added: the error of a sum of one row of zeros that is always taken
    Claim(
        "c09",
        "Section 3.3",
        lambda _: WeightedLaplaceSum(1.0).mean_squared_error(np.zeros((1, 1)), np.ones(1)),
        column="variance",
        variants=STATED,
    ),
    Claim("c15", "Section 5", lambda _: RHO, column="rho", variants=STATED),
    Claim("c16", "Section 5", lambda _: PERCENTILE, column="percentile", variants=STATED),
    # rows of Covertype that Figure 5, right, draws, by Table 1's number of rows
    Claim(
        "c26",
        "Section 5",
        lambda _: 100 * 20000 / EIGHT["covertype"].n,
        column="percent",
        variants=STATED,
    ),
)
STATEMENTS = (
    Claim("c01", "Section 2", approximation, (PROFILES,), variants=STATED),
    Claim("c10", "Section 3.3", weights_agree, (SUMS,), variants=STATED),
    Claim("c11", "Section 3.3", error_and_loss, (SUMS,), variants=STATED),
    Claim("c12", "Section 4", size_limit, (NOISE,), variants=STATED),
    Claim("c17", "Section 5", grid, (COSTS,), variants=STATED),
    Claim("c29", "Section 5", partial(always_worst, MAIN), (COSTS,)),
    Claim("c30", "Section 5", on_par, (COSTS,)),
    Claim("c31", "Section 5", limit_at_zero, (COSTS,)),
    Claim("c32", "Appendix B", smallest_difference, (COSTS,)),
    Claim("c33", "Appendix B", partial(worse_at, 10000.0), (COSTS,)),
    # Appendix B excepts Ijcnn1, the first of its data sets (c32 and c33 are about it).
    Claim("c34", "Appendix B", partial(always_worst, APPENDIX[1:]), (COSTS,)),
    Claim(
        "c36",
        "Section 3.1",
        claims.below(
            Numbers(
                PROFILES,
                lambda frame: (frame["psi"] / frame["added"] - 1).abs(),
                where={"topic": "uniform"},
            ),
            # Proposition 3 and Theorem 6 for a profile that ignores weights: one number in two
            # ways.
            EQUAL,
            "largest relative difference {largest:.2g} over {n} cases",
            strict=False,
        ),
        variants=STATED,
    ),
)


class ImportanceClaims(claims.Claims):
    name = "claims"
    caption = (
        "Numbers and statements of Fay et al., each computed from the records. A statement is "
        "marked yes (1) if it holds and no (0) if it fails; the note gives the deciding numbers. "
        "As done: the released code. Consistent: the repaired algorithm. Statements about data "
        "are judged on the paper's data only."
    )
    claims = (*FIXED, *NUMBERS, *STATEMENTS)

    def labels(self, records: Records) -> tuple[str, ...]:
        return ()  # each statement says itself on what data it is judged
