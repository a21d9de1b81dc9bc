"""What a user should take from the MUST paper."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from dpsub.papers.must.settings import FIVE, MUST
from dpsub.reproduce.digits import written
from dpsub.reproduce.labels import sampler_label as label
from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.report.takeaways import Tables, Takeaways

REFERENCE = "poisson"


def by_sampler(
    tables: Tables, table: str, column: str, source: str, **fields: str
) -> dict[str, float]:
    """Return a quantity of the samplers for which the paper prints one; empty if one is lacking."""
    found = {name: tables.number(table, column, source, sampler=name, **fields) for name in FIVE}
    return {} if unknown(*found.values()) else found


def unknown(*numbers: float) -> bool:
    return any(not math.isfinite(number) for number in numbers)


def two_digits(bound: float, rounding: str) -> str:
    """Return a bound with two digits, rounded to the side on which it stays one."""
    return f"{float(Context(prec=2, rounding=rounding).create_decimal_from_float(bound)):g}"


def composed_privacy(tables: Tables) -> str:
    noise, lower, upper = (
        by_sampler(tables, "table8", column, source)
        for column, source in (
            ("sigma_times_m", "stated"),
            ("delta_c_lower", "consistent"),
            ("delta_c_upper", "consistent"),
        )
    )
    if not (noise and lower and upper):
        return ""
    least = min((name for name in noise if name != REFERENCE), key=noise.__getitem__)
    saved = 100 * (1 - noise[least] / noise[REFERENCE])
    spans = ", ".join(f"{label(name)} {lower[name]:.2g} to {upper[name]:.2g}" for name in noise)
    text = (
        f"**Noise and composed privacy.** In experiment 3 {label(least)} adds {saved:.0f} % less "
        "noise than Poisson for the same stated epsilon' of one query. Over all iterations, with "
        "the noise as stated and the sensitivity to one occurrence in the same units, delta at "
        f"epsilon = 2 of the paper's own pair lies in these ranges: {spans}. They bracket the "
        "pair and are not guarantees for the samplers. "
    )
    text += (
        f"Even by this measure {label(least)} pays for the smaller noise with privacy."
        if lower[least] > upper[REFERENCE]
        else f"These ranges do not show that {label(least)} is less private than Poisson."
    )
    limit = tables.number("claims", "one_over_n", "stated", claim="adult_inv_n")
    if math.isfinite(limit):
        below = [label(name) for name in noise if upper[name] < limit]
        text += f" Upper ends below 1/n = {limit:.2g}: {', '.join(below) or 'none'}."
    return text


def proved_privacy(tables: Tables) -> str:
    lower, upper = (
        by_sampler(tables, "table8", f"delta_c_{end}", "rigorous") for end in ("lower", "upper")
    )
    if not (lower and upper):
        return ""
    ends = []
    for name, proved in upper.items():
        low, high = two_digits(lower[name], ROUND_FLOOR), two_digits(proved, ROUND_CEILING)
        nothing = f"at least {low} (nothing is proved: its sums are divided by the realised size)"
        ends.append(f"{label(name)} {f'{low} to {high}' if proved < 1 else nothing}")
    return (
        "**What can be proved.** The paper's pair is not the worst case. For experiment 3 as it "
        "was run, delta at epsilon = 2 lies between what explicit data sets attain and what is "
        "proved for clipped sums when one record is substituted (Poisson: added or removed): "
        f"{', '.join(ends)}. No guarantee below the first numbers can hold for these samplers "
        "with this noise and clipping; a particular data set may leak less."
    )


def noise_for_equal_privacy(tables: Tables) -> str:
    cells = tables.rows(
        "noise_at_equal_privacy", "noise_over_wor", target_epsilon="*", sampler="*", adjacency="*"
    )
    if "rigorous" not in cells.columns:
        return ""
    of = {name: cells.loc[cells["sampler"] == name, "rigorous"].dropna() for name in MUST}
    parts = [
        f"{label(name)} needs {ratios.min():.2g} to {ratios.max():.2g} times"
        for name, ratios in of.items()
        if len(ratios)
    ]
    return (
        ""
        if not parts
        else (
            "**Noise at equal proved privacy.** For the same proved (epsilon, delta), "
            f"{' and '.join(parts)} the noise of "
            "WOR, over all targets tried."
        )
    )


def prediction(tables: Tables) -> str:
    printed, as_done, stated = (
        tables.number("table8", "accuracy", source, sampler="poisson")
        for source in ("printed", "as_done", "stated")
    )
    f1 = tables.number("table8", "f1", "stated", sampler="poisson")
    if unknown(printed, as_done, stated, f1):
        return ""
    text = (
        f"**Accuracy on Adult.** With income left among the predictors, accuracy is {as_done:.3f} "
        f"(Poisson; printed {printed:.3f}); without it, as the text describes the study, it is "
        f"{stated:.3f} with an F1 score of {f1:.2f}."
    )
    reference = tables.number(
        "table8", "accuracy", "consistent", sampler="nonprivate", solver="scikit_learn"
    )
    if reference > stated:
        text += (
            " With the same features, logistic regression fitted to convergence without privacy "
            f"reaches {reference:.3f}: the stated run is limited by the number and size of its "
            "steps, not by its sampler."
        )
    elif math.isfinite(reference):
        text += (
            f" Logistic regression fitted to convergence without privacy reaches {reference:.3f}."
        )
    private = by_sampler(tables, "table8", "accuracy", "consistent", solver="converged").values()
    without = tables.number(
        "table8", "accuracy", "consistent", sampler="nonprivate", solver="converged"
    )
    if private and math.isfinite(without):
        text += (
            f" Longer steps come close to convergence without noise ({without:.3f}), but with "
            f"noise calibrated to the released mean (*consistent*) they give {min(private):.3f} "
            f"to {max(private):.3f}: the noise, hidden by the short steps, then determines the "
            "accuracy."
        )
    return text


def equal_epsilon(tables: Tables) -> str:
    cells = tables.rows("table6", "rmse_mean", epsilon_amplified="*", sampler="*")
    if cells.empty or "consistent" not in cells.columns:
        return ""
    at = {"epsilon_amplified": min(cells["epsilon_amplified"], key=float)}
    error, margin = (
        by_sampler(tables, "table6", "rmse_mean", f"consistent{end}", **at)
        for end in ("", "_standard_error")
    )
    if not (error and margin):
        return ""
    best = min((name for name in error if name != REFERENCE), key=error.__getitem__)
    listed = ", ".join(
        f"{label(name)} {written(error[name], error=margin[name])}" for name in error
    )
    text = (
        "**Samplers at equal epsilon' per query.** With noise calibrated to the sensitivity of "
        "the released mean (*consistent*), the root mean squared error of experiment 2 at "
        f"epsilon' = {at['epsilon_amplified']} is, with its standard error, {listed}. Among those "
        f"calibrated for substituting a record {label(best)} has the smallest error. Poisson is "
        "calibrated for adding or removing one, which moves a gradient sum by at most C instead "
        "of 2C per copy, so it gets half the noise by definition. Nor is this a ranking at equal "
        "privacy: delta' and the privacy of all steps together differ between samplers."
    )
    found = []
    for name in FIVE:
        value, *ends = (
            tables.number(
                "table8",
                "accuracy",
                f"consistent{end}",
                sampler=name,
                statistic="difference_to_poisson",
            )
            for end in ("", "_lower", "_upper")
        )
        if not unknown(value, *ends):
            found.append(f"{label(name)} {value:+.4f} [{ends[0]:+.4f}, {ends[1]:+.4f}]")
    return (
        text
        if not found
        else (
            f"{text} On Adult, with the same caveat and the steps as stated, accuracy differs "
            f"from Poisson's by {', '.join(found)} (paired by seed; 95 % intervals, each on its "
            "own)."
        )
    )


def per_query_delta(tables: Tables) -> str:
    cells = tables.rows("table6", "delta_amplified", epsilon_amplified="*", sampler="*")
    if "stated" not in cells.columns:
        return ""
    cells = cells[cells["verdict"].str.endswith("_as_done") & (cells["printed"] != "")]
    shrink = [
        float(cell["printed"]) / cell["stated"]
        for _, cell in cells.iterrows()
        if cell["stated"] > 0
    ]
    return (
        ""
        if not shrink
        else (
            f"**delta' of one query.** {len(cells)} printed values of Table 6 divide the clipping "
            "bound by a noise that was scaled for C/n; compared with C/n throughout (as stated, "
            "though not what is released: E4), they are too large by factors of "
            f"{min(shrink):.2g} to {max(shrink):.2g}."
        )
    )


def cost(tables: Tables) -> str:
    wor, must = (
        tables.number("table9", "law_mean", "stated", experiment="3", sampler=name)
        for name in ("wor", "must_ww")
    )
    return (
        ""
        if unknown(wor, must)
        else (
            "**Fewer gradients.** At the sizes of experiment 3, a subset drawn by "
            f"{label('must_ww')} has {must:.1f} distinct records on average, compared with "
            f"{wor:.0f} for WOR: {100 * (1 - must / wor):.0f} % fewer gradients to evaluate."
        )
    )


def bias(tables: Tables) -> str:
    cells = tables.rows("table5", "expected", parameter="variance", sampler="must_ow", b="*")
    if cells.empty:
        return ""
    b = min(cells["b"], key=float)
    exact, got, error = (
        tables.number("table5", column, source, parameter="variance", sampler="must_ow", b=b)
        for column, source in (
            ("expected", "stated"),
            ("mean", "stated"),
            ("mean", "stated_standard_error"),
        )
    )
    return (
        ""
        if unknown(exact, got, error)
        else (
            "**Bias of the variance.** Sampling with replacement from b records lowers the "
            f"expected sample variance by the factor 1 - 1/b: at b = {b} it is {exact:.4g} for "
            f"{label('must_ow')} where the true variance is 1, and {written(got, error=error)} "
            "was obtained. Multiplying by b / (b - 1) removes the bias."
        )
    )


def worst(tables: Tables) -> Headline | None:
    """Composed privacy: what the paper prints against what an attack attains."""
    printed = by_sampler(tables, "table8", "delta_c_upper", "printed")
    attained = by_sampler(tables, "table8", "delta_c_lower", "rigorous")
    limit = tables.number("claims", "one_over_n", "stated", claim="adult_inv_n")
    if not (printed and attained) or unknown(limit):
        return None
    return Headline(
        f"Table 8 states δ below 1/n = {limit:.2g} for all steps together; with the noise that "
        f"was used an attack attains {min(attained.values()):.2g} to {max(attained.values()):.2g}.",
        "table8",
        ("E2",),
        {label(name): (printed[name], attained[name]) for name in printed},
        ("δ, printed bound", "δ of an attack"),
    )


def best(tables: Tables) -> Headline | None:
    """The amplification of one query."""
    good, judged = tables.agreement("table3")
    return (
        None
        if not good
        else Headline(
            f"Table 3: {good} of {judged} printed parameters of an amplified query come out in "
            "every digit.",
            "table3",
            ("E9",),
        )
    )


TAKEAWAYS = Takeaways(
    parts=(
        composed_privacy,
        proved_privacy,
        noise_for_equal_privacy,
        prediction,
        equal_epsilon,
        per_query_delta,
        cost,
        bias,
    ),
    worst=worst,
    best=best,
)
