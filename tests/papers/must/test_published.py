"""Numbers of this paper, transcribed as they are printed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dpsub.reproduce import published
from tests.unit.rows import with_rows
from tests.unit.test_verdicts import ours, verdict

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "src/dpsub/papers"


def one(artefact: str, row: str, column: str) -> dict[str, object]:
    frame = with_rows(published.load("must", artefact, FOLDER))
    (found,) = frame[(frame["row"] == row) & (frame["column"] == column)].to_dict("records")
    return {str(name): value for name, value in found.items()}


KINDS = {
    "table3": {"exact": 240},
    "table4": {"exact": 39},
    "table5": {"monte_carlo": 64},
    "table6": {"exact": 20, "monte_carlo": 22},
    "table7": {"monte_carlo": 66},
    "table8": {"exact": 15, "real_data": 36},
    "table9": {"extreme": 36, "monte_carlo": 18},
    "table10": {"timing": 18},
}


def test_tables_hold_574_numbers_and_the_text_51_more() -> None:
    found = {name: Counter(published.load("must", name, FOLDER)["kind"]) for name in KINDS}
    assert found == KINDS and sum(count.total() for count in found.values()) == 574
    statements = published.load("must", "claims", FOLDER)["column"] == "holds"
    assert ((~statements).sum(), statements.sum()) == (51, 45)
    assert published.artefacts("must", FOLDER) == ["claims", *KINDS]


@pytest.mark.parametrize(
    ("artefact", "row", "column", "printed", "erratum"),
    [
        (
            "table3",
            "ratio=0.25; mechanism=laplace; sampler=none; epsilon=0.05",
            "epsilon",
            "0.050",
            "",
        ),
        (
            "table3",
            "ratio=0.25; mechanism=laplace; sampler=wr; epsilon=4.5",
            "delta_amplified",
            "1.22e-26",
            "",
        ),
        (
            "table3",
            "ratio=0.25; mechanism=gaussian; sampler=wor; epsilon=3",
            "delta_amplified",
            "6.50e-35",
            "",
        ),
        (
            "table3",
            "ratio=1; mechanism=laplace; sampler=must_ow; epsilon=2",
            "delta_amplified",
            "0.010",
            "",
        ),
        (
            "table3",
            "ratio=1; mechanism=gaussian; sampler=must_ww; epsilon=1",
            "delta_amplified",
            "",
            "E9",
        ),
        ("table4", "sampler=wr", "delta_amplified", "5.73e-05", ""),
        ("table4", "sampler=must_ow; b=50", "sigma_mean", "0.11", ""),
        ("table4", "sampler=must_ww; b=100", "sigma_variance", "0.90", ""),
        ("table5", "parameter=mean; sampler=must_ww; b=10", "sd", "0.060", ""),
        ("table5", "parameter=variance; sampler=nonprivate", "mean", "0.990", ""),
        ("table6", "epsilon_amplified=0.01; sampler=poisson", "rmse_mean", "1.000", ""),
        ("table6", "sampler=nonprivate", "rmse_sd", "0.024", ""),
        ("table6", "epsilon_amplified=0.01; sampler=wr", "delta_amplified", "", "E3"),
        ("table6", "epsilon_amplified=0.001; sampler=must_ow", "rmse_mean", "", "E8"),
        ("table7", "epsilon_amplified=0.001; sampler=wr; coefficient=beta2", "bias", "-0.0200", ""),
        ("table7", "sampler=nonprivate; coefficient=beta1", "rmse", "0.034", ""),
        ("table8", "sampler=must_ow", "delta_c_upper", "8.49e-06", ""),
        ("table8", "sampler=wor", "delta_c_upper", "", "E2"),
        ("table8", "sampler=poisson", "npv", "0.970", ""),
        ("table8", "sampler=nonprivate", "accuracy", "", "E1"),
        ("table8", "sampler=must_ww", "accuracy", "", "E1 E6"),
        ("table9", "experiment=2; sampler=must_ow", "distinct_mean", "65", ""),
        ("table9", "experiment=2; sampler=must_ww", "distinct_min", "", "E7"),
        ("table10", "experiment=2; sampler=poisson", "time_increase_percent", "350.00", ""),
        ("claims", "fa_r_WR", "r", "2e+05", ""),
        ("claims", "sgd_k", "iterations_k", "", "E10"),
        ("claims", "s8_threshold_laplace_WR", "delta_threshold", "", "E11"),
        ("claims", "fig5_eta_m", "holds", "", "E12"),
        ("claims", "sec31_ow_distinct", "gradients_computed", "", "E14"),
    ],
)
def test_numbers_stand_as_printed_and_suspect_ones_name_their_erratum(
    artefact: str, row: str, column: str, printed: str, erratum: str
) -> None:
    found = one(artefact, row, column)
    assert printed in ("", found["printed"])
    if erratum:
        assert (found["status"], found["erratum"]) == ("suspect", erratum)


def test_suspect_cells_are_as_many_as_the_errata_say() -> None:
    frames = [published.load("must", name, FOLDER) for name in KINDS]
    suspects = Counter(
        erratum
        for frame in frames
        for erratum in frame.loc[frame["status"] == "suspect", "erratum"]
    )
    assert suspects == {"E1": 30, "E1 E6": 6, "E2": 10, "E3": 6, "E7": 4, "E8": 1, "E9": 6}


def test_means_carry_the_spread_behind_them() -> None:
    mean, deviation = (
        one("table5", "parameter=mean; sampler=wr", column) for column in ("mean", "sd")
    )
    assert (mean["replicates"], mean["spread"], deviation["replicates"]) == (200, 0.058, 200)
    assert str(deviation["spread"]) == "nan"


def test_a_clipped_zero_is_exact_up_to_the_resolution_of_the_method() -> None:
    clipped = (
        published.load("must", "table8", FOLDER)
        .query("column == 'delta_c_lower'")
        .iloc[0]
        .to_dict()
    )
    for value, expected in ((0.0, "reproduced"), (-3e-14, "reproduced"), (8.4e-8, "differs")):
        row = ours(value, sampler=clipped["sampler"], column="delta_c_lower")
        assert verdict({str(name): entry for name, entry in clipped.items()}, row) == expected
