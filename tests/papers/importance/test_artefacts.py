"""The importance-sampling paper from records to verdicts: a small run, its claims, and faults that turn each."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsub.errors import ArgumentError, DataError, PlanError
from dpsub.papers.importance.artefacts.claims import NUMBERS
from dpsub.papers.importance.artefacts.statements import STATEMENTS, always_worst
from dpsub.papers.importance.takeaways import TAKEAWAYS
from dpsub.reproduce import published
from dpsub.reproduce.artefact import all_values
from dpsub.reproduce.artefacts import REGISTRY, OutputDirs, build, printed_rows
from dpsub.reproduce.experiments import REGISTRY as EXPERIMENTS
from dpsub.reproduce.report.takeaways import Tables, read_cells
from dpsub.reproduce.verdicts import compare
from tests.experiment_runs import CONFIG, settings_of
from tests.unit.rows import with_rows

Frames = dict[str, pd.DataFrame]
SETS = {"data": [], "twins": ["song", "ijcnn1"], "twin_rows": 1000}
CELLS = {
    **settings_of("importance_noise")["cells"],
    "epsilons": [0.5, 1, 3, 10, 30, 50, 100, 300, 1000],
    "sizes": {**settings_of("importance_noise")["cells"]["sizes"],
              "song": {"rows": [50000], "curve": [50000]},
              "ijcnn1": {"rows": [5000, 10000, 15000], "curve": [3000, 5000]}},
}  # fmt: skip
CHANGES: dict[str, dict[str, Any]] = {
    "importance_data": {"sets": SETS},
    "importance_sums": {"points": 3, "runs": 50, "rules": ["free", "b1"]},
    "importance_noise": {"sets": SETS, "cells": CELLS},
    "importance_clustering": {"sets": SETS, "cells": CELLS, "replicates": 3},
    "importance_losses": {"sets": SETS, "sizes": {"song": 5000, "ijcnn1": 5000}},
    "importance_profiles": {"points": 9, "exponents": [0, 1]},
    "importance_gain": {"sizes": {"ijcnn1": 5000}, "epsilons": [3], "dimensions": [10]},
    "importance_audit": {"noise_draws": 20000, "centre_draws": 8000},
    "importance_coreset": {"sets": SETS, "sizes": [60], "replicates": 2, "centre_sets": 2},
    "importance_times": {"sets": SETS, "sizes": {"song": [20000, 50000], "ijcnn1": [5000]}, "loop": {}, "turns": 1},
}


def run(name: str, records: Frames, replicates: range | None = None, **changes: Any) -> pd.DataFrame:
    settings = settings_of(name, **{**copy.deepcopy(CHANGES[name]), **changes})
    experiment = EXPERIMENTS.get(name)(records)
    chosen = replicates or range(experiment.replicates(experiment.settings(settings)))
    return pd.concat([
        experiment.compute(settings, variant=variant, replicates=chosen, seed=CONFIG["seed"], data={})
        .assign(variant=variant, data="") for variant in settings["variants"]
    ], ignore_index=True)  # fmt: skip


@pytest.fixture(scope="module")
def records() -> Frames:
    found: Frames = {}
    for name in CHANGES:
        found[name] = run(name, found)
    return found


@pytest.fixture(scope="module")
def good(records: Frames) -> Frames:
    return as_real(records)


def as_real(records: Frames) -> Frames:
    """Records as if each data set were the paper's, songs standing for all others, so that claims on data are put."""
    cost = records["importance_clustering"]
    others = [cost[cost["dataset"] == "song"].assign(dataset=name)
              for name in ("kdd_protein", "rna", "covertype", "pose", "miniboone", "fma")]  # fmt: skip
    frame = pd.concat([cost, *others], ignore_index=True).assign(data_label="real")
    # samplers in the order that the paper states, on all seeds
    rank = frame["sampler"].map({"unif": 1.0, "core": 0.99, "opt": 0.98, "full": 0.9})
    gap = np.where(frame["m_paper"] == 15000, 0.5, 1.0)
    frame["cost"] = frame["mean_square"] * (1 - (1 - rank) * gap) * 0.9
    return {**records, "importance_clustering": frame}


def verdicts(records: Frames) -> pd.DataFrame:
    values = REGISTRY.get("importance/claims")().values(records)
    found = compare(published.load("importance", "claims"), values, ("claim",))
    return found[found["variant"] == "stated"].set_index(["row", "column"])


def test_every_printed_number_has_a_verdict_or_a_reason(records: Frames) -> None:
    found = verdicts(records)
    assert len(found) == 37 and (found["verdict"] != "").all() and (found["note"] != "").all()
    assert set(found.index[found["verdict"] == "fails"]) == {("c01", "holds"), ("c12", "holds")}
    lacking = found[found["verdict"] == "not_compared"]
    assert {row for row, _ in lacking.index} == {"c08", "c20", "c29", "c30", "c31", "c32", "c33", "c34"}
    assert lacking["note"].str.contains("not the real data|this run uses").all()


def test_claims_on_data_are_put_to_the_papers_data_only(good: Frames) -> None:
    found = verdicts(good)
    rows = [("c29", "holds"), ("c30", "holds"), ("c31", "holds"), ("c32", "holds"), ("c33", "holds"), ("c34", "holds")]
    assert set(found.loc[rows, "verdict"]) == {"holds"}


def scaled(name: str, column: str, factor: float, **where: Any) -> Callable[[Frames], Frames]:
    def apply(records: Frames) -> Frames:
        frame = records[name].copy()
        chosen = pd.Series(True, index=frame.index)
        for field, value in where.items():
            chosen &= frame[field] == value
        assert chosen.any()
        frame[column] = frame[column].astype(float).where(~chosen, frame[column] * factor)
        return {**records, name: frame}

    return apply


def repeated(frame: pd.DataFrame) -> pd.DataFrame:
    """Four times as many repeats, so that a sign test can tell."""
    return pd.concat([frame.assign(replicate=frame["replicate"] + 3 * i) for i in range(4)], ignore_index=True)


COSTS, SUMS, NOISE = "importance_clustering", "importance_sums", "importance_noise"
FAULTS: dict[str, Callable[[Frames], Frames]] = {
    "c10": scaled(SUMS, "weight", 2.0, sampler="opt"),
    "c11": scaled(SUMS, "max_loss", 3.0, sampler="opt"),
    "c29": scaled(COSTS, "cost", 0.5, dataset="rna", sampler="unif"),
    "c30": lambda records: scaled(COSTS, "cost", 2.0, sampler="opt")({**records, COSTS: repeated(records[COSTS])}),
    "c31": scaled(COSTS, "cost", 3.0, epsilon=0.5),
    "c32": scaled(COSTS, "cost", 3.0, m_paper=15000.0, sampler="unif"),
    "c33": scaled(COSTS, "cost", 0.5, m_paper=10000.0, sampler="unif"),
    "c34": scaled(COSTS, "cost", 0.5, dataset="fma", sampler="unif"),
    "c36": scaled("importance_profiles", "psi", 1.001),
}  # fmt: skip


@pytest.mark.parametrize("row", sorted(FAULTS))
def test_a_planted_fault_turns_a_claim(good: Frames, row: str) -> None:
    statement = next(one for one in STATEMENTS if one.row == row)
    for frames, value in ((good, 1.0), (FAULTS[row](good), 0.0)):
        answers = {answer["variant"]: answer["value"] for answer in statement.answers(frames)}
        assert answers["stated"] == value


def test_a_missing_epsilon_is_told_and_failing_claims_could_hold(records: Frames) -> None:
    frame = records[COSTS]
    short = {**records, COSTS: frame[frame["epsilon"] != 30.0]}
    assert "no epsilon 30" in verdicts(short).loc[("c17", "holds"), "note"]
    profiles = records["importance_profiles"]
    exact = {**records, "importance_profiles": profiles.assign(other=profiles["psi"]),
             NOISE: records[NOISE].assign(m_max=0.0)}  # fmt: skip
    assert set(verdicts(exact).loc[[("c01", "holds"), ("c12", "holds")], "verdict"]) == {"holds"}


def test_statements_and_numbers_cover_the_published_claims() -> None:
    kinds = published.load("importance", "claims").set_index("claim")["kind"]
    asked = {statement.row for statement in STATEMENTS} | {row for row, _ in NUMBERS}
    assert set(kinds.index) - asked == {"c19", "c24", "c25", "c27", "c28", "c35"}
    assert {statement.row for statement in STATEMENTS} == set(kinds.index[kinds == "claim"])
    assert set(FAULTS) | {"c01", "c12", "c17"} == {statement.row for statement in STATEMENTS}


def test_a_statement_on_data_needs_all_of_them(records: Frames) -> None:
    with pytest.raises(Exception, match="RNA is missing"):
        always_worst(("rna",))({COSTS: records[COSTS]})


@pytest.mark.parametrize("name", [name for name in REGISTRY.names() if name.startswith("importance/")])
def test_artefacts_are_built_twice_alike(records: Frames, name: str, tmp_path: Path) -> None:
    artefact = REGISTRY.get(name)()
    places = ("one", "two") if artefact.kind != "figure" or name.endswith("figure3") else ("one",)
    files = []
    for place in places:
        made = build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path / place))
        files.append({role: path.read_bytes() for role, path in made.items()})
    assert files[0] == files[-1] and all(files[0].values())
    if name in ("importance/costs", "importance/coreset", "importance/group_losses"):
        assert b"synthetic" in files[0]["md"]


def test_the_tables_of_times_reproduce_the_shares_drawn(records: Frames) -> None:
    artefact = REGISTRY.get("importance/table2")()
    found = compare(printed_rows(artefact), all_values(artefact, records).assign(note=""), artefact.keys)
    exact = found[(found["kind"] == "exact") & found["row"].str.contains("Song") & found["value"].notna()]
    assert len(exact) >= 6 and set(exact["verdict"]) == {"reproduced"}
    assert set(found.loc[found["kind"] == "timing", "verdict"]) == {"reported"}


def test_published_times_add_up() -> None:
    for name in ("table2", "table3"):
        printed = with_rows(published.load("importance", name))
        cells = printed.pivot(index="row", columns="column", values="printed").astype(float)
        parts = cells[["t_weights", "t_sampling", "t_dp_lloyd"]].sum(axis=1)
        assert (abs(parts - cells["t_total"]) <= 0.0101).all()
        offset = (cells["rel_total_time"] - cells["m_over_n_percent"]).drop(cells.index[cells["t_weights"].isna()])
        assert 0.9 < offset.max() < 0.94 or name == "table3"


def test_table_1_judges_the_papers_data_only(records: Frames) -> None:
    artefact = REGISTRY.get("importance/table1")()
    frame = records["importance_data"]
    paper = pd.DataFrame([{"replicate": 0, "dataset": "ijcnn1", "data_label": "real", "n_original": 49990, "n": 48740,
                           "d": 22, "radius": 1.5113, "mean_square": 1.264, "percentile": 97.5, "variant": "stated",
                           "data": "real"}])  # fmt: skip
    both = pd.concat([frame[frame["dataset"] != "ijcnn1"], paper], ignore_index=True)
    for radius, verdict in ((1.5113, "within_error"), (1.516, "differs")):
        both.loc[both["dataset"] == "ijcnn1", "radius"] = radius
        found = compare(printed_rows(artefact), artefact.values({"importance_data": both}), artefact.keys)
        by_row = found.set_index(["row", "column"])
        assert by_row.loc[("dataset=Ijcnn1", "radius"), "verdict"] == verdict
        assert by_row.loc[("dataset=Song", "radius"), "verdict"] == "not_compared"
        assert by_row.loc[("dataset=RNA", "radius"), "note"].startswith("no value in this run")


def test_repeats_do_not_depend_on_their_block(records: Frames) -> None:
    changes = {"variants": ["stated"], "sets": {**SETS, "twins": ["song"]}}
    frame = run(COSTS, records, range(1, 2), **changes)
    whole = records[COSTS]
    same = whole[(whole["variant"] == "stated") & (whole["dataset"] == "song") & (whole["replicate"] == 1)]
    assert frame["cost"].to_numpy() == pytest.approx(same["cost"].to_numpy(), nan_ok=True, rel=0, abs=0)
    other = whole[(whole["variant"] == "stated") & (whole["dataset"] == "song") & (whole["replicate"] == 2)]
    assert abs(other["cost"].mean() - frame["cost"].mean()) > 0


def test_noise_of_twins_is_that_of_table_1(records: Frames) -> None:
    frame = records[NOISE]
    key = ["variant", "dataset", "sampler", "m_paper", "epsilon"]
    pairs = frame[frame["data_label"] == "table1"].merge(frame[frame["data_label"] == "synthetic"], on=key)
    finite = pairs[np.isfinite(pairs["epsilon"]) & (pairs["sampler"] != "full") & (pairs["dataset"] == "song")]
    assert len(finite) > 20
    assert finite["beta_sum_x"].to_numpy() == pytest.approx(finite["beta_sum_y"].to_numpy(), rel=1e-4)


def test_optimal_sampling_needs_the_least_noise(records: Frames) -> None:
    frame = records[NOISE][(records[NOISE]["variant"] == "stated") & (records[NOISE]["data_label"] == "synthetic")]
    wide = frame.pivot_table(index=["dataset", "m_paper", "epsilon"], columns="sampler", values="beta_sum")
    both = wide.dropna(subset=["opt"])
    both = both[both["opt"] > 0]
    assert len(both) > 10 and (both["opt"] <= both[["core", "unif"]].min(axis=1) * (1 + 1e-9)).all()
    infeasible = frame[(frame["sampler"] == "opt") & frame["s"].isna()]
    assert (infeasible["m_max"] < infeasible["m"]).all()


def test_the_report_has_a_sentence_from_each_table(records: Frames, tmp_path: Path) -> None:
    cells = {}
    for name in ("claims", "audit", "noise_scales", "costs", "gain"):
        artefact = REGISTRY.get(f"importance/{name}")()
        cells[name] = read_cells(build(artefact, records, printed_rows(artefact), OutputDirs.under(tmp_path))["csv"])
    text = " ".join(TAKEAWAYS.sentences(Tables(cells)))
    for words in ("2 fail as printed", "Canaries", "released code (", "times the noise of core-set", "Delta."):
        assert words in text
    assert TAKEAWAYS.sentences(Tables({})) == []


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("importance_data", {"sets": {"data": ["song"], "twins": ["song"], "twin_rows": 1000}}, "never both"),
        ("importance_data", {"sets": {"data": [], "twins": [], "twin_rows": 1000}}, "at least one data set"),
        ("importance_data", {"sets": {"data": ["songs"], "twins": [], "twin_rows": 1000}}, "did you mean 'song'"),
        ("importance_data", {"sets": {"data": [], "twins": ["song"], "twin_rows": 5}}, "twin_rows must be at least"),
        ("importance_noise", {"mixing": 0.0}, "mixing must be above 0"),
        ("importance_noise", {"iterations": 0}, "iterations must be at least 1"),
        ("importance_noise", {"cells": {**CELLS, "epsilons": [0.0]}}, "epsilon must be above 0"),
        ("importance_noise", {"cells": {**CELLS, "sizes": {"pose": {"rows": [10**6], "curve": []}}}}, "n of pose"),
        ("importance_clustering", {"clusters": 0}, "clusters must be at least 1"),
        ("importance_sums", {"rules": ["none"]}, "rule"),
        ("importance_gain", {"delta": 1.0}, "delta must be below 1"),
        ("importance_coreset", {"sizes": [10]}, "m must be at least 50"),
        ("importance_times", {"sizes": {"fma": [10**7]}}, "n of fma"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_a_sentence(name: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises((ArgumentError, PlanError), match=words):
        EXPERIMENTS.get(name).settings(settings_of(name, **changes))


def test_noise_of_other_settings_is_refused(records: Frames) -> None:
    noise = records[NOISE]
    with pytest.raises(DataError, match="run importance_noise"):
        run(COSTS, {NOISE: noise[noise["epsilon"] != 10.0]}, range(1), variants=["stated"])
    assert math.isnan(noise.loc[noise["psi"].isna(), "s"].max())
