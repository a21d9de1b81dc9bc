"""The paper's experiments at small size, its claims with planted counter-examples, its tables and figures."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsub.errors import ArgumentError
from dpsub.reproduce import published
from dpsub.reproduce.artefacts import REGISTRY, OutputDirs, build
from dpsub.reproduce.experiments import REGISTRY as EXPERIMENTS
from dpsub.reproduce.verdicts import compare
from tests import experiment_runs
from tests.unit.rows import with_rows

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "src/dpsub/papers"
CONFIG = experiment_runs.CONFIG["experiments"]
NAMES = sorted(name for name in CONFIG if name.startswith("balle_"))
SMALL: dict[str, dict[str, Any]] = {
    "balle_profiles": {"examples": 4, "ratios": [1], "moments": [1]},
    "balle_couplings": {"examples": 8, "n": [2, 4], "m": [1, 2]},
    "balle_enumeration": {"n": [4], "m": [2, 3], "rates": [0.3], "kernels": 1},
    "balle_curves": {"epsilon_step": 0.05},
    "balle_optimum": {"epsilon0": [1]},
    "balle_noise": {"points": 13},
}
FAILING = {"B004", "B011", "B026", "B028", "B029", "B033"}
Frames = dict[str, pd.DataFrame]


def records_of(name: str, variant: str) -> pd.DataFrame:
    settings = {**copy.deepcopy(CONFIG[name]), **SMALL.get(name, {})}
    experiment = EXPERIMENTS.get(name)()
    frame = experiment.run(settings=settings, variant=variant, replicates=range(1), root=1, data={})
    assert list(frame.columns) == list(experiment.columns)
    assert len(frame)
    assert not frame.isna().to_numpy().any()
    return frame.assign(variant=variant, data="")


@pytest.fixture(scope="module")
def records() -> Frames:
    return {
        name: pd.concat([records_of(name, variant) for variant in CONFIG[name]["variants"]], ignore_index=True)
        for name in NAMES
    }


def verdicts(records: Frames) -> pd.DataFrame:
    values = REGISTRY.get("balle/claims")().values(records)
    return compare(published.load("balle", "claims", FOLDER), values, ("claim",))


def test_every_claim_has_a_verdict_and_each_that_fails_an_erratum(records: Frames) -> None:
    frame = verdicts(records)
    stated = frame[frame["variant"] == "stated"].set_index("row")
    assert len(stated) == 42
    assert set(stated.index[stated["verdict"] == "fails"]) == FAILING
    assert (stated.loc[sorted(FAILING), "erratum"] != "").all()
    assert set(stated["verdict"]) == {"holds", "fails", "reproduced", "structure_only"}
    assert (stated.loc[stated["verdict"] == "structure_only", "value"] == 1).all()
    consistent = frame[frame["variant"] == "consistent"].set_index("row")["value"]
    assert (consistent.drop("B006") == 1).all()
    assert consistent["B006"] == 0


def changed(records: Frames, name: str, column: str, change: Any, **where: object) -> Frames:
    frame = records[name].copy()
    chosen = np.logical_and.reduce([(frame[key] == value).to_numpy() for key, value in where.items()])
    assert chosen.any()
    frame.loc[chosen, column] = change(frame.loc[chosen, column])
    return {**records, name: frame}


def scaled(factor: float) -> Any:
    return lambda values: values * factor


def shifted(step: float) -> Any:
    return lambda values: values + step


CHECKS = {
    "B001": ("balle_couplings", "events"), "B003": ("balle_couplings", "joint_convexity"),
    "B005": ("balle_profiles", "laplace_profile"), "B008": ("balle_profiles", "gaussian_profile"),
    "B009": ("balle_profiles", "losses"), "B010": ("balle_profiles", "moment_outside"),
    "B013": ("balle_profiles", "white_box"), "B014": ("balle_couplings", "transport"),
    "B023": ("balle_profiles", "map"), "B025": ("balle_profiles", "wr_rate"),
    "B027": ("balle_profiles", "response_guarantee"), "B034": ("balle_couplings", "compatible_coupling"),
    "B040": ("balle_profiles", "small_rate"), "B041": ("balle_profiles", "wor_full"),
    "B002": ("balle_couplings", "monotone"), "B007": ("balle_profiles", "gaussian_classical"),
    "B012": ("balle_profiles", "black_box"),
}  # fmt: skip


@pytest.mark.parametrize("row", sorted(CHECKS))
def test_a_planted_difference_fails_an_identity(records: Frames, row: str) -> None:
    name, check = CHECKS[row]
    faulty = changed(records, name, "computed", shifted(10.0), check=check)
    frame = verdicts(faulty).set_index(["row", "variant"])["verdict"]
    assert frame[row, "stated"] == "fails"


@pytest.mark.parametrize(
    ("rows", "theorem", "column", "change"),
    [
        (("B015",), "Theorem 8", "distance", shifted(1e-6)),
        (("B016", "B030"), "Theorem 8", "bound", scaled(0.99)),
        (("B017",), "Theorem 9", "eta", shifted(1e-6)),
        (("B018", "B031"), "Theorem 9", "bound", scaled(0.99)),
        (("B019",), "Theorem 10", "formula", shifted(1e-6)),
        (("B020", "B032"), "Theorem 10", "bound", scaled(0.99)),
        (("B021",), "Theorem 11", "distance", shifted(1e-6)),
        (("B022",), "Theorem 11", "bound", scaled(0.99)),
        (("B024",), "Theorem 14", "bound", scaled(0.9)),
        (("B042",), "Theorem 8", "reverse_bound", scaled(0.9)),
    ],
)
def test_a_planted_fault_refutes_a_bound(
    records: Frames, rows: tuple[str, ...], theorem: str, column: str, change: Any
) -> None:
    faulty = changed(records, "balle_enumeration", column, change, theorem=theorem)
    frame = verdicts(faulty).set_index(["row", "variant"])["verdict"]
    assert {frame[row, "stated"] for row in rows} == {"fails"}


@pytest.mark.parametrize("row", sorted(FAILING))
def test_a_failing_claim_holds_with_the_corrected_numbers(records: Frames, row: str) -> None:
    corrected = {
        name: pd.concat([frame.query("variant == 'consistent'").assign(variant="stated"),
                         frame.query("variant != 'stated'")])
        for name, frame in records.items()
    }  # fmt: skip
    corrected = {name: corrected[name] if len(corrected[name]) else records[name] for name in records}
    assert verdicts(corrected).set_index(["row", "variant"]).loc[(row, "stated"), "verdict"] == "holds"


def test_every_claim_is_tried_with_a_planted_fault() -> None:
    bounds = {"B015", "B016", "B017", "B018", "B019", "B020", "B021", "B022", "B024", "B030", "B031", "B032", "B042"}
    panels = {"B035", "B036", "B037", "B038", "B039"}
    rows = set(published.load("balle", "claims", FOLDER)["claim"])
    assert rows == set(CHECKS) | bounds | panels | FAILING | {"B006"}


def test_the_largest_delta_from_theta_on_follows_the_records(records: Frames) -> None:
    faulty = changed(records, "balle_profiles", "computed", shifted(0.1), check="laplace_zero")
    found = verdicts(faulty).set_index(["row", "variant"]).loc[("B006", "stated")]
    assert found["value"] == pytest.approx(0.1)
    assert found["verdict"] == "differs"


@pytest.mark.parametrize(
    ("panel", "curve", "change"),
    [("a", "laplace", scaled(1.001)), ("b", "wr", scaled(1.2)), ("c", "wor", shifted(1e-6)),
     ("d", "wr_no_group", scaled(1.2)), ("e", "wr_black_box", scaled(0.9))],
)  # fmt: skip
def test_a_planted_fault_breaks_the_property_of_a_panel(records: Frames, panel: str, curve: str, change: Any) -> None:
    figure = REGISTRY.get("balle/figure1")()
    right = figure.values(records)
    faulty = changed(records, "balle_curves", "delta", change, panel=panel, curve=curve)
    faulty["balle_curves"]["log_delta"] = np.log(faulty["balle_curves"]["delta"].clip(lower=1e-300))
    wrong = figure.values(faulty)
    assert (right["value"] == 1).all()
    assert wrong.loc[wrong["panel"] == panel, "value"].tolist() == [0]


def test_figures_and_tables_are_written_the_same_way_twice(records: Frames, tmp_path: Path) -> None:
    nothing = pd.DataFrame(columns=["paper", "artefact", *published.FIELDS])
    for name in ("figure1", "noise_efficiency", "table1", "optimum"):
        artefact = REGISTRY.get(f"balle/{name}")()
        first, second = (build(artefact, records, nothing, OutputDirs.under(tmp_path / run)) for run in ("a", "b"))
        assert {role: path.read_bytes() for role, path in first.items()} == {
            role: path.read_bytes() for role, path in second.items()
        }
    assert "parameters chosen" in REGISTRY.get("balle/figure1").caption


def test_table1_says_what_is_attained(records: Frames) -> None:
    values = with_rows(REGISTRY.get("balle/table1")().values(records)).set_index(["row", "column"])["value"]
    share = values.xs("attained_at_positive_epsilon", level="column")
    full = {row.split(";")[0].removeprefix("theorem=") for row, value in share.items() if value > 1 - 1e-9}
    assert full == {"Theorem 8", "Theorem 9", "Theorem 10", "Theorem 11", "Theorem 2 on triples",
                    "Theorem 2 given the size"}  # fmt: skip
    assert 0.9 < min(share) < 1


def test_the_optimum_shows_where_theorem_14_is_not_tight(records: Frames) -> None:
    frame = records["balle_optimum"]
    assert (frame["optimum"] <= frame["bound"] + 1e-9).all()
    ratio = (frame["optimum"] / frame["bound"].where(frame["bound"] > 1e-12)).groupby(frame["theorem"]).min()
    assert ratio["Theorem 14"] < 0.97
    for theorem in ("Theorem 8", "Theorem 9", "Theorem 2 given the size", "Theorem 2 on triples"):
        assert ratio[theorem] == pytest.approx(1, abs=1e-6)


def test_efficiency_of_noise(records: Frames) -> None:
    found = EXPERIMENTS.get("balle_noise")().run(
        settings={"n": 10, "epsilons": [1], "smallest_rate": 0.01, "points": 2}, variant="rigorous",
        replicates=range(1), root=1, data={},
    )  # fmt: skip
    assert found["efficiency"].tolist() == pytest.approx([0.0515, 1], abs=5e-5)
    assert found["sampling_error"].tolist()[1] == 0
    values = REGISTRY.get("balle/noise_efficiency")().values(records)
    assert (values.loc[values["column"] == "efficiency_rises_to_1", "value"] == 1).all()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("balle_profiles", {"keep_probabilities": [1.5]}, "keep_probability must be at most 1"),
        ("balle_couplings", {"n": [5]}, "n must be at most 4"),
        ("balle_enumeration", {"rates": [1.0]}, "rates must be below 1"),
        ("balle_bounds", {"n": [7]}, "must be a whole number"),
        ("balle_curves", {"m": 2000}, "m must be at most n = 1000"),
        ("balle_optimum", {"delta0": [2]}, "delta0 must be at most 1"),
        ("balle_noise", {"smallest_rate": 0}, "smallest_rate must be above 0"),
    ],
)
def test_settings_that_are_refused(name: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        EXPERIMENTS.get(name).settings({**CONFIG[name], **change})
