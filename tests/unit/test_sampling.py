"""Samplers: their refusals, in which words, and the samples that they return; discrete laws
computed in other ways."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from scipy import stats

from dpsub.errors import ArgumentError, DpsubError, UnsupportedError
from dpsub.sampling import (
    Multistage,
    MustOO,
    MustOW,
    MustWO,
    MustWW,
    Poisson,
    Sampler,
    Wor,
    Wr,
    base,
    laws,
    of_sizes,
)
from dpsub.sampling.base import WithoutReplacement, WithReplacement
from dpsub.sampling.frame import Frame, Sample, Samples

RNG = np.random.default_rng(0)
TWO_STAGES: tuple[Any, ...] = (MustOW, MustWO, MustWW, MustOO)
TOO_LARGE = r"may have at most 2e\+07 terms a stage, got .*; take smaller"
NO_STAGES = r"^a multistage sampler needs at least one stage, got "
REFUSED: list[tuple[Callable[[], Any], str]] = [
    *(
        (lambda s=s, m=m: s(m), f"^m must be at least 1, got m = {m}$")
        for s in (Wor, Wr)
        for m in (0, -3)
    ),
    *((lambda s=s: s(0, 1), "^b must be at least 1, got b = 0$") for s in TWO_STAGES),
    *((lambda s=s: s(5, 0), "^m must be at least 1, got m = 0$") for s in TWO_STAGES),
    *((lambda s=s: s(10, 20), "^m must be at most b = 10, got m = 20$") for s in (MustWO, MustOO)),
    *(
        (lambda use=use, s=s: use(s(500, 30)), "^b must be at most n = 300, got b = 500$")
        for s in (MustOW, MustOO)
        for use in (
            lambda s: s.multiplicity_law(300),
            lambda s: s.distinct_law(300),
            lambda s: s.draw(Frame(300), RNG),
            lambda s: of_sizes(s.name, n=300, m=30, b=500),
        )
    ),
    (lambda: Wor(6).multiplicity_law(5), r"at most n = 5, got .* = 6$"),
    (lambda: of_sizes("wor", n=5, m=6), "^m must be at most n = 5, got m = 6$"),
    (lambda: of_sizes("poisson", n=5, m=6), "^m must be at most n = 5, got m = 6$"),
    (lambda: Wor(2.5), "^m must be a whole number, got m = 2.5$"),  # type: ignore[arg-type]
    (lambda: MustOW(True, 3), "^b must be a whole number, got b = True$"),
    *(
        (lambda rate=rate: Poisson(rate), "^rate must be at (least 0|most 1), got rate = ")
        for rate in (-0.1, 1.1)
    ),
    *(
        (lambda rate=rate: Poisson(rate), "^rate must be (finite|a number), got rate = ")  # type: ignore[arg-type]
        for rate in (float("nan"), float("inf"), "half", None)
    ),
    (lambda: Frame(0), "^n must be at least 1, got n = 0$"),
    *(
        (lambda name=name: of_sizes(name, n=0, m=3, b=4), "^n must be at least 1, got n = 0$")
        for name in ("wr", "must_ow", "poisson")
    ),
    (
        lambda: Wr(3).draw_block(Frame(5), 0, RNG),
        "^n_subsets must be at least 1, got n_subsets = 0$",
    ),
    (
        lambda: of_sizes("must_ow", n=300, m=30),
        "^must_ow needs b, the size of the first stage, got none$",
    ),
    (lambda: of_sizes("multistage", n=300, m=30), "no default stages; give them as Multistage"),
    (
        lambda: of_sizes("must_wo2", n=300, m=30, b=50),
        "^unknown sampler 'must_wo2'; did you mean 'must_wo'[?]$",
    ),
    (
        lambda: Multistage.of_text("wr"),
        "^a stage must be KIND:SIZE, got 'wr'; write wor:500,wr:400$",
    ),
    (lambda: Multistage.of_text("wr:5,w:3"), "^unknown kind of stage 'w'; did you mean 'wr'[?]$"),
    (
        lambda: Multistage.of_text("wr:five"),
        "^the size of a stage must be a number, got 'wr:five'$",
    ),
    (lambda: Multistage.of_text("wor:2.5"), "^size must be a whole number, got size = 2.5$"),
    (lambda: Multistage.of_text("wr:inf"), "^size must be a whole number"),
    *((lambda chain=chain: Multistage(chain), NO_STAGES) for chain in ([], [3], ["wr"])),  # type: ignore[arg-type]
    (
        lambda: Multistage([base.PoissonStage(0.5), WithReplacement(3)]),
        "be the last stage, got it as stage 1 of 2$",
    ),
    (
        lambda: Multistage([WithReplacement(5), WithReplacement(4), WithoutReplacement(6)]),
        "^the size of stage 3 must be at most the size of stage 2 = 4, got ",
    ),
    *(
        (lambda use=use, n=n: use(n), r"^n must be at most (2\^53|9007199254740992), got n = ")
        for n in (2**53 + 1, 10**400)
        for use in (Wor(3).multiplicity_law, Poisson(0.1).multiplicity_law, Frame)
    ),
    *(
        (lambda s=s: s.multiplicity_law(10), TOO_LARGE)
        for s in (
            MustWW(10**7, 10**7),
            MustWO(10**7, 10**7),
            Multistage.of_text("wr:1e7,poisson:0.1"),
        )
    ),
    # a law with more entries than memory
    *(
        (
            lambda make=make: make(10**10),
            r"^(m|size) must be at most 10000000, got (m|size) = "
            r"10000000000$",
        )
        for make in (Wr, lambda m: MustWW(b=5, m=m), WithReplacement)
    ),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_what_is_refused(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(DpsubError, match=sentence) as refusal:
        call()
    expected = (
        UnsupportedError
        if "default stages" in sentence or "last stage" in sentence
        else ArgumentError
    )
    assert isinstance(refusal.value, expected)


def test_sizes_may_be_any_whole_numbers() -> None:
    assert MustOW(np.int64(4), 3.0) == MustOW(4, 3)  # type: ignore[arg-type]
    assert isinstance(MustOW(np.int64(4), 3).b, int)  # type: ignore[arg-type]
    for sampler in (MustOW(10, 20), MustWW(10, 20)):  # more draws than slots
        assert sampler.distinct_law(100).sum() == pytest.approx(1)


def test_stages_as_text_and_with_the_last_one_open() -> None:
    chain = Multistage([WithReplacement(10), WithoutReplacement(5), base.PoissonStage(0.1)])
    assert Multistage.of_text("wr:1e1, wor : 5,poisson:.1") == chain
    for text, most, solved in (
        ("wor:9", 20, "size"),
        ("wor:9,wor:2", 9, "size"),
        ("wr:30,wr:2", 30, "size"),
        ("wr:5,poisson:0.5", 1.0, "rate"),
    ):
        chain = Multistage.of_text(text)
        family = Multistage.last_open(chain.chain, 20)
        last = chain.chain[-1]
        assert (family.most, family.solved) == (most, solved)
        assert family.make(last.rate if isinstance(last, base.PoissonStage) else last.size) == chain
    assert Multistage([WithReplacement(3), base.PoissonStage(0.5)]).multiplicity_law(
        6
    ).mean == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("sampler", "chain"),
    [
        (MustOW(5, 3), [WithoutReplacement(5), WithReplacement(3)]),
        (MustWO(5, 3), [WithReplacement(5), WithoutReplacement(3)]),
        (MustWW(5, 3), [WithReplacement(5), WithReplacement(3)]),
        (MustOO(5, 3), [WithoutReplacement(5), WithoutReplacement(3)]),
        (Wor(3), [WithoutReplacement(3)]),
        (Wr(3), [WithReplacement(3)]),
        (Poisson(0.3), [base.PoissonStage(0.3)]),
    ],
)
def test_the_papers_samplers_are_configurations(sampler: Sampler, chain: list[base.Stage]) -> None:
    general = Multistage(chain)
    assert np.array_equal(general.multiplicity_law(9).log_pmf, sampler.multiplicity_law(9).log_pmf)
    assert np.array_equal(general.log_distinct_law(9), sampler.log_distinct_law(9))
    one, other = (s.draw_block(Frame(9), 20, np.random.default_rng(4)) for s in (general, sampler))
    assert np.array_equal(one.indices, other.indices) and np.array_equal(one.counts, other.counts)


class TestExtremes:
    """Sizes at the edge, where a block has empty, full or single-record subsets."""

    def test_empty_poisson_samples(self) -> None:
        samples = Poisson(0.0).draw_block(Frame(7), 4, np.random.default_rng(0))
        assert samples.distinct.tolist() == samples.sizes.tolist() == [0, 0, 0, 0]
        assert samples[2].size == Poisson(0.0).multiplicity_law(7).eta == 0
        mixed = Poisson(0.05).draw_block(Frame(10), 200, np.random.default_rng(0))
        assert mixed.distinct.min() == 0 < mixed.distinct.max()
        assert mixed.sizes.tolist() == mixed.distinct.tolist()

    @pytest.mark.parametrize(
        "text",
        [
            "wr:4,poisson:0",
            "wr:4,wr:4,poisson:0",
            "wor:3,wr:4,poisson:.05",
            "wr:4,wr:4,poisson:.05",
        ],
    )
    def test_chains_that_often_end_empty(self, text: str) -> None:
        samples = Multistage.of_text(text).draw_block(Frame(5), 200, np.random.default_rng(1))
        assert samples.n_subsets == 200 and samples.distinct.min() == 0
        assert samples.sizes.sum() == samples.counts.sum()
        assert [samples[i].size for i in range(200)] == samples.sizes.tolist()

    def test_full_samples(self) -> None:
        for sampler in (Poisson(1.0), Wor(7), MustOO(7, 7)):
            samples = sampler.draw_block(Frame(7), 5, np.random.default_rng(0))
            assert all(sorted(samples[i].indices.tolist()) == list(range(7)) for i in range(5))
            assert sampler.multiplicity_law(7).eta == 1

    def test_one_record_in_the_frame_or_in_the_first_stage(self) -> None:
        for sampler in (Wr(6), MustWW(3, 6), MustOW(1, 6), MustWO(8, 6)):
            samples = sampler.draw_block(Frame(1), 3, np.random.default_rng(0))
            assert samples.indices.tolist() == [0, 0, 0] and samples.counts.tolist() == [6, 6, 6]
            assert sampler.multiplicity_law(1).pmf[-1] == pytest.approx(1)
        samples = MustOW(1, 9).draw_block(Frame(50), 30, np.random.default_rng(0))
        assert set(samples.distinct.tolist()) == {1} and set(samples.counts.tolist()) == {9}

    def test_large_frames(self) -> None:
        for sampler in (Wor(50), Wr(50), MustWW(60, 50), MustOW(60, 50)):
            samples = sampler.draw_block(Frame(2**40), 20, np.random.default_rng(0))
            assert samples.indices.dtype == np.int64 and samples.indices.max() > 2**35
            assert set(samples.sizes.tolist()) == {50}

    @pytest.mark.parametrize("n", [2**30 - 1, 2**30, 2**31 - 3, 2**31])
    def test_ragged_rows_where_integers_are_full(self, n: int) -> None:
        samples = Poisson(20 / n).draw_block(Frame(n), 200, np.random.default_rng(0))
        assert samples.indices.min() >= 0 and samples.indices.max() < n
        assert samples.sizes.tolist() == samples.distinct.tolist()

    @pytest.mark.thorough
    def test_large_laws_leave_out_what_is_negligible_and_nothing_else(self) -> None:
        """The laws take seconds, and are the same as by all terms."""
        found = MustWW(3000, 2000).multiplicity_law(40).log_pmf
        j = np.arange(3001)
        before = laws.log_binomial(j, 3000, 1 / 40)
        every = laws.mix_rows(before, laws.log_binomial(np.arange(2001), 2000, j[:, None] / 3000))
        assert np.array_equal(found[every > -700], every[every > -700])
        assert np.all(found[every <= -1500] < -700)
        law = Wr(10**7).multiplicity_law(2)
        assert len(law.log_pmf) == 10**7 + 1 and law.mean == pytest.approx(5e6, rel=1e-12)
        assert Wr(10**7).multiplicity_law(1).pmf[-1] == 1
        assert Wor(10**15).multiplicity_law(2**53).eta == pytest.approx(10**15 / 2**53)

    def test_the_smallest_rates_warn_of_nothing(self) -> None:
        assert Poisson(5e-324).multiplicity_law(1).eta == 5e-324
        assert Poisson(1e-310).multiplicity_law(1).log_pmf[1] == pytest.approx(
            -310 * np.log(10), rel=1e-12
        )


def test_views_of_samples() -> None:
    samples = Samples(np.array([3, 1, 4, 0]), np.array([2, 1, 1, 5]), np.array([0, 2, 2, 4]))
    assert samples.n_subsets == len(samples) == 3
    assert samples.distinct.tolist() == [2, 0, 2]
    assert samples.sizes.tolist() == [samples[i].size for i in range(3)] == [3, 0, 6]
    one = samples[2]
    assert isinstance(one, Sample)
    assert one.indices.tolist() == [4, 0] and one.counts.tolist() == [1, 5] and one.size == 6
    assert samples[-1].indices.tolist() == [4, 0]
    with pytest.raises(IndexError):
        samples[3]
    indices, counts = samples.padded()
    assert indices.tolist() == [[3, 1], [0, 0], [4, 0]]
    assert counts.tolist() == [[2, 1], [0, 0], [1, 5]]


def relative(log_value: np.ndarray, log_exact: np.ndarray) -> float:
    """Return the largest relative error of the probabilities, beyond the two roundings that a
    logarithm of this size has."""
    error = np.abs(np.expm1(log_value - log_exact)) - 2 * np.spacing(np.abs(log_exact))
    return float(np.max(error))


@pytest.mark.parametrize(
    ("n", "p", "error"),
    [
        (400, 1 / 1000, 2e-13),
        (500, 0.5, 2e-13),
        (30969, 300 / 30969, 2e-13),
        (10**6, 1e-3, 2e-13),
        (10**6, 1e-6, 6e-13),
        (10**6, 0.3, 6e-13),
        (10**9, 0.3, 2e-11),
    ],
)
def test_binomial_for_large_n(n: int, p: float, error: float) -> None:
    centre, spread = n * p, np.sqrt(n * p * (1 - p))
    offsets = np.array([-8, -3, -1, 0, 0.5, 2, 6, 20])
    k = np.unique(np.clip(np.round(centre + offsets * spread), 0, n)).astype(int)
    with mpmath.workdps(50):
        q = mpmath.mpf(p)
        exact = [
            float(
                mpmath.loggamma(n + 1)
                - mpmath.loggamma(i + 1)
                - mpmath.loggamma(n - i + 1)
                + i * mpmath.log(q)
                + (n - i) * mpmath.log(1 - q)
            )
            for i in k.tolist()
        ]
    assert relative(laws.log_binomial(k, n, p), np.array(exact)) < error


def test_binomial_edges() -> None:
    k = np.array([-1, 0, 1, 2, 3, 4])
    assert np.exp(laws.log_binomial(k, 3, 0.0)).tolist() == [0, 1, 0, 0, 0, 0]
    assert np.exp(laws.log_binomial(k, 3, 1.0)).tolist() == [0, 0, 0, 0, 1, 0]
    assert np.exp(laws.log_binomial(k, 0, 0.4)).tolist() == [0, 1, 0, 0, 0, 0]
    assert not np.isnan(laws.log_binomial(k, 3, 0.3)).any()


def test_binomial_broadcasts() -> None:
    k, n, p = np.arange(4), np.array([3, 5])[:, None], np.array([0.1, 0.7])[:, None]
    assert laws.log_binomial(k, n, p).shape == (2, 4)
    assert np.exp(laws.log_binomial(k, n, p)) == pytest.approx(stats.binom.pmf(k, n, p), rel=1e-13)


def test_hypergeometric_for_large_populations() -> None:
    total, marked, drawn = 10**6, np.array([10, 3000, 500_000]), 2000
    k = np.array([1, 7, 1000])
    log_p = laws.log_hypergeometric(k, total, marked, drawn)
    with mpmath.workdps(60):
        exact = [
            float(
                mpmath.log(comb(a, i) * comb(total - a, drawn - i)) - mpmath.log(comb(total, drawn))
            )
            for a, i in zip(marked.tolist(), k.tolist(), strict=True)
        ]
    assert relative(log_p, np.array(exact)) < 1e-12


def occupancy_fractions(balls: int, cells: int) -> list[Fraction]:
    row = [Fraction(1)]
    for _ in range(balls):
        row = [
            (row[k] * Fraction(k, cells) if k < len(row) else Fraction(0))
            + (row[k - 1] * (1 - Fraction(k - 1, cells)) if k else Fraction(0))
            for k in range(len(row) + 1)
        ]
    return row[: min(balls, cells) + 1]


def one_point(balls: int) -> np.ndarray:
    log_p = np.full(balls + 1, -np.inf)
    log_p[-1] = 0.0
    return log_p


@pytest.mark.parametrize(
    ("balls", "cells"), [(0, 3), (1, 1), (5, 1), (4, 7), (7, 4), (30, 50), (25, 300)]
)
def test_occupancy_equals_fractions(balls: int, cells: int) -> None:
    law = np.exp(laws.occupancy_mixture(one_point(balls), cells))
    exact = np.array([float(p) for p in occupancy_fractions(balls, cells)])
    assert len(law) == len(exact)
    assert law == pytest.approx(exact, rel=1e-12, abs=0)
