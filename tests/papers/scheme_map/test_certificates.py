"""Cells of the page of the map, asked for again: the account meets the target with the noise that
is proved, and the verifier proves its certificate."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import dpsub
from dpsub.errors import UnsupportedError
from dpsub.papers.scheme_map import numbers
from dpsub.papers.scheme_map.schemes import SCHEMES, TRAININGS
from dpsub.reproduce.papers import papers
from dpsub.reproduce.report.cells import LookUp
from dpsub.reproduce.report.cited import kept_of
from tests.few import few

ROOT = Path(__file__).resolve().parents[3]
NOT_COVERED = 3
"""Exit status of the verifier for what it does not cover."""


def known_cells() -> list[tuple[str, str, str, str]]:
    """Return the cells of the page that have numbers, some of the training of the picture first."""
    kept = kept_of(papers()["scheme_map"])
    if kept is None:
        return []
    cells = numbers.whole(LookUp(kept))
    cells = cells[cells["ratio"].notna()]
    keys = list(cells[list(numbers.KEYS)].itertuples(index=False, name=None))
    first = [
        ("cifar", "add_remove", "3", "wor"),
        ("cifar", "zero_out", "3", "random_allocation"),
        ("cifar", "zero_out", "8", "shuffle_drop_last"),
        ("cifar", "substitute", "8", "must_ow"),
    ]
    return [key for key in first if key in keys] + [key for key in keys if key not in first]


@pytest.mark.parametrize(
    ("training", "relation", "epsilon", "scheme"), few(known_cells(), most=1, more=0)
)
def test_certificates_of_cells_are_verified(
    training: str, relation: str, epsilon: str, scheme: str, tmp_path: Path
) -> None:
    cells = LookUp(kept_of(papers()["scheme_map"]) or {})
    place = {"training": training, "adjacency": relation, "epsilon": epsilon}
    poisson = cells.number("noise", "noise", "rigorous", **place, sampler="poisson")
    ratio = cells.number("noise", "over_poisson", "rigorous", **place, sampler=scheme)
    release = SCHEMES[scheme].releases(TRAININGS[training])
    release = replace(release, noise_multiplier=ratio * poisson * (1 + 1e-9))
    answer = dpsub.account(release, delta=TRAININGS[training].delta, adjacency=relation, effort=4.0)
    assert answer.upper <= float(epsilon) * 1.002
    try:
        certificate = answer.certificate()
    except UnsupportedError:
        return  # docs/certificates.md lists what has none
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certificate, allow_nan=False), encoding="utf-8")
    told = subprocess.run(
        [sys.executable, str(ROOT / "verifier"), str(path)], capture_output=True, text=True
    )
    is_too_large = told.returncode == NOT_COVERED and "too large" in told.stdout
    assert told.returncode == 0 or is_too_large, told.stdout
