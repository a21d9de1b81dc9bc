"""Tables, figures, claims and words of the tournament, from planted records."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy import stats

from dpsub.errors import DataError
from dpsub.papers.tournament.figures import STYLES
from dpsub.papers.tournament.settings import cell_of, why_not
from dpsub.papers.tournament.tables import (
    NOISE,
    TRAINING,
    over_poisson,
    parts,
    shared,
    tournament_contests,
)
from dpsub.reproduce import artefacts
from dpsub.reproduce.artefact import OutputDirs, build, printed_rows
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.figures import styled
from dpsub.reproduce.report.cells import LookUp, tables_of
from dpsub.reproduce.verdicts import holm
from dpsub.sampling.schemes import SCHEMES
from tests.papers.cells import prose, takeaways

SEEDS = 8
SHARE = {
    "poisson": 1.0,
    "truncated_poisson": 1.02,
    "wor": 1.1,
    "wr": 1.1,
    "must_ow": 1.4,
    "must_ww": 1.5,
    "three_stage": 1.8,
    "random_allocation": 0.99,
    "k_of_t": 0.88,
    "shuffle": 1.9,
    "cyclic_poisson": 1.6,
    "deterministic": 1.9,
}
ATTACK = {"poisson": 1.0, "truncated_poisson": 0.0, "wor": 0.9, "k_of_t": 0.99}
"""Ratio of refuted noise to proved noise; 0.95 for the other schemes."""
Frames = Mapping[str, pd.DataFrame]


def planted_noise() -> pd.DataFrame:
    rows = []
    for adjacency in ("add_remove", "zero_out", "substitute"):
        for m, epsilon in ((100, 0.5), (100, 8.0), (1000, 0.5), (1000, 8.0)):
            for sampler, share in SHARE.items():
                if not why_not(cell_of(adjacency, sampler, 10_000, m, 1, epsilon, 1e-6)):
                    noise = share * (3 if epsilon < 1 else 0.5)
                    rows.append(
                        (
                            len(rows),
                            adjacency,
                            sampler,
                            10_000,
                            m,
                            1,
                            10_000 // m,
                            epsilon,
                            1e-6,
                            0,
                            noise,
                            ATTACK.get(sampler, 0.95) * noise,
                            0.9 * epsilon,
                            epsilon,
                        )
                    )
    return pd.DataFrame(rows, columns=list(REGISTRY.get(NOISE).columns))


def planted_training() -> pd.DataFrame:
    """Return losses 1, and 0.1 more with shuffled batches, with a shift of each seed."""
    rng, rows = np.random.default_rng(5), []
    for dataset, epsilon in (("digits", 0.5), ("digits", 8.0), ("adult", 0.5)):
        shift = rng.normal(0, 0.3, SEEDS)
        for sampler in ("nonprivate", *SHARE):
            private = sampler != "nonprivate"
            for seed in range(SEEDS):
                loss = 1 + shift[seed] + 0.01 * rng.standard_normal() + 0.1 * (sampler == "shuffle")
                rows.append(
                    {
                        "replicate": seed,
                        "dataset": dataset,
                        "data_label": "real",
                        "adjacency": "zero_out" if private else "none",
                        "sampler": sampler,
                        "n": 1000,
                        "m": 100,
                        "epochs": 10,
                        "steps": 100,
                        "target_epsilon": epsilon if private else math.nan,
                        "target_delta": 1e-6 if private else math.nan,
                        "noise_multiplier": SHARE[sampler] * (3 if epsilon < 1 else 0.5)
                        if private
                        else 0.0,
                        "necessary": 0.0,
                        "clip": 1.0,
                        "learning_rate": 1.0,
                        "validation_loss": loss,
                        "on_edge": 0,
                        "test_loss": loss - 0.2 * (not private),
                        "accuracy": math.nan,
                        "gradients": 9000.0 if sampler == "wr" else 10_000.0,
                        "gradients_expected": 10_000.0,
                    }
                )
    frame = pd.DataFrame(rows)
    lone = frame["sampler"] == "nonprivate"  # trained once for all targets
    frame = frame[~(lone & frame.duplicated(["replicate", "dataset", "sampler"]))]
    return frame[list(REGISTRY.get(TRAINING).columns)]


@pytest.fixture(scope="module")
def records() -> Frames:
    return {
        name: frame.assign(variant="rigorous", data="")
        for name, frame in ((NOISE, planted_noise()), (TRAINING, planted_training()))
    }


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Frames], LookUp]:
    """Make the tables of records."""

    def made(records: Frames) -> LookUp:
        dirs = OutputDirs.under(tmp_path_factory.mktemp("tournament"))
        chosen = [
            kind() for kind in artefacts.REGISTRY.members().values() if kind.paper == "tournament"
        ]
        chosen = [one for one in chosen if one.kind != "figure"]
        for one in chosen:
            build(one, records, printed_rows(one), dirs)
        return LookUp(tables_of(chosen, dirs))

    return made


@pytest.fixture(scope="module")
def made(tables: Callable[[Frames], LookUp], records: Frames) -> LookUp:
    return tables(records)


def said(cells: LookUp, heading: str) -> str:
    return takeaways("tournament", cells.tables)[heading]


def test_every_scheme_is_planted() -> None:
    assert set(SHARE) == set(SCHEMES)


def test_brackets_hold_attack_over_proof_and_proof_over_attack(records: Frames) -> None:
    frame = records[NOISE]
    frame = frame.assign(
        necessary=frame["necessary"] * np.where(frame["sampler"] == "poisson", 0.8, 1)
    )
    found = (
        over_poisson(frame).set_index(["sampler", "adjacency", "m", "target_epsilon"]).sort_index()
    )
    one = found.loc[("wor", "zero_out", 100, 0.5)]
    assert (one["lower"], one["ratio"], one["upper"]) == pytest.approx(
        (0.99, 1.1, 1.1 / 0.8), rel=1e-12
    )
    assert found.loc["truncated_poisson", "lower"].isna().all() and "poisson" not in found.index
    both = over_poisson(
        pd.concat([frame, frame.assign(tight=1, noise_multiplier=frame["noise_multiplier"] * 0.9)])
    )
    assert both["ratio"].to_numpy() == pytest.approx(over_poisson(frame)["ratio"].to_numpy())
    assert len(both) == len(found)  # the better of two proofs


def test_parts_add_up_and_an_unknown_attack_is_no_part(records: Frames, made: LookUp) -> None:
    found = parts(records[NOISE]).set_index("sampler")
    whole = found["of_the_scheme"] + found["of_the_proof"]
    assert found["difference"].dropna().to_numpy() == pytest.approx(
        whole.dropna().to_numpy(), abs=1e-9
    )
    assert (
        found.loc["truncated_poisson", "settings"].eq(0).all()
        and whole.loc["truncated_poisson"].isna().all()
    )
    wor = found.loc["wor"].iloc[0]
    assert wor["of_the_scheme"] == pytest.approx(100 * math.log(0.99)) and wor["difference"] > 0
    text = said(made, "Unavoidable noise")
    assert "For WOR, random allocation and k of t no attack shows any." in text
    assert "| fixed order | left out | 1.80 to 1.90 | 1.80 to 1.90 |" in text


def test_schemes_are_compared_in_the_settings_that_they_share(
    records: Frames,
) -> None:
    frame = records[NOISE]
    lone = frame[frame["sampler"].isin(["poisson", "k_of_t"])].assign(epochs=7)
    lone["noise_multiplier"] *= np.where(lone["sampler"] == "k_of_t", 50, 1)
    more = pd.concat([frame, lone], ignore_index=True)
    assert parts(more).equals(parts(frame))
    assert len(over_poisson(more)) > len(shared(over_poisson(more))) == len(over_poisson(frame))


def test_noise_counts_settings_and_says_why_some_are_left_out(made: LookUp) -> None:
    row = {"adjacency": "zero_out", "sampler": "k_of_t"}
    assert made.number("noise", "settings", "rigorous", **row) == made.number(
        "noise", "needs_less", "rigorous", **row
    )
    assert made.number("noise", "ratio_median", "rigorous", **row) == pytest.approx(0.88)
    assert (
        made.number("noise", "left_out", "rigorous", adjacency="add_remove", sampler="shuffle") == 4
    )
    assert "| add/remove | shuffle | 4 | no bound is proved" in said(made, "Left out")
    text = said(made, "Noise by scheme")
    assert "| scheme | add/remove | zero-out | substitution |" in text
    assert "| shuffle | left out | 1.90 (1.90 to 1.90) | 1.90 (1.90 to 1.90) |" in text


def test_differences_are_paired_and_shown_by_holm(made: LookUp, records: Frames) -> None:
    frame = records[TRAINING].query("dataset == 'adult' and adjacency == 'zero_out'")
    wide = frame.pivot(index="replicate", columns="sampler", values="test_loss")
    others = [name for name in SHARE if name != "poisson"]
    tests = {name: stats.ttest_rel(wide[name], wide["poisson"]) for name in others}
    place = {
        "dataset": "adult",
        "adjacency": "zero_out",
        "epsilon": "0.5",
        "m": "100",
        "epochs": "10",
    }
    ends = tests["shuffle"].confidence_interval(0.95)
    for end, value in (
        ("", np.mean(wide["shuffle"] - wide["poisson"])),
        ("_lower", ends.low),
        ("_upper", ends.high),
    ):
        found = made.number(
            "losses", "difference_to_poisson", f"rigorous{end}", **place, sampler="shuffle"
        )
        assert found == pytest.approx(value, rel=1e-6)
    shown = dict(zip(others, holm([test.pvalue for test in tests.values()], 0.05), strict=True))
    for name, sure in shown.items():
        assert made.number("losses", "told_apart", "rigorous", **place, sampler=name) == sure
    assert shown["shuffle"] and "| shuffle | 3 | 0 | 3 | 0 |" in said(made, "Loss by scheme")
    free = (
        records[TRAINING]
        .query("dataset == 'adult' and sampler == 'nonprivate'")["test_loss"]
        .mean()
    )
    assert made.number(
        "losses", "test_loss", "rigorous", **place, sampler="nonprivate"
    ) == pytest.approx(free)
    assert "| WR | −10 % |" in said(made, "Gradients")


def test_gradients_are_compared_with_poisson(made: LookUp) -> None:
    def ratio(column: str, sampler: str) -> float:
        row = {"adjacency": "zero_out", "sampler": sampler}
        return made.number("gradients", f"{column}_over_poisson", "rigorous", **row)

    assert ratio("gradients", "wr") == pytest.approx(0.9)
    assert ratio("gradients", "wor") == pytest.approx(1)
    assert ratio("loss", "shuffle") == pytest.approx(1.1, abs=0.02)


def test_contests_need_the_same_seeds(records: Frames) -> None:
    frame = records[TRAINING]
    with pytest.raises(DataError, match="same seeds to be paired"):
        list(tournament_contests(frame.drop(frame.index[frame["sampler"] == "wor"][:1])))
    with pytest.raises(DataError, match="records of two runs"):
        list(tournament_contests(pd.concat([frame, frame])))


def test_which_scheme_follows_from_the_medians(
    made: LookUp, tables: Callable[[Frames], LookUp], records: Frames
) -> None:
    row = "| zero-out | Poisson's noise below 1 | Poisson | WOR 1.10 (1.10 to 1.10) | k of t 0.88 ("
    text = said(made, "Which scheme when")
    assert row in text
    assert "Poisson for fresh batches of any size; WOR for fresh batches of one size; k of" in text
    frame = records[NOISE]
    share = np.where(
        frame["sampler"] == "truncated_poisson", 0.5, np.where(frame["sampler"] == "k_of_t", 3, 1)
    )
    turned = tables(
        {**records, NOISE: frame.assign(noise_multiplier=frame["noise_multiplier"] * share)}
    )
    (row,) = re.findall(
        r"\| zero-out \| Poisson's noise below 1 \|.*", said(turned, "Which scheme when")
    )
    assert "truncated Poisson 0.51" in row and "random allocation 0.99" in row


@pytest.mark.parametrize(
    ("sampler", "noise", "necessary", "claim", "true"),
    [
        ("k_of_t", 0.88, 0.87, "k_of_t_saves", 1),
        ("k_of_t", 1.2, 1.1, "k_of_t_saves", 0),
        ("k_of_t", 0.88, 0.87, "k_of_t_most", 1),
        ("k_of_t", 0.92, 0.88, "k_of_t_most", math.nan),
        ("k_of_t", 0.98, 0.97, "k_of_t_most", 0),
        ("random_allocation", 1.0, 0.9, "balls_in_bins", 1),
        ("random_allocation", 1.1, 1.05, "balls_in_bins", 0),
        ("shuffle", 2.0, 1.1, "shuffle_understated", 1),
        ("shuffle", 1.0, 0.9, "shuffle_understated", 0),
        ("shuffle", 2.0, 1.9, "shuffle_near_fixed", 1),
        ("shuffle", 2.0, 1.0, "shuffle_near_fixed", math.nan),
        ("shuffle", 1.5, 1.0, "shuffle_near_fixed", 0),
    ],
)
def test_published_statements_are_judged_by_the_brackets(
    records: Frames, sampler: str, noise: float, necessary: float, claim: str, true: float
) -> None:
    frame, claims = records[NOISE], artefacts.REGISTRY.get("tournament/claims")()
    own, poisson = frame["sampler"] == sampler, frame["target_epsilon"].map({0.5: 3.0, 8.0: 0.5})
    changed = frame.assign(
        noise_multiplier=frame["noise_multiplier"].mask(own, noise * poisson),
        necessary=frame["necessary"].mask(own, necessary * poisson),
    )
    found = {(row["claim"], row["variant"]): row["value"] for row in claims.rows({NOISE: changed})}
    assert (
        found[claim, "rigorous"] == pytest.approx(true, nan_ok=True) and found[claim, "stated"] == 1
    )


def test_published_statements_are_told(made: LookUp) -> None:
    text = said(made, "Published comparisons")
    assert text.startswith("Of 5 published comparisons, 5 are confirmed, 0 refuted and 0 open.")
    assert "the largest proved saving is 12.0 %, within a bracket of 12.0 to 12.9 % (n = " in text
    paper = "Chua et al. 2024, arXiv 2403.17673"
    bracket = (
        "with Poisson's noise an attack exceeds the target in 4 of 4 settings; the attack "
        "succeeds with up to 1.80 times that noise"
    )
    assert f"| {paper} | {bracket} | **confirmed** |" in text


@pytest.mark.parametrize("name", ["noise", "parts", "loss", "differences"])
def test_figures_draw_every_scheme(records: Frames, name: str) -> None:
    with styled():
        figure, numbers = artefacts.REGISTRY.get(f"tournament/figure_{name}")().draw(records)
    drawn = set(numbers["sampler"])
    assert drawn >= set(SHARE) - {"poisson", "truncated_poisson"} and len(numbers) > 20
    assert all(axes.get_lines() for axes in figure.axes if axes.axison)


def drawn(name: str, records: Frames) -> Figure:
    with styled():
        return artefacts.REGISTRY.get(f"tournament/{name}")().draw(records)[0]


def texts(axes: Axes) -> list[str]:
    """Return what is written within or next to a panel, its remarks included."""
    return [text.get_text() for text in axes.findobj(Text)]


def test_curves_that_coincide_are_drawn_once_under_all_names(records: Frames) -> None:
    figure = drawn("figure_noise", records)
    zero_out = figure.axes[2]
    assert "shuffle,\nfixed order" in texts(zero_out)
    assert "Poisson" in texts(zero_out) and "k of t" in texts(zero_out)
    lines = [one for one in zero_out.get_lines() if one.get_linewidth() and len(one.get_xdata())]
    edges = [one for one in lines if one.get_linestyle() == ":"]
    lines = [one for one in lines if one not in edges]
    schemes = set(over_poisson(records[NOISE]).query("adjacency == 'zero_out'")["sampler"])
    # Shuffle and a fixed order are one curve; the level at 1 is another.
    assert len(lines) == len(schemes) - 1 + 1
    # the lower edge of a wide band tells by its colour whose band it is
    assert edges and {one.get_color() for one in edges} <= {
        STYLES[name]["color"] for name in schemes
    }


def test_a_panel_says_which_schemes_have_no_proof_and_no_bound(records: Frames) -> None:
    figure = drawn("figure_noise", records)
    assert "left out: shuffle, fixed order" in texts(figure.axes[0])
    assert "left out: WR, MUST.OW, MUST.WW, three stages" in texts(figure.axes[2])
    panel = drawn("figure_parts", records).axes[1]
    assert texts(panel).count("left out") == 5  # without a proof, or without an attack


def test_a_panel_of_losses_names_its_data_and_missing_targets(records: Frames) -> None:
    frame = records[TRAINING]
    odd = frame.assign(data_label=np.where(frame["dataset"] == "adult", "subsample", "real"))
    digits, adult = drawn("figure_loss", {**records, TRAINING: odd}).axes[:2]
    assert "subsample data" in texts(adult) and "not trained at\nε = 8" in texts(adult)
    assert not {"subsample data", "real data"} & set(texts(digits))
    shown = [one.get_label() for one in digits.get_lines() if one.get_label() != "other schemes"]
    assert [name for name in shown if name[0] != "_"][:4] == [
        "Poisson",
        "WOR",
        "random allocation",
        "shuffle",
    ]


def test_differences_are_all_at_one_target_and_have_no_empty_row(records: Frames) -> None:
    frame = records[TRAINING]
    lone = frame.query("sampler == 'poisson' and dataset == 'digits'").assign(sampler="importance")
    more = {**records, TRAINING: pd.concat([frame, lone], ignore_index=True)}
    with styled():
        figure, numbers = artefacts.REGISTRY.get("tournament/figure_differences")().draw(more)
    assert set(numbers["epsilon"]) == {0.5} and "importance" not in set(numbers["sampler"])
    names = {tick.get_text() for tick in figure.axes[0].get_yticklabels()}
    assert "significant (Holm)" in figure.axes[0].get_legend_handles_labels()[1]
    assert len(names) == len(SHARE) - 1


def test_nothing_is_said_without_numbers() -> None:
    empty = prose("tournament", {})
    assert empty.takeaways() == [] and empty.headline("best") is None
