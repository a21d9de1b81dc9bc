"""The importance-sampling paper from records to verdicts: a small run, its claims, and faults that
turn each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsub.errors import DataError, PlanError
from dpsub.papers.importance.claims import STATEMENTS
from dpsub.reproduce import configuration, published
from dpsub.reproduce.artefact import all_values
from dpsub.reproduce.artefacts import REGISTRY, OutputDirs, build, printed_rows
from dpsub.reproduce.claims import Claim
from dpsub.reproduce.experiments import REGISTRY as EXPERIMENTS
from dpsub.reproduce.report import FinishedRun
from dpsub.reproduce.report.cells import read_cells
from dpsub.reproduce.report.numbers import of_printed
from dpsub.reproduce.verdicts import COLUMNS, compare, read_expected, tally
from tests.few import few
from tests.papers.cells import prose
from tests.unit.rows import with_rows

ROOT = Path(__file__).resolve().parents[3]
Frames = dict[str, pd.DataFrame]
NOISE, COSTS, SUMS, PROFILES = (
    f"importance_{name}" for name in ("noise", "clustering", "sums", "profiles")
)
SETS = {"sets": {"data": [], "twins": ["song", "ijcnn1"], "twin_rows": 1000}}
CELLS = {
    **SETS,
    "cells": {
        "sizes": {
            "song": {"rows": [50000], "curve": [50000]},
            "ijcnn1": {"rows": [5000, 10000, 15000], "curve": [3000, 5000]},
        }
    },
}
SMALL: dict[str, dict[str, Any]] = {
    "importance_data": SETS,
    SUMS: {"points": 3, "runs": 50, "rules": ["free", "b1"]},
    NOISE: CELLS,
    COSTS: {**CELLS, "replicates": 3},
    "importance_losses": SETS,
    PROFILES: {"points": 9, "exponents": [0, 1]},
    "importance_gain": {"sizes": {"ijcnn1": 5000}, "epsilons": [3], "dimensions": [10]},
    "importance_audit": {"noise_draws": 20000, "centre_draws": 8000},
    "importance_coreset": {**SETS, "sizes": [60], "replicates": 2, "centre_sets": 2},
    "importance_times": {
        **SETS,
        "sizes": {"song": [20000, 50000], "ijcnn1": [5000]},
        "loop": {"ijcnn1": []},
        "turns": 1,
    },
}
SETTINGS = {
    name: EXPERIMENTS.get(name).settings({"parts": 1, **over}) for name, over in SMALL.items()
}


def run(name: str, variant: str, records: Frames) -> pd.DataFrame:
    experiment = EXPERIMENTS.get(name)()
    found = experiment.compute(
        SMALL[name],
        variant=variant,
        replicates=range(experiment.replicates(SETTINGS[name])),
        seed=20231220,
        records=records,
    )
    return found.assign(variant=variant, data="")


@pytest.fixture(scope="module")
def records() -> Frames:
    found: Frames = {}
    for name in SMALL:
        found[name] = pd.concat(
            [run(name, each, found) for each in EXPERIMENTS.get(name).variants], ignore_index=True
        )
    return found


@pytest.fixture(scope="module")
def good(records: Frames) -> Frames:
    """Return records as if each data set were the paper's, songs standing for all others, in the
    order that the paper states, repeated so often that sign tests decide; without those for which
    two statements fail."""
    cost, profiles, noise = (records[name] for name in (COSTS, PROFILES, NOISE))
    songs = [
        cost[cost["dataset"] == "song"].assign(dataset=name)
        for name in ("kdd_protein", "rna", "covertype", "pose", "miniboone", "fma")
    ]
    every = pd.concat([cost, *songs], ignore_index=True).assign(data_label="real")
    frame = pd.concat(
        [every.assign(replicate=every["replicate"] + 3 * i) for i in range(4)], ignore_index=True
    )
    rank = frame["sampler"].map({"unif": 0.0, "core": 0.01, "opt": 0.02, "full": 0.1})
    frame["cost"] = (
        frame["mean_square"] * 0.9 * (1 - rank * np.where(frame["m_paper"] == 15000, 0.5, 1.0))
    )
    return {
        **records,
        COSTS: frame,
        PROFILES: profiles.assign(other=profiles["psi"]),
        NOISE: noise.assign(m_max=noise["n"] * noise["mean_square"] / noise["radius"] ** 2),
    }


def verdicts(records: Frames, name: str = "claims") -> pd.DataFrame:
    artefact = REGISTRY.get(f"importance/{name}")()
    configured = {name: settings.model_dump(mode="json") for name, settings in SETTINGS.items()}
    values = all_values(artefact, records, configured)
    compared = compare(
        printed_rows(artefact), values.assign(note="") if artefact.timed else values, artefact.keys
    )
    return compared[compared["variant"] == "stated"].set_index(["row", "column"])


def test_every_printed_claim_has_a_verdict_or_a_reason(records: Frames) -> None:
    judged = verdicts(records)
    assert len(judged) == 37 and (judged["verdict"] != "").all()
    assert set(judged.index[judged["verdict"] == "fails"]) == {("c01", "holds"), ("c12", "holds")}
    assert set(judged.index[judged["verdict"] == "differs"]) == {
        ("c08", "runs"),
        ("c20", "replicates"),
    }
    lacking = judged.loc[judged["verdict"] == "not_compared", "note"]
    assert {row for row, _ in lacking.index} == {"c29", "c30", "c31", "c32", "c33", "c34"}
    assert (
        lacking.str.contains("not the real data").all()
        and "RNA is missing" in lacking["c29", "holds"]
    )
    claims = REGISTRY.get("importance/claims")().declared()
    assert {row for row, _ in judged.index} - {row for row, _ in claims} == {
        "c19",
        "c27",
        "c28",
        "c35",
    }


# claim -> the numbers that are multiplied: records, column, by what, and where
FAULTS: dict[str, tuple[str, str, float, dict[str, object]]] = {
    "c01": (PROFILES, "other", 1.11, {"topic": "uniform"}),
    "c10": (SUMS, "weight", 1.15, {"rule": "b1", "sampler": "opt"}),
    "c11": (SUMS, "max_loss", 2.0, {"sampler": "opt"}),
    "c12": (NOISE, "m_max", 1.001, {"dataset": "rna"}),
    "c17": (COSTS, "epsilon", 2.0, {"epsilon": 30.0}),
    "c29": (COSTS, "cost", 0.98, {"dataset": "rna", "sampler": "unif"}),
    "c30": (COSTS, "cost", 1.02, {"sampler": "opt"}),
    "c31": (COSTS, "cost", 1.2, {"epsilon": 0.5}),
    "c32": (COSTS, "cost", 1.05, {"m_paper": 15000.0, "sampler": "unif"}),
    "c33": (COSTS, "cost", 0.97, {"m_paper": 10000.0, "sampler": "unif"}),
    "c34": (COSTS, "cost", 0.98, {"dataset": "fma", "sampler": "unif"}),
    "c36": (PROFILES, "psi", 1.001, {"topic": "uniform"}),
}


@pytest.mark.parametrize("claim", STATEMENTS, ids=lambda claim: claim.claim)
def test_each_statement_holds_on_good_records_and_a_planted_fault_turns_it(
    good: Frames, claim: Claim
) -> None:
    name, column, factor, where = FAULTS[claim.claim]
    frame = good[name]
    chosen = (frame[list(where)] == pd.Series(where)).all(axis=1)
    assert chosen.any()
    bad = {
        **good,
        name: frame.assign(**{column: frame[column].mask(chosen, frame[column] * factor)}),
    }
    before, after = (
        next(answer for answer in claim.answers(frames) if answer["variant"] == "stated")
        for frames in (good, bad)
    )
    assert before["value"] == 1
    assert "no epsilon 30" in after["note"] if claim.claim == "c17" else after["value"] == 0


ARTEFACTS = [name for name in REGISTRY.names() if name.startswith("importance/")]


@pytest.mark.parametrize(
    "name",
    few(dict.fromkeys(("importance/gain", *ARTEFACTS)), most=1, more=1),
)
def test_artefacts_are_built_twice_alike(records: Frames, name: str, tmp_path: Path) -> None:
    artefact = REGISTRY.get(name)()
    files = []
    for place in (
        ("one", "two") if artefact.kind != "figure" or name.endswith("figure3") else ("one",)
    ):
        made = build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path / place))
        files.append({role: path.read_bytes() for role, path in made.items()})
    assert files[0] == files[-1] and all(files[0].values())
    if name in ("importance/costs", "importance/coreset", "importance/group_losses"):
        assert b"synthetic" in files[0]["md"]


def test_the_tables_of_times_reproduce_the_shares_drawn(records: Frames) -> None:
    judged = verdicts(records, "table2")
    songs = judged[(judged["kind"] == "exact") & judged["value"].notna()].filter(
        like="Song", axis=0
    )
    assert len(songs) >= 6 and set(songs["verdict"]) == {"reproduced"}
    assert set(judged.loc[judged["kind"] == "timing", "verdict"]) == {"reported"}
    for name in ("table2", "table3"):  # printed times add up
        cells = with_rows(published.load("importance", name)).pivot(
            index="row", columns="column", values="printed"
        )
        cells = cells.astype(float)
        parts = cells[["t_weights", "t_sampling", "t_dp_lloyd"]].sum(axis=1)
        assert (abs(parts - cells["t_total"]) <= 0.0101).all()


@pytest.mark.parametrize(("radius", "verdict"), [(1.5113, "within_error"), (1.516, "differs")])
def test_table_1_judges_the_papers_data_only(records: Frames, radius: float, verdict: str) -> None:
    frame = records["importance_data"]
    paper = {
        "data_label": "real",
        "n_original": 49990,
        "n": 48740,
        "d": 22,
        "radius": radius,
        "mean_square": 1.264,
    }
    columns = {
        name: frame[name].where(frame["dataset"] != "ijcnn1", value)
        for name, value in paper.items()
    }
    frame = frame.assign(**columns)
    judged = verdicts({"importance_data": frame}, "table1")
    assert judged.loc[("dataset=Ijcnn1", "radius"), "verdict"] == verdict
    assert judged.loc[("dataset=Song", "radius"), "verdict"] == "not_compared"
    assert judged.loc[("dataset=RNA", "radius"), "note"].startswith("no value in this run")


def test_noise_of_twins_is_that_of_table_1(records: Frames) -> None:
    frame = records[NOISE]
    key = ["variant", "dataset", "sampler", "m_paper", "epsilon"]
    pairs = frame[frame["data_label"] == "table1"].merge(
        frame[frame["data_label"] == "synthetic"], on=key
    )
    finite = pairs[
        np.isfinite(pairs["epsilon"]) & (pairs["sampler"] != "full") & (pairs["dataset"] == "song")
    ]
    assert len(finite) > 20
    assert finite["beta_sum_x"].to_numpy() == pytest.approx(
        finite["beta_sum_y"].to_numpy(), rel=1e-4
    )


def test_noise_of_other_settings_is_refused(records: Frames) -> None:
    with pytest.raises(DataError, match="run importance_noise"):
        run(COSTS, "stated", {NOISE: records[NOISE][records[NOISE]["epsilon"] != 10.0]})


def test_the_report_has_a_sentence_from_each_table(records: Frames, tmp_path: Path) -> None:
    cells = {}
    for name in ("claims", "audit", "noise_scales", "costs", "gain"):
        artefact = REGISTRY.get(f"importance/{name}")()
        cells[name] = read_cells(
            build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path))["csv"]
        )
    text = " ".join(takeaway.paragraph for takeaway in prose("importance", cells).takeaways())
    for words in (
        "2 fail as printed",
        "Attacks on the code.",
        "The attack on the noise radius refutes the promise of the released code",
        "times the noise of coreset",
        "| pure ε / proved ε |",
    ):
        assert words in text
    # all costs here are of data that stand in for the paper's
    assert "its median cost is" not in text
    assert prose("importance", {}).takeaways() == []


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("data", {"sets": {"data": ["song"], "twins": ["song"]}}, "never both"),
        ("data", {"sets": {"data": [], "twins": []}}, "at least one data set"),
        ("data", {"sets": {"data": ["songs"], "twins": []}}, "did you mean 'song'"),
        (
            "data",
            {"sets": {"data": [], "twins": ["song"], "twin_rows": 5}},
            "twin_rows must be at least",
        ),
        ("noise", {"mixing": 0.0}, "mixing must be above 0"),
        ("noise", {"iterations": 0}, "iterations must be at least 1"),
        ("noise", {"cells": {"epsilons": [0.0]}}, "must be above 0, got 0"),
        ("noise", {"cells": {"sizes": {"pose": {"rows": [10**6]}}}}, "n of pose"),
        ("clustering", {"clusters": 0}, "clusters must be at least 1"),
        ("sums", {"rules": ["none"]}, "rule"),
        ("gain", {"delta": 1.0}, "delta must be below 1"),
        ("coreset", {"sizes": [10]}, "m must be at least 50"),
        ("times", {"sizes": {"fma": [10**7]}}, "n of fma"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_a_sentence(
    name: str, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlanError, match=words):
        EXPERIMENTS.get(f"importance_{name}").settings(changes)


def test_the_readme_says_which_data_are_real() -> None:
    """The readme names the data sets that the configuration has as real ones."""
    described = configuration.load([ROOT / "config.yaml"])["experiments"].values()
    sets = [one["sets"] for one in described if one.get("sets", {}).get("data")]
    real = {name for one in sets for name in one["data"]}
    twins = {name for one in sets for name in one["twins"]}
    assert (real, len(twins)) == ({"ijcnn1"}, 7)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (
        "ijcnn1 is real in `make reproduce`; the other seven data sets are synthetic twins"
        in readme
    )


def test_numbers_without_data_are_counted() -> None:
    """These numbers have no expected verdict, as a stand-in keeps them from being compared."""
    found = of_printed(["importance"], read_expected(ROOT / "src/dpsub/papers"))
    assert tally(found.values()).not_compared > 30


def test_twins_are_counted_next_to_real_data(tmp_path: Path) -> None:
    files = [ROOT / "config.yaml", ROOT / "workflow/smoke.yaml"]
    run = FinishedRun(
        [],
        OutputDirs.under(tmp_path),
        pd.DataFrame(columns=list(COLUMNS)),
        data=[{"dataset": "ijcnn1", "label": "real"}],
        errata=[],
        provenance={},
        settings=configuration.load(files)["experiments"],
    )
    words = run.data_words([REGISTRY.get("importance/table1")()])
    assert words[0] == "real: ijcnn1 (1 of 2 data sets)"
    assert words[1].startswith("synthetic twins") and words[1].endswith(": song (1 of 2 data sets)")
