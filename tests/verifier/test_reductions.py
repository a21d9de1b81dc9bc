"""Certificates of releases that amount to others are those of the others."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from certificate import NOT_COVERED, REFUTED, VERIFIED

import dpsub
from tests.verifier.proving import only_release, proved_again

POISSON = dpsub.Poisson(0.02)


def test_a_certificate_is_one_of_the_release_to_which_it_amounts(tmp_path: Path) -> None:
    answer = dpsub.account(
        POISSON, noise_multiplier=4.0, steps=40, releases_per_sample=4, delta=1e-5
    )
    certificate = answer.certificate()
    (release,) = certificate["question"]["releases"]
    assert (release["noise_multiplier"], release["steps"]) == (2.0, 10)
    lines, status = proved_again(certificate, tmp_path)
    assert status == VERIFIED, lines


def test_a_certificate_of_correlated_noise_is_one_of_its_kinds(tmp_path: Path) -> None:
    # one group of two has the longer columns in both turns, of different norms
    strategy = dpsub.BandedStrategy(2, (1.5, 1.0, 1.2, 1.2))
    answer = dpsub.account(
        dpsub.CyclicPoisson(0.1, 2), noise_multiplier=1.5, strategy=strategy, delta=1e-5
    )
    certificate = answer.certificate()
    releases = certificate["question"]["releases"]
    assert sorted(release["noise_multiplier"] for release in releases) == [1.0, 1.25]
    lines, status = proved_again(certificate, tmp_path)
    assert status == VERIFIED, lines


def one_order(**asked: Any) -> dict[str, Any]:
    """Return the certificate of four epochs in one order, of five steps each."""
    answer = dpsub.account(
        dpsub.PersistentShuffle(4, drop_last=asked.pop("drop_last", False)),
        asked.pop("n", 20),
        **{"noise_multiplier": 3.0, "epochs": 4, "delta": 1e-3} | asked,
    )
    found: dict[str, Any] = json.loads(json.dumps(answer.certificate(), allow_nan=False))
    return found


@pytest.mark.parametrize("adjacency", ["substitute", "zero_out"])
def test_one_order_of_all_epochs_is_verified_from_both_sides(
    adjacency: str, tmp_path: Path
) -> None:
    certificate = one_order(adjacency=adjacency)
    assert only_release(certificate)["sampler"] == {"name": "persistent_shuffle", "m": 4}
    assert certificate["claim"]["lower"] and certificate["claim"]["upper"]
    lines, status = proved_again(certificate, tmp_path)
    assert status == VERIFIED, lines
    assert "Theorem 89" in "".join(lines)


def test_epochs_that_are_not_counted_are_refuted(tmp_path: Path) -> None:
    honest = one_order(adjacency="substitute")
    for end, steps in (("upper", 25), ("lower", 15)):
        # an epoch more tells more than is claimed, and one less does not tell as much
        data = copy.deepcopy(honest)
        other = {"upper": "lower", "lower": "upper"}[end]
        data["claim"][other] = data[other] = None
        assert proved_again(data, tmp_path)[1] == VERIFIED
        only_release(data)["steps"] = steps
        lines, status = proved_again(data, tmp_path)
        assert status == REFUTED, lines


def test_one_order_is_not_hidden_among_the_steps_of_others(tmp_path: Path) -> None:
    shuffled = dpsub.account(
        dpsub.Shuffle(10), 1000, noise_multiplier=4.0, delta=1e-5, adjacency="zero_out"
    )
    data = json.loads(json.dumps(shuffled.certificate(), allow_nan=False))
    data["claim"]["lower"] = data["lower"] = None
    assert {part["theorem"] for part in data["upper"]["forward"]} == {"61"}
    assert proved_again(data, tmp_path)[1] == VERIFIED
    # four epochs in one order with twice the noise amount to it where vectors are fixed alone
    release = only_release(data)
    release["sampler"]["name"] = "persistent_shuffle"
    release["noise_multiplier"], release["steps"] = 8.0, 4 * release["steps"]
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED, lines


def test_an_attack_on_one_order_that_drops_records_is_not_claimed(tmp_path: Path) -> None:
    data = one_order(adjacency="zero_out", n=22, drop_last=True)
    assert data["lower"] is None
    assert proved_again(data, tmp_path)[1] == VERIFIED
    attacked = one_order(adjacency="zero_out")
    attacked["claim"]["upper"] = attacked["upper"] = None
    only_release(attacked)["sampler"]["drop_last"], only_release(attacked)["n"] = True, 22
    assert proved_again(attacked, tmp_path)[1] == NOT_COVERED


def test_means_with_little_noise_are_not_covered(tmp_path: Path) -> None:
    data = one_order(adjacency="zero_out")
    only_release(data)["noise_multiplier"] = 0.09
    lines, status = proved_again(data, tmp_path)
    assert status == NOT_COVERED and "means of 4 epochs" in lines[-1], lines
    only_release(data)["mechanism"] = "laplace"
    assert proved_again(data, tmp_path)[1] == NOT_COVERED


def test_samples_that_are_revealed_are_certified_from_above(tmp_path: Path) -> None:
    answer = dpsub.account(
        dpsub.Shuffle(10),
        100,
        noise_multiplier=6.0,
        epochs=3,
        releases_per_sample=4,
        delta=1e-5,
        adjacency="substitute",
    )
    certificate = json.loads(json.dumps(answer.certificate(), allow_nan=False))
    assert only_release(certificate)["one_sided"] and certificate["lower"] is None
    lines, status = proved_again(certificate, tmp_path)
    assert status == VERIFIED, lines
    only_release(certificate)["steps"] += 1
    assert proved_again(certificate, tmp_path)[1] == REFUTED
