"""Numbers of the main paper's pages that take several cells of a run, for the placeholders
`numbers` and `derived`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpsub.papers.must.settings import FIVE, MUST
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.report.cells import LookUp

REFERENCE = "poisson"
CLIP = 3.0
"""The bound C of the norm of a gradient in experiment 3."""


def by_sampler(
    cells: LookUp, table: str, column: str, source: str, **fields: str
) -> dict[str, float]:
    """Return a quantity of each sampler for which the paper prints one."""
    return {name: cells.number(table, column, source, sampler=name, **fields) for name in FIVE}


def smallest_but_poisson(numbers: Mapping[str, float]) -> str:
    """Return the sampler with the smallest number, Poisson sampling apart."""
    # Poisson is calibrated under add_remove and the rest under substitute: its noise does not
    # compete with theirs.
    others = [name for name in numbers if name != REFERENCE]
    return min(others, key=numbers.__getitem__)


def composed_privacy(cells: LookUp) -> dict[str, Any]:
    """Return the noise of experiment 3, and delta of the paper's own pair after all its steps."""
    noise = by_sampler(cells, "table8", "sigma_times_m", "stated")
    least = smallest_but_poisson(noise)
    return {
        "least_noise": least,
        "saved": 100 * (1 - noise[least] / noise[REFERENCE]),
        # The consistent rows compose in the right unit, m sigma / C (erratum E2).
        "lower": by_sampler(cells, "table8", "delta_c_lower", "consistent"),
        "upper": by_sampler(cells, "table8", "delta_c_upper", "consistent"),
    }


def proved_privacy(cells: LookUp) -> dict[str, dict[str, float]]:
    """Return delta of experiment 3: the value that an attack attains, and the proved bound."""
    return {
        end: by_sampler(cells, "table8", f"delta_c_{end}", "rigorous") for end in ("lower", "upper")
    }


def noise_over_wor(cells: LookUp) -> list[dict[str, Any]]:
    """Return the least and the greatest ratio of the noise of each multistage sampler to that of
    WOR, over all targets tried."""
    ratios = cells.rows(
        "noise_at_equal_privacy", "noise_over_wor", target_epsilon="*", sampler="*", adjacency="*"
    )
    spans = []
    for sampler in MUST:
        own = ratios.loc[ratios["sampler"] == sampler] if len(ratios) else ratios
        # A ratio of two proved noises: each is enough for its target, neither is the least that is.
        known = own.get("rigorous", pd.Series(dtype=float)).dropna()
        if len(known):
            spans.append({"sampler": sampler, "least": known.min(), "most": known.max()})
    if not spans:
        raise MissingRecordsError("this run compares no noise at equal privacy")
    return spans


def errors_at_equal_epsilon(cells: LookUp) -> dict[str, Any]:
    """Return the errors of experiment 2 at the smallest epsilon' of a query, with their standard
    errors."""
    # The noise is largest there, and with it the difference between samplers.
    epsilon = smallest_value(cells, "epsilon_amplified", "table6", "rmse_mean", sampler="*")
    at = {"epsilon_amplified": epsilon}
    error = by_sampler(cells, "table6", "rmse_mean", "consistent", **at)
    return {
        "epsilon": epsilon,
        "error": error,
        "standard_error": by_sampler(
            cells, "table6", "rmse_mean", "consistent_standard_error", **at
        ),
        "best": smallest_but_poisson(error),
    }


def smallest_value(cells: LookUp, field: str, table: str, column: str, **fields: str) -> str:
    """Return the smallest value that a key field has in a table."""
    values = cells.rows(table, column, **{field: "*"}, **fields).get(field, ())
    if not len(values):
        raise MissingRecordsError(f"this run has no {column} in {table}")
    return str(min(values, key=float))


def differences_from_poisson(cells: LookUp) -> list[dict[str, Any]]:
    """Return the paired differences in accuracy, with 95 % intervals, of the samplers that have
    one."""
    differences = []
    for sampler in FIVE:
        cell = {"sampler": sampler, "statistic": "difference_to_poisson"}
        try:
            difference, lower, upper = (
                cells.number("table8", "accuracy", f"consistent{end}", **cell)
                for end in ("", "_lower", "_upper")
            )
        except MissingRecordsError:
            continue
        differences.append(
            {"sampler": sampler, "value": difference, "lower": lower, "upper": upper}
        )
    if not differences:
        raise MissingRecordsError("this run compares no accuracies")
    return differences


def accuracy_of_long_steps(cells: LookUp) -> dict[str, float]:
    """Return the accuracies of a solver run to convergence, with and without noise."""
    private = by_sampler(cells, "table8", "accuracy", "consistent", solver="converged").values()
    return {
        "least": min(private),
        "most": max(private),
        "without_noise": cells.number(
            "table8", "accuracy", "consistent", sampler="nonprivate", solver="converged"
        ),
    }


def too_large_deltas(cells: LookUp) -> dict[str, float]:
    """Return the number of printed delta' of Table 6 that come out only as done, and the factors by
    which they exceed the stated values."""
    deltas = cells.rows("table6", "delta_amplified", epsilon_amplified="*", sampler="*")
    # Cells that match only with the ratio C / sigma (erratum E3).
    as_done = deltas[deltas["verdict"].str.endswith("_as_done") & (deltas["printed"] != "")]
    stated = as_done.get("stated", pd.Series(dtype=float))
    # A stated delta' may underflow to 0: such a cell has no factor.
    factors = pd.to_numeric(as_done["printed"]) / stated.where(stated > 0)
    if factors.dropna().empty:
        raise MissingRecordsError("this run has no delta' that comes out only as done")
    return {"count": len(as_done), "least": factors.min(), "most": factors.max()}


def bias_of_the_variance(cells: LookUp) -> dict[str, Any]:
    """Return the expected and the obtained variance at the smallest b."""
    # The expectation of MUST.OW is 1 - 1 / b: the bias is largest at the smallest b.
    b = smallest_value(cells, "b", "table5", "expected", parameter="variance", sampler="must_ow")
    cell = {"parameter": "variance", "sampler": "must_ow", "b": b}
    return {
        "b": b,
        "exact": cells.number("table5", "expected", "stated", **cell),
        "mean": cells.number("table5", "mean", "stated", **cell),
        "standard_error": cells.number("table5", "mean", "stated_standard_error", **cell),
    }


def claimed_and_attained(cells: LookUp) -> dict[str, tuple[float, float]]:
    """Return delta after all steps by sampler: the printed bound, and the value that an attack
    attains."""
    printed = by_sampler(cells, "table8", "delta_c_upper", "printed")
    attained = by_sampler(cells, "table8", "delta_c_lower", "rigorous")
    return {sampler_label(name): (printed[name], attained[name]) for name in printed}


def refuted_bounds(cells: LookUp) -> dict[str, float]:
    """Return the number of printed upper bounds on delta in Table 8, the number that an attack
    exceeds, and the values that it attains there."""
    pairs = claimed_and_attained(cells).values()
    attained = [found for claimed, found in pairs if found > claimed]
    if not attained:
        raise MissingRecordsError("this run refutes no bound of Table 8")
    return {
        "printed": len(pairs),
        "count": len(attained),
        "least": min(attained),
        "most": max(attained),
    }


def majority_share(cells: LookUp) -> float:
    """Return the accuracy of always predicting the majority class: that of any other mixes the two
    rates by it."""
    # accuracy = share of positives * sensitivity + share of negatives * specificity, whatever the
    # classifier: solved for the share of the negatives, the majority class of Adult.
    metrics = ("accuracy", "sensitivity", "specificity")
    accuracy, sensitivity, specificity = (
        cells.number("table8", metric, "stated", sampler="nonprivate") for metric in metrics
    )
    return (accuracy - sensitivity) / (specificity - sensitivity)


def noise_over_c(cells: LookUp, sampler: str) -> float:
    """Return the noise of a clipped sum in units of the clipping bound, in experiment 3."""
    # The sum over m records has noise m sigma, and a clipped gradient moves it by C: the unit that
    # the printed bounds leave out (erratum E2).
    return cells.number("table8", "sigma_times_m", "stated", sampler=sampler) / CLIP


def too_large_in_table_6(cells: LookUp) -> float:
    """Return the excess in percent of the printed error of MUST.OW over ours."""
    # The cell of erratum E8, the one Monte Carlo cell of Table 6 that no variant
    # reproduces.
    cell = {"epsilon_amplified": "0.001", "sampler": "must_ow"}
    printed, ours = (
        cells.number("table6", "rmse_mean", source, **cell) for source in ("printed", "stated")
    )
    return 100 * (printed / ours - 1)


def noise_of_the_pair(cells: LookUp) -> dict[str, int]:
    """Return the number of settings in which an attack exceeds the target at the noise of the
    paper's pair."""
    where = dict.fromkeys(("target_epsilon", "sampler", "adjacency"), "*")
    both = [
        cells.rows("noise_at_equal_privacy", column, **where).reindex(columns=[*where, "rigorous"])
        for column in ("noise_pair", "noise_refuted")
    ]
    pairs = both[0].merge(both[1], on=[*where], suffixes=("_pair", "_refuted")).dropna()
    if pairs.empty:
        raise MissingRecordsError("this run compares no noise with that of the paper's pair")
    refuted = pairs["rigorous_refuted"] >= pairs["rigorous_pair"]
    return {"cases": len(pairs), "refuted": int(refuted.sum())}


def peers_below_an_attack(cells: LookUp) -> dict[str, int]:
    """Return the number of upper bounds of the Rényi accountant, given noise in units of C, that an
    attack exceeds, if no other upper bound is exceeded."""
    setting = ["sampler", "adjacency", "n", "m", "noise_multiplier", "n_compositions"]
    where = dict.fromkeys([*setting, "tool"], "*")
    upper, lower = (cells.rows("peer_bounds", end, **where) for end in ("upper", "lower"))
    if "rigorous" not in upper or "rigorous" not in lower:
        raise MissingRecordsError("this run asks no other accountant")
    attacks = lower[lower["tool"] == "dpsub"].set_index(setting)["rigorous"].rename("attained")
    answers = upper.join(attacks, on=setting, how="inner")
    answers = answers[answers["tool"] != "dpsub"]
    below = answers["rigorous"] < answers["attained"]
    in_units_of_c = answers["tool"].str.endswith("unit C")
    if not in_units_of_c.any() or below[~in_units_of_c].any():
        raise MissingRecordsError("this run has other answers below an attack, or none of RDP")
    return {"answers": int(in_units_of_c.sum()), "below": int(below[in_units_of_c].sum())}
