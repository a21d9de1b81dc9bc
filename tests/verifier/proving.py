"""Functions that the tests of certificates share: a certificate as a file, and the verifier's
answer to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from certificate import verify

from dpsub.accounting.questions.account import Account


def proved_again(certificate: dict[str, Any], folder: Path) -> tuple[list[str], int]:
    """Return the lines that the verifier prints, and its exit status."""
    path = folder / "certificate.json"
    path.write_text(json.dumps(certificate, allow_nan=False), encoding="utf-8")
    lines, status = verify(str(path))
    return lines, status


def as_stated(sampler: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Return a question that names no relation under the one for which papers state the theorem of
    its sampler."""
    return {"adjacency": str(sampler.relation), **asked}


def upper_end_of(answer: Account, *, most: float = 1.05) -> dict[str, Any]:
    """Return a certificate of the answer's upper bound alone. Of Theorem 61 it holds fewer orders
    and cells than the answer, and claims a little more: at most as many times the bound."""
    found: dict[str, Any] = json.loads(json.dumps(answer.certificate(), allow_nan=False))
    assert answer.upper * (1 - 1e-8) <= found["claim"]["upper"] <= answer.upper * most
    found["claim"]["lower"], found["lower"] = None, None
    return found


def only_part(data: dict[str, Any]) -> dict[str, Any]:
    (part,) = data["upper"]["forward"]
    return part


def only_release(data: dict[str, Any]) -> dict[str, Any]:
    (release,) = data["question"]["releases"]
    return release
