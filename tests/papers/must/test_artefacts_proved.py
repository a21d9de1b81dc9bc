"""Artefacts of proved privacy: attack, proof and the papers' pair beside the printed numbers."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from dpsub.reproduce import artefacts
from dpsub.reproduce.artefact import Artefact, Records, all_values
from dpsub.reproduce.artefacts import printed_rows
from dpsub.reproduce.verdicts import compare
from tests.unit import made_up_records
from tests.unit.rows import with_rows


@pytest.fixture(scope="module")
def records() -> dict[str, pd.DataFrame]:
    return made_up_records.everything()


def made(name: str) -> Artefact:
    return artefacts.REGISTRY.get(name)()


def test_table8_has_attack_proof_and_pair_in_the_rigorous_rows(records: Records) -> None:
    values = made("must/table8").values(records)
    found = with_rows(values[values["variant"] == "rigorous"]).set_index(["row", "column"])
    wor = found.loc["sampler=wor"]
    assert wor["value"]["delta_c_lower"] == pytest.approx(0.02)
    assert wor["value"]["delta_c_upper"] == pytest.approx(0.04)
    assert wor["lower"]["delta_c_pair"] < wor["value"]["delta_c_pair"] < wor["upper"]["delta_c_pair"]
    assert wor["note"]["delta_c_lower"].startswith("attack (lower), substitute")
    assert wor["note"]["delta_c_upper"].startswith("proved (upper), substitute")
    assert "no guarantee" in wor["note"]["delta_c_pair"]
    printed_scale = ("sampler=wor; statistic=delta_at_the_printed_scale", "delta_c_lower")
    assert found.loc[printed_scale, "value"] == pytest.approx(1e-5)
    assert ("sampler=wor; statistic=epsilon_of_the_consistent_noise", "epsilon_c_upper") in found.index


def test_nothing_is_proved_for_poisson_as_it_was_run(records: Records) -> None:
    values = with_rows(made("must/table8").values(records)).set_index(["row", "column", "variant"])
    upper = values.loc[("sampler=poisson", "delta_c_upper", "rigorous")]
    assert upper["value"] == 1
    assert upper["note"].startswith("nothing is proved, add_remove")
    assert values.loc[("sampler=poisson", "delta_c_lower", "rigorous"), "value"] == 0.3
    fixed = "sampler=poisson; statistic=delta_with_a_fixed_denominator"
    assert values.loc[(fixed, "delta_c_upper", "rigorous"), "value"] == pytest.approx(0.02)


def test_rigorous_rows_of_table8_are_shown_and_not_judged(records: Records) -> None:
    artefact = made("must/table8")
    shown = compare(printed_rows(artefact), all_values(artefact, records), artefact.keys, artefact.labels(records))
    rigorous = shown[(shown["variant"] == "rigorous") & shown["column"].str.startswith("delta_c")]
    assert len(rigorous) == 10
    assert set(rigorous["verdict"]) == {"shown"}


def test_figure_s2_values_hold_all_methods(records: Records) -> None:
    values = made("must/figureS2").values(records)
    methods = set(values["method"])
    assert methods == {"printed", "as_done", "cell_mass", "paper_pair", "attack_and_proof"}
    row = values.query("sampler == 'must_ow' and method == 'attack_and_proof' and n_compositions == '400'")
    assert list(row["value"]) == pytest.approx([0.02, 0.04])


def test_noise_is_set_against_that_of_wor(records: Records) -> None:
    values = with_rows(made("must/noise_at_equal_privacy").values(records)).set_index(["row", "column"])["value"]
    row = "target_epsilon=4; sampler=must_ow; adjacency=substitute"
    assert values[row, "noise_proved"] == pytest.approx(3)
    assert values[row, "noise_refuted"] == pytest.approx(2.9)
    assert values[row, "noise_over_wor"] == pytest.approx(6 / 4)
    assert ("target_epsilon=4; sampler=poisson; adjacency=substitute", "noise_pair") not in values.index


def test_peers_are_shown_with_their_widths_and_what_lies_below_an_attack(records: Records) -> None:
    values = with_rows(made("must/peer_bounds").values(records)).set_index(["row", "column"])
    poisson = "sampler=poisson; adjacency=add_remove; n=10000; m=100; noise_multiplier=1; n_compositions=1000; tool="
    assert values.loc[(f"{poisson}peer", "width"), "value"] == pytest.approx(0.03)
    absent = values.loc[(f"{poisson}absent", "upper")]
    assert math.isnan(absent["value"])
    assert absent["note"].startswith("absent is not installed")
    below = values[values["note"].str.endswith("below what an attack attains")]
    assert [row.rpartition("tool=")[2] for row, _ in below.index] == ["peer"]
    times = with_rows(made("must/peer_times").values(records)).set_index(["row", "column"])["value"]
    assert times[f"{poisson}peer", "times_ours"] == pytest.approx(10)
    assert (f"{poisson}absent", "seconds") not in times.index
