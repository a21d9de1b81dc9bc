"""Honest certificates of questions drawn at random are verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from certificate import NOT_COVERED, VERIFIED

import dpsub
from dpsub.errors import ArgumentError, UnsupportedError
from tests.few import few
from tests.verifier.drawn import question
from tests.verifier.proving import proved_again

SOME = 25
TOO_LARGE = "not covered: too large: "


def check_honest(seeds: range, folder: Path) -> int:
    """Prove the answers of these questions again, and return how many there are."""
    proved = 0
    for seed in seeds:
        asked = question(seed)
        try:
            certificate = asked.answered().certificate()
        except (ArgumentError, UnsupportedError):
            continue  # no theorem, or no certificate
        lines, status = proved_again(certificate, folder)
        # docs/certificates.md lists what is too large
        is_listed = status == NOT_COVERED and lines[-1].startswith(TOO_LARGE)
        assert status == VERIFIED or is_listed, (seed, str(asked), lines)
        proved += status == VERIFIED
    return proved


@pytest.mark.parametrize("block", few(range(60), most=2, more=2))
def test_honest_certificates_are_verified(block: int, tmp_path: Path) -> None:
    assert check_honest(range(block * SOME, (block + 1) * SOME), tmp_path) > SOME / 3


@pytest.mark.parametrize(
    ("sampler", "n", "asked"),
    few(
        [
            # both data sets of the attack, fillers at 0 and -1: events of probability e^-60 count
            (dpsub.MustWO(5, 3), 7, {"noise_multiplier": 0.372, "steps": 1, "epsilon": 0.05}),
            (dpsub.MustWO(5, 4), 9, {"noise_multiplier": 0.454, "steps": 1, "epsilon": 1.0}),
            (dpsub.MustWO(4, 4), 7, {"noise_multiplier": 0.482, "steps": 3, "delta": 1e-8}),
        ]
    ),
    ids=str,
)
def test_deep_events_of_little_noise_are_verified(
    sampler: dpsub.MustWO, n: int, asked: dict[str, Any], tmp_path: Path
) -> None:
    answer = dpsub.account(sampler, n, **asked, adjacency="zero_out", quick=True)
    lines, status = proved_again(answer.certificate(), tmp_path)
    assert status == VERIFIED, lines
    assert "lower" in lines[-2]


@pytest.mark.parametrize(
    ("relation", "quick"),
    few(
        [("add_remove", True), ("substitute", False), ("substitute", True), ("zero_out", True)],
        most=2,
        more=1,
    ),
)
def test_weighted_draws_are_verified_at_their_weight_alone(
    relation: str, quick: bool, tmp_path: Path
) -> None:
    asked = {"noise_multiplier": 2.0, "steps": 2, "epsilon": 0.4, "width": 0.2, "quick": quick}
    answer = dpsub.account(dpsub.WeightedWr(3, 0.3), adjacency=relation, **asked)
    certificate = answer.certificate()
    lines, status = proved_again(certificate, tmp_path)
    assert status == VERIFIED, lines
    # of a heavier record more would be told, and of a lighter one less
    sampler = certificate["question"]["releases"][0]["sampler"]
    for weight, end in () if not quick else ((0.35, "lower"), (0.25, "upper")):
        sampler["largest_weight"] = weight
        other = dict(certificate, claim={**certificate["claim"], end: None}, **{end: None})
        lines, status = proved_again(other, tmp_path)
        assert status not in (VERIFIED, NOT_COVERED), lines
