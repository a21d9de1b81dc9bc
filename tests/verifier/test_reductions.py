"""Certificates of releases that amount to others are those of the others."""

from __future__ import annotations

from pathlib import Path

from certificate import VERIFIED

import dpsub
from tests.verifier.proving import proved_again

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
