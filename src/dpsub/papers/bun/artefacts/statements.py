"""Statements of Bun et al. as questions to records: most ask whether a formula keeps its side in every case."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from dpsub.papers.bun.artefacts.grid import standing
from dpsub.reproduce.predicates import Finding, Frames, Statement, pick

BOTH = ("stated", "consistent")
GRID, SIZES, TESTS = "bun_bounds", "bun_random_size", "bun_size_tests"

# claim -> statements of the grid that must be right in every case
KEPT = {
    "U001": ("Section 2.2",), "U002": ("T2.2", "T2.2 delta"), "U007": ("T3.1 upper",), "U008": ("T3.1 lower",),
    "U023": ("P4.2 deletion",), "U025": ("Section 4.3 no gain",), "U026": ("T4.3",),
    "U029": ("Section 1.1 comparable",), "U030": ("T5.1",), "U031": ("T5.2",), "U032": ("Section 5.1 tight",),
    "U034": ("Section 5.2",), "U036": ("T5.3",), "U037": ("P6.1",), "U038": ("Section 6.1 weak",),
    "U039": ("Section 6.1 strong",), "U040": ("Section 6.1 equal sizes",), "U041": ("Section 6.2 no gain",),
    "U042": ("Section 6.3 secret order",), "U043": ("Section 6.3 known order", "Section 6.3 in place"),
    "U055": ("T7.2",), "U057": ("Lemma B.1 base",), "U058": ("Lemma B.1",), "U059": ("Lemma A.4",),
    "U060": ("Lemma B.3",), "U061": ("Appendix C case 2",),
}  # fmt: skip


def kept(*names: str) -> Callable[[Frames], Finding]:
    """Return the question whether these statements are right in every case."""

    def ask(frames: Frames) -> Finding:
        found = [standing(pick(frames[GRID], statement=name)) for name in names]
        cases, good = sum(one.cases for one in found), sum(one.right for one in found)
        decisive = next((one for one in found if one.right < one.cases), found[0])
        return Finding(good == cases, f"right in {good} of {cases} cases; {decisive.worst}")

    return ask


def near(name: str) -> Callable[[Frames], Finding]:
    """Return whether an approximation for small epsilon has a relative error of at most (epsilon/2)(1 + epsilon)."""

    def ask(frames: Frames) -> Finding:
        frame = pick(frames[GRID], statement=name)
        truth, epsilon = frame["exact"].to_numpy(float), frame["epsilon"].to_numpy(float)
        error = np.abs(truth / (_share(frame) * epsilon) - 1)
        place = int(np.argmax(error / epsilon))
        note = f"largest error / epsilon {error[place] / epsilon[place]:.3g} at epsilon {epsilon[place]:g}"
        return Finding(bool((error <= 0.5 * epsilon * (1 + epsilon)).all()), note)

    return ask


def _share(frame: pd.DataFrame) -> np.ndarray:
    """The rate that the case names."""
    return frame["case"].str.removeprefix("rate ").astype(float).to_numpy()


def exponent_limit(frames: Frames) -> Finding:
    """Section 5.1: the loss converges to epsilon as clusters grow."""
    frame = pick(frames[GRID], statement="Section 5.1 limit")
    short = float((frame["epsilon"] - frame["exact"]).max())
    return Finding(short <= 1e-3, f"short of epsilon by at most {short:.2g}")


def tilted_below_largest(frames: Frames) -> Finding:
    """Section 3: the tilted mean stays within the support, and at or above the mean."""
    frame = frames[SIZES]
    share, mean = frame["tilted_share"], frame["mean"] / frame["n"]
    inside = bool((share <= 1).all() and (share >= mean - 1e-9).all())
    return Finding(inside, f"tilted mean / n from {share.min():.6f} to {share.max():.6f}")


def curve_covers(sigma: float) -> Callable[[Frames], Finding]:
    """Return whether the upper curve of Figure 2 lies at or above the exact loss at one standard deviation."""

    def ask(frames: Frames) -> Finding:
        row = pick(frames[SIZES], sigma=sigma).iloc[0]
        truth = float(pick(frames["exact"], sigma=sigma)["upper"].iloc[0])
        return Finding(row["upper"] >= truth - 1e-12, f"curve {row['upper']:.8f}, exact worst loss {truth:.8f}")

    return ask


def close_at_800(frames: Frames) -> Finding:
    """Figure 2's text: at sigma = 800 the loss is already close to epsilon."""
    row = pick(frames[SIZES], sigma=800.0).iloc[0]
    note = f"epsilon' {row['upper']:.6f}, epsilon {row['epsilon']:g}"
    return Finding(abs(row["upper"] - row["epsilon"]) <= 5e-4, note)


def range_of_sigma(frames: Frames) -> Finding:
    """Figure 2's horizontal axis."""
    sigma = frames[SIZES]["sigma"]
    return Finding(sigma.min() == 1 and sigma.max() == 1000, f"{sigma.min():g} to {sigma.max():g}")


def count_loss(frames: Frames) -> Finding:
    """Section 4.1: sizes that differ by Delta lose Delta epsilon."""
    frame = pick(frames[TESTS], topic="jump")
    error = float((frame["epsilon_amplified"] / (frame["difference"] * frame["epsilon"]) - 1).abs().max())
    return Finding(error <= 1e-8, f"largest relative error {error:.2g} over {len(frame)} pairs of sizes")


def advantage_limited(frames: Frames) -> Finding:
    """Proposition 4.1, and with tanh its sharper form."""
    frame = frames[TESTS]
    ratio = frame["advantage"] / frame["limit"]
    good = bool((frame["advantage"] <= frame["limit"] + 1e-9).all())
    return Finding(good, f"advantage / limit at most {ratio.max():.6g} over {len(frame)} pairs")


def one_more(frames: Frames) -> Finding:
    """Theorem 4.3: randomised rounding takes at most one record more than the traditional rule."""
    most = float(pick(frames[GRID], statement="T4.3 one more")["exact"].max())
    return Finding(most <= 1, f"at most {most:g} more")


def rounded_example(frames: Frames) -> Finding:
    """Section 4.3: 14 and 15 records at r = 1/10 give samples of 1 and 2."""
    sizes = pick(frames[GRID], statement="Section 4.3 sizes")["bound"].tolist()
    return Finding(sizes == [1, 2], f"sizes {sizes[0]:g} and {sizes[1]:g}")


def lambda_near(frames: Frames) -> Finding:
    """Section 7.3: lambda is about epsilon / (6 r), within 10 %."""
    frame = pick(frames[GRID], statement="Section 7.3 lambda")
    error = (frame["bound"] / frame["exact"] - 1).abs()
    loss = float(pick(frames[GRID], statement="Section 7.3 loss")["exact"].max())
    pairs = ", ".join(f"{row['case']}: {row['bound']:.4g} for {row['exact']:.4g}" for row in frame.to_dict("records"))
    return Finding(bool((error <= 0.1).all()), f"{pairs}; epsilon' up to {loss:.4g} for a target of 1")


def _grid_statement(row: str, ask: Callable[[Frames], Finding]) -> Statement:
    return Statement(row, (GRID,), ask, variants=BOTH)


def _figure_statement(row: str, sigma: float) -> Statement:
    return Statement(row, (SIZES,), curve_covers(sigma), shared={"exact": (SIZES, "rigorous")}, variants=BOTH)


STATEMENTS: tuple[Statement, ...] = (
    *(_grid_statement(row, kept(*names)) for row, names in KEPT.items()),
    _grid_statement("U003", near("Section 2.3")),
    _grid_statement("U035", near("Section 5.2 Poisson")),
    _grid_statement("U033", exponent_limit),
    _grid_statement("U024", rounded_example),
    _grid_statement("U028", one_more),
    _grid_statement("U056", lambda_near),
    Statement("U009", (SIZES,), tilted_below_largest, variants=("stated",)),
    Statement("U013", (SIZES,), range_of_sigma, variants=("stated",)),
    Statement("U015", (SIZES,), close_at_800, variants=BOTH),
    *(_figure_statement(row, sigma) for row, sigma in
      (("U016", 100.0), ("U017", 400.0), ("U018", 600.0), ("U019", 1000.0))),
    Statement("U020", (TESTS,), count_loss, variants=("stated",)),
    Statement("U021", (TESTS,), advantage_limited, variants=BOTH),
)  # fmt: skip


def change(frame: pd.DataFrame) -> np.ndarray:
    """Return after - before, class by class."""
    ordered = frame.sort_values("stratum")
    return (ordered["after"] - ordered["before"]).to_numpy()
