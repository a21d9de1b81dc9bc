"""dpsub brdp: what it chooses, what it stands beside, and what it refuses in a sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpsub.cli import main
from dpsub.recycling import GaussianKernel, Recycled, RecycledProfile
from dpsub.recycling.paper import theorem3_epsilon

COMMON = ["--sensitivity", "1", "--bound", "1", "--epsilon", "1", "--delta", "1e-5"]


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["brdp", *words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    values: dict[str, Any] = json.loads(out)
    return values


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["brdp", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_one_release_with_a_gaussian_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    found = answered(capsys, "--kernel", "gaussian", *COMMON)
    law = Recycled.within(GaussianKernel(found["scale"]), found["rate"], 1.0, 1.0)
    assert float(RecycledProfile(law).delta(1.0)) <= found["upper"] <= 1e-5
    assert found["acceptance"] == pytest.approx(0.396, abs=1e-3)
    assert found["plain_acceptance"] == pytest.approx(0.2113, abs=1e-4)
    assert found["paper_acceptance"] == pytest.approx(0.2324, abs=1e-4)
    assert found["paper_delta"] == pytest.approx(0.19e-5, rel=0.04)
    assert found["ceiling"] == pytest.approx(0.632, abs=1e-3)
    assert (found["kind"], found["guarantee"], found["adjacency"]) == ("exact", True, "substitute")
    assert not found["as_good"]
    for name in ("pair", "sensitivity", "conditions", "seconds", "verdict"):
        assert found[name]


def test_plain_laplace_noise_is_as_good_and_the_text_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["brdp", "--kernel", "laplace", *COMMON]) == 0
    text = capsys.readouterr().out
    assert "plain Laplace noise is as good" in text
    assert "the exact one is 2.00002e-05" in " ".join(text.split())
    assert "guarantee" in text


def test_a_given_recycler_is_accounted_for(capsys: pytest.CaptureFixture[str]) -> None:
    found = answered(capsys, *COMMON, "--scale", "4", "--rate", "0.5", "--compositions", "20")
    assert found["plain_scale"] is None
    assert 0 < found["lower"] <= found["upper"] <= found["lower"] * 1.001
    fixed = answered(capsys, *COMMON, "--scale", "4")
    law = Recycled.within(GaussianKernel(4.0), fixed["rate"], 1.0, 1.0)
    assert float(RecycledProfile(law).delta(1.0)) == pytest.approx(1e-5, rel=1e-6)


def test_many_releases_share_the_budget(capsys: pytest.CaptureFixture[str]) -> None:
    found = answered(capsys, *COMMON[:4], "--epsilon", "3", "--delta", "1e-5", "--compositions", "5")
    assert found["compositions"] == 5
    assert 0.99e-5 < found["lower"] <= found["upper"] <= 1e-5
    assert found["plain_acceptance"] < found["acceptance"]
    assert found["ceiling"] is None
    # the paper's parameters use up the budget by its own theorem
    paper = Recycled.within(GaussianKernel(found["paper_scale"]), found["paper_rate"], 1.0, 1.0)
    assert 2.98 < theorem3_epsilon(paper, 5, 1e-5) <= 3.0
    assert found["paper_delta"] < 1e-5


def test_where_the_papers_search_ends_at_rate_one_it_has_no_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--sensitivity", "1", "--bound", "100", "--epsilon", "1", "--delta", "1e-5", "--compositions", "2"]
    found = answered(capsys, *words)
    assert found["paper_scale"] is found["paper_delta"] is None
    assert found["upper"] <= 1e-5
    assert found["as_good"]


def test_plain_laplace_noise_is_not_called_as_good_at_a_large_delta(capsys: pytest.CaptureFixture[str]) -> None:
    found = answered(
        capsys, "--kernel", "laplace", "--sensitivity", "1", "--bound", "2", "--epsilon", "1", "--delta", "0.3"
    )
    assert found["acceptance"] > found["plain_acceptance"] + 0.03
    assert not found["as_good"]
    assert found["upper"] <= 0.3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*COMMON, "--scale", "4", "--rate", "1.5"], "rate must be at most 1, got rate = 1.5"),
        ([*COMMON, "--rate", "0.5"], "--rate needs --scale"),
        ([*COMMON[:2], "--bound", "0", *COMMON[4:]], "bound must be above 0"),
        ([*COMMON[:6], "--delta", "1"], "delta must be below 1"),
        ([*COMMON[:6], "--delta", "0"], "delta must be above 0"),
        ([*COMMON, "--kernel", "exponential"], "must be a known kernel"),
        ([*COMMON, "--scale", "1"], "the budget must allow for the kernel"),
        ([*COMMON, "--scale", "1", "--compositions", "3"], "the budget must allow for the kernel"),
        ([*COMMON, "--scale", "1e200"], "scale must be at most 1e+150"),
        ([*COMMON, "--compositions", "0"], "steps must be at least 1"),
    ],
)
def test_bad_input_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], sentence: str) -> None:
    assert sentence in refused(capsys, *words)
