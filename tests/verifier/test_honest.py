"""Honest certificates of questions drawn at random are verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from certificate import NOT_COVERED, VERIFIED

from dpsub.errors import ArgumentError, UnsupportedError
from tests.verifier.drawn import question
from tests.verifier.proving import proved_again

SOME = 25
TOO_LARGE = "not covered: too large: "


def check_honest(seeds: range, folder: Path) -> int:
    """Proves the answers of these questions again; how many there are."""
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


@pytest.mark.parametrize(
    "block",
    [0, 1, *[pytest.param(block, marks=pytest.mark.thorough) for block in range(2, 12)]]
    + [pytest.param(block, marks=pytest.mark.slow) for block in range(12, 60)],
)
def test_honest_certificates_are_verified(block: int, tmp_path: Path) -> None:
    assert check_honest(range(block * SOME, (block + 1) * SOME), tmp_path) > SOME / 3
