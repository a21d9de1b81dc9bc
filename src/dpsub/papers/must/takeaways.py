"""What a user should take from the MUST paper."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from dpsub.papers.must.settings import MUST
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.report.takeaways import Tables, Takeaways

REFERENCE = "poisson"


def composed_privacy(tables: Tables) -> str:
    """Compare the noise saved with the privacy spent, in the units in which the pair is defined."""
    samplers = _printed(tables, "table8", "sigma_times_m")
    noise = {name: tables.number("table8", "sigma_times_m", "stated", sampler=name) for name in samplers}
    lower = {name: tables.number("table8", "delta_c_lower", "consistent", sampler=name) for name in samplers}
    upper = {name: tables.number("table8", "delta_c_upper", "consistent", sampler=name) for name in samplers}
    limit = tables.number("claims", "one_over_n", "stated", claim="adult_inv_n")
    if not samplers or _unknown(*noise.values(), *lower.values(), *upper.values()):
        return ""
    least = min(_others(samplers), key=lambda name: noise[name])
    saved = 100 * (1 - noise[least] / noise[REFERENCE])
    spans = ", ".join(f"{sampler_label(name)} {lower[name]:.2g} to {upper[name]:.2g}" for name in samplers)
    text = (
        f"**Noise and composed privacy.** In experiment 3 {sampler_label(least)} adds {saved:.0f} % less noise than "
        f"Poisson for the same stated epsilon' of one query. Over all iterations, with the noise as stated and one "
        f"occurrence measured in the units of that noise, the paper's own pair has delta at epsilon = 2 between: "
        f"{spans}. These bracket the pair; they are no guarantee for the samplers. "
    )
    text += (
        f"Even by that measure {sampler_label(least)} pays for the smaller noise with privacy."
        if lower[least] > upper[REFERENCE]
        else f"The brackets of {sampler_label(least)} and Poisson do not separate the two."
    )
    if math.isfinite(limit):
        below = [sampler_label(name) for name in samplers if upper[name] < limit]
        text += f" Upper bounds below 1/n = {limit:.2g}: {', '.join(below) or 'none'}."
    return text


def proved_privacy(tables: Tables) -> str:
    """Say what is refuted and what is proved for experiment 3 as it was run."""
    samplers = _printed(tables, "table8", "delta_c_lower")
    attack = {name: tables.number("table8", "delta_c_lower", "rigorous", sampler=name) for name in samplers}
    proved = {name: tables.number("table8", "delta_c_upper", "rigorous", sampler=name) for name in samplers}
    if not samplers or _unknown(*attack.values(), *proved.values()):
        return ""
    low = {name: _two_digits(bound, ROUND_FLOOR) for name, bound in attack.items()}
    high = {name: _two_digits(bound, ROUND_CEILING) for name, bound in proved.items()}
    ends = ", ".join(
        f"{sampler_label(name)} "
        + (
            f"{low[name]} to {high[name]}"
            if proved[name] < 1
            else f"at least {low[name]} (nothing is proved: its sums are divided by the realised size)"
        )
        for name in samplers
    )
    return (
        f"**What can be proved.** The paper's pair is not the worst one. For experiment 3 as it was run delta at "
        f"epsilon = 2 lies between what explicit data sets attain and what is proved for clipped sums when one record "
        f"is substituted (Poisson: added or removed): {ends}. No guarantee below the first numbers can hold for these "
        f"samplers, this noise and this clipping; a given data set may leak less."
    )


def noise_for_equal_privacy(tables: Tables) -> str:
    """Say how much noise MUST needs for the privacy that WOR is proved to have."""
    cells = tables.rows("noise_at_equal_privacy", "noise_over_wor", target_epsilon="*", sampler="*", adjacency="*")
    if "rigorous" not in cells.columns:
        return ""
    parts = []
    for name in MUST:
        ratios = cells.loc[(cells["sampler"] == name), "rigorous"].dropna()
        if len(ratios):
            parts.append(f"that of {sampler_label(name)} is {ratios.min():.2g} to {ratios.max():.2g} times")
    if not parts:
        return ""
    return (
        f"**Noise at equal proved privacy.** Of the noise on the sum that is needed for one proved (epsilon, delta), "
        f"{' and '.join(parts)} that of WOR, over the targets of the table noise_at_equal_privacy."
    )


def prediction(tables: Tables) -> str:
    """Say what the printed test metrics are made of."""
    got = {
        source: tables.number("table8", "accuracy", source, sampler="poisson")
        for source in ("printed", "as_done", "stated")
    }
    f1 = tables.number("table8", "f1", "stated", sampler="poisson")
    if _unknown(*got.values(), f1):
        return ""
    text = (
        f"**Accuracy on Adult.** With income left among the predictors accuracy is {got['as_done']:.3f} (Poisson; "
        f"printed {got['printed']:.3f}); without it, as the text describes the study, it is {got['stated']:.3f} with "
        f"an F1 score of {f1:.2f}."
    )
    where = {"sampler": "nonprivate", "solver": "scikit_learn"}
    reference = tables.number("table8", "accuracy", "consistent", **where)
    if math.isfinite(reference):
        text += (
            f" The same features reach {reference:.3f} when logistic regression is fitted to convergence without "
            "privacy, so what limits the stated run is the number and size of its steps, not its sampler."
            if reference > got["stated"]
            else f" Logistic regression fitted to convergence without privacy reaches {reference:.3f}."
        )
    samplers = _printed(tables, "table8", "sigma_times_m")
    settled = {
        name: tables.number("table8", "accuracy", "consistent", sampler=name, solver="converged")
        for name in ("nonprivate", *samplers)
    }
    if samplers and not _unknown(*settled.values()):
        private = [settled[name] for name in samplers]
        text += (
            f" Longer steps come close to convergence without noise ({settled['nonprivate']:.3f}), but with noise that "
            f"fits the released mean (*consistent*) they give {min(private):.3f} to {max(private):.3f}: the noise, "
            f"which the short steps hide, then decides."
        )
    return text


def equal_epsilon(tables: Tables) -> str:
    """Give the prediction errors at one epsilon' of a query, and say what keeps them from being a ranking."""
    cells = tables.rows("table6", "rmse_mean", epsilon_amplified="*", sampler="*")
    if cells.empty or "consistent" not in cells.columns:
        return ""
    epsilon = min(cells["epsilon_amplified"], key=float)
    where = {"epsilon_amplified": epsilon}
    samplers = _printed(tables, "table6", "rmse_mean", **where)
    error = {name: tables.number("table6", "rmse_mean", "consistent", sampler=name, **where) for name in samplers}
    margin = {
        name: tables.number("table6", "rmse_mean", "consistent_standard_error", sampler=name, **where)
        for name in samplers
    }
    if not samplers or _unknown(*error.values(), *margin.values()):
        return ""
    best = min(_others(samplers), key=lambda name: error[name])
    listed = ", ".join(f"{sampler_label(name)} {error[name]:.4g} ± {margin[name]:.2g}" for name in samplers)
    text = (
        f"**Samplers at one epsilon' per query.** With noise that fits the sensitivity of the released mean "
        f"(*consistent*), the root mean squared error of experiment 2 at epsilon' = {epsilon} is {listed} (standard "
        f"errors). Among those calibrated for substituting a record {sampler_label(best)} has the smallest. Poisson is "
        f"calibrated for adding or removing one, which moves a gradient sum by C and not by up to 2C a copy, so it "
        f"gets half the noise by definition. Nor is this a ranking at equal privacy: delta', and the privacy of all "
        f"steps together, differ between samplers."
    )
    differences = _differences(tables)
    return f"{text} {differences}" if differences else text


def _differences(tables: Tables) -> str:
    """Return the paired differences of accuracy from Poisson's in the consistent variant, all of them."""
    found = []
    for name in _others(_printed(tables, "table8", "sigma_times_m")):
        where = {"sampler": name, "statistic": "difference_to_poisson"}
        sources = ("consistent", "consistent_lower", "consistent_upper")
        value, lower, upper = (tables.number("table8", "accuracy", source, **where) for source in sources)
        if not _unknown(value, lower, upper):
            found.append(f"{sampler_label(name)} {value:+.4f} [{lower:+.4f}, {upper:+.4f}]")
    if not found:
        return ""
    return (
        f"On Adult, with the same caveat and the steps as stated, accuracy differs from Poisson's by "
        f"{', '.join(found)} (paired by seed, each interval 95 % on its own)."
    )


def per_query_delta(tables: Tables) -> str:
    """Say what delta' becomes with the sensitivity of the released mean."""
    cells = tables.rows("table6", "delta_amplified", epsilon_amplified="*", sampler="*")
    if "stated" not in cells.columns:
        return ""
    cells = cells[cells["verdict"].str.endswith("_as_done") & (cells["printed"] != "")]
    if cells.empty:
        return ""
    shrink = [float(cell["printed"]) / cell["stated"] for _, cell in cells.iterrows() if cell["stated"] > 0]
    if not shrink:
        return ""
    return (
        f"**delta' of one query.** {len(cells)} printed values of Table 6 divide the clipping bound by a noise that "
        f"was scaled for C/n; with C/n throughout (as stated, though not what is released: E4), the printed ones are "
        f"too large by factors of {min(shrink):.2g} to {max(shrink):.2g}."
    )


def cost(tables: Tables) -> str:
    """Say how many gradients each sampler saves."""
    mean = {
        name: tables.number("table9", "law_mean", "stated", experiment="3", sampler=name) for name in ("wor", "must_ww")
    }
    if _unknown(*mean.values()):
        return ""
    return (
        f"**Fewer gradients.** In the sizes of experiment 3 a subset drawn by {sampler_label('must_ww')} has "
        f"{mean['must_ww']:.1f} distinct records on average where WOR has {mean['wor']:.0f}: "
        f"{100 * (1 - mean['must_ww'] / mean['wor']):.0f} % fewer gradients to evaluate."
    )


def bias(tables: Tables) -> str:
    """Say where the downward bias of the variance estimates comes from."""
    cells = tables.rows("table5", "expected", parameter="variance", sampler="must_ow", b="*")
    if cells.empty or "stated" not in cells.columns:
        return ""
    smallest = min(cells["b"], key=float)
    where = {"parameter": "variance", "sampler": "must_ow", "b": smallest}
    exact, got = (tables.number("table5", column, "stated", **where) for column in ("expected", "mean"))
    error = tables.number("table5", "mean", "stated_standard_error", **where)
    if _unknown(exact, got, error):
        return ""
    return (
        f"**Bias of variances.** Sampling with replacement from b records lowers a variance by exactly 1/b: at b = "
        f"{smallest} {sampler_label('must_ow')} expects {exact:.4g} where 1 is true, and gave {got:.3f} ± {error:.1g}. "
        f"Multiply by b / (b - 1) to remove it."
    )


def _printed(tables: Tables, table: str, column: str, **fields: str) -> list[str]:
    """Return the samplers for which the paper prints a quantity, in its order."""
    cells = tables.rows(table, column, sampler="*", **fields)
    return [] if cells.empty else list(cells.loc[cells["printed"] != "", "sampler"])


def _others(samplers: list[str]) -> list[str]:
    return [name for name in samplers if name != REFERENCE]


def _two_digits(bound: float, rounding: str) -> str:
    """Return a bound with two digits, rounded to the side on which it stays one."""
    return f"{float(Context(prec=2, rounding=rounding).create_decimal_from_float(bound)):g}"


def _unknown(*numbers: float) -> bool:
    return any(not math.isfinite(number) for number in numbers)


TAKEAWAYS = Takeaways(parts=(
    composed_privacy, proved_privacy, noise_for_equal_privacy, prediction, equal_epsilon, per_query_delta, cost, bias,
))  # fmt: skip
