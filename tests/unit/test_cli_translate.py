"""`dpsub translate`: names a bound and evaluates it, or says in one sentence why there is none."""

from __future__ import annotations

import json

import pytest

from dpsub import noise
from dpsub.amplification import DeclaredProfile, translate
from dpsub.cli import main
from dpsub.relations import Relation


def test_the_answer_is_that_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--sampler wr --base substitute --target substitute --n 1000 --m 100 --mechanism laplace --ratio 1"
    assert main(["translate", *words.split(), "--epsilon", "0.1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    bound = translate("wr", "substitute", "substitute", n=1000, m=100)
    exact = float(bound.delta(DeclaredProfile.of(noise.of("laplace", 1.0), Relation.SUBSTITUTE), 0.1))
    assert found["bound"] == "Theorem 10"
    assert found["delta_amplified"] == exact == pytest.approx(1.307059e-2, rel=1e-6)


def test_a_rate_of_draws_is_remarked_on_and_not_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--sampler wr --base substitute --target substitute --rate 1 --n 11 --ratio 1 --epsilon 0.1"
    assert main(["translate", *words.split()]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "probability of 11 draws with replacement from 11 is 0.649506, not the" in " ".join(shown.out.split())


def test_a_guarantee_for_one_size_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--sampler wr --base substitute --n 10 --m 3 --ratio 1 --epsilon 0.1"
    assert main(["translate", *words.split()]) == 0
    text = capsys.readouterr().out
    assert "Theorem 11" in text
    assert "exactly n records" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--sampler wor --n 10 --m 3 --ratio 1 --epsilon 0.1", "no bound takes wor from add_remove to add_remove"),
        ("--base substitute --rate 0.1 --ratio 1 --epsilon 0.1", "may release the size of its sample"),
        ("--ratio 1 --epsilon 0.1", "got no rate; declare it as a public number"),
        ("--rate 0.1 --ratio 1 --epsilon -1", "epsilon must be at least 0, got epsilon = -1"),
        ("--rate 1.1 --ratio 1 --epsilon 1", "rate must be at most 1"),
        (
            "--base substitute --target substitute --rate 0.1 --n 1e12 --ratio 1 --epsilon 1",
            "n must be at most 1000000",
        ),
        ("--sampler wr --target substitute --n 1e308 --rate 0.5 --ratio 1 --epsilon 1", "m must be at most 10000000"),
    ],
)
def test_refusals_are_one_sentence(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", *words.split()]) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("dpsub translate: ")
    assert message in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("words", ["", "--target substitute", "--base substitute --target substitute --n 10"])
def test_a_gaussian_bound_is_never_zero(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    gaussian = ["translate", *words.split(), "--rate", "0.1", "--ratio", "1", "--epsilon", "800"]
    assert main([*gaussian, "--json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["delta_amplified"] < 1e-300
    assert main([*gaussian, "--mechanism", "laplace", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["delta_amplified"] == 0  # bounded losses do end
