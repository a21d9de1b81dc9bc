"""What samplers refuse, in which words, and the samples that they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling import (
    REGISTRY,
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


class TestSizes:
    @pytest.mark.parametrize("sampler", [Wor, Wr])
    @pytest.mark.parametrize("m", [0, -3])
    def test_one_stage_sizes_are_positive(self, sampler: type, m: int) -> None:
        with pytest.raises(ArgumentError, match=rf"^m must be at least 1, got m = {m}$"):
            sampler(m)

    @pytest.mark.parametrize("sampler", [MustOW, MustWO, MustWW, MustOO])
    def test_two_stage_sizes_are_positive(self, sampler: type) -> None:
        with pytest.raises(ArgumentError, match=r"^b must be at least 1, got b = 0$"):
            sampler(0, 1)
        with pytest.raises(ArgumentError, match=r"^m must be at least 1, got m = 0$"):
            sampler(5, 0)

    @pytest.mark.parametrize("sampler", [MustWO, MustOO])
    def test_second_stage_without_replacement_needs_enough_slots(self, sampler: type) -> None:
        with pytest.raises(ArgumentError, match=r"^m must be at most b = 10, got m = 20$"):
            sampler(10, 20)

    @pytest.mark.parametrize("sampler", [MustOW, MustWW])
    def test_second_stage_with_replacement_may_be_larger(self, sampler: type) -> None:
        assert sampler(10, 20).distinct_law(100).sum() == pytest.approx(1)

    @pytest.mark.parametrize("sampler", [MustOW(500, 30), MustOO(500, 30)])
    def test_first_stage_without_replacement_needs_enough_records(self, sampler: MustOW) -> None:
        message = "^b must be at most n = 300, got b = 500$"
        for use in (
            lambda: sampler.multiplicity_law(300),
            lambda: sampler.distinct_law(300),
            lambda: sampler.draw(Frame(300), np.random.default_rng(0)),
            lambda: of_sizes(sampler.name, n=300, m=30, b=500),
        ):
            with pytest.raises(ArgumentError, match=message):
                use()

    def test_without_replacement_needs_enough_records(self) -> None:
        with pytest.raises(ArgumentError, match=r"at most n = 5, got .* = 6$"):
            Wor(6).multiplicity_law(5)
        with pytest.raises(ArgumentError, match=r"^m must be at most n = 5, got m = 6$"):
            of_sizes("wor", n=5, m=6)

    def test_sizes_are_whole(self) -> None:
        with pytest.raises(ArgumentError, match=r"^m must be a whole number, got m = 2.5$"):
            Wor(2.5)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=r"^b must be a whole number, got b = True$"):
            MustOW(True, 3)
        assert MustOW(np.int64(4), 3.0) == MustOW(4, 3)  # type: ignore[arg-type]
        assert isinstance(MustOW(np.int64(4), 3).b, int)  # type: ignore[arg-type]

    @pytest.mark.parametrize("rate", [-0.1, 1.1])
    def test_rate_is_a_probability(self, rate: float) -> None:
        with pytest.raises(ArgumentError, match=r"^rate must be at (least 0|most 1), got rate = "):
            Poisson(rate)

    @pytest.mark.parametrize("rate", [float("nan"), float("inf"), "half", None])
    def test_rate_is_a_number(self, rate: object) -> None:
        with pytest.raises(ArgumentError, match=r"^rate must be (finite|a number), got rate = "):
            Poisson(rate)  # type: ignore[arg-type]

    def test_frame_has_records(self) -> None:
        with pytest.raises(ArgumentError, match=r"^n must be at least 1, got n = 0$"):
            Frame(0)
        for name in ("wr", "must_ow", "poisson"):
            with pytest.raises(ArgumentError, match=r"^n must be at least 1, got n = 0$"):
                of_sizes(name, n=0, m=3, b=4)

    def test_blocks_have_subsets(self) -> None:
        with pytest.raises(ArgumentError, match=r"^n_subsets must be at least 1, got n_subsets = 0$"):
            Wr(3).draw_block(Frame(5), 0, np.random.default_rng(0))


class TestOfSizes:
    def test_one_stage_samplers_ignore_b(self) -> None:
        assert of_sizes("wor", n=300, m=30, b=50) == Wor(30)
        assert of_sizes("wr", n=300, m=30) == Wr(30)
        assert of_sizes("poisson", n=300, m=30, b=50) == Poisson(0.1)

    def test_two_stage_samplers_need_b(self) -> None:
        assert of_sizes("must_ww", n=300, m=30, b=50) == MustWW(50, 30)
        with pytest.raises(ArgumentError, match=r"^must_ow needs b, the size of the first stage, got none$"):
            of_sizes("must_ow", n=300, m=30)

    def test_multistage_has_no_default_stages(self) -> None:
        with pytest.raises(UnsupportedError, match="no default stages; give them as Multistage"):
            of_sizes("multistage", n=300, m=30)

    def test_unknown_name(self) -> None:
        with pytest.raises(ArgumentError, match=r"^unknown sampler 'must_wo2'; did you mean 'must_wo'[?]$"):
            of_sizes("must_wo2", n=300, m=30, b=50)

    def test_poisson_is_no_larger_than_the_frame(self) -> None:
        with pytest.raises(ArgumentError, match=r"^m must be at most n = 5, got m = 6$"):
            of_sizes("poisson", n=5, m=6)


class TestMultistage:
    def test_text(self) -> None:
        chain = Multistage([WithReplacement(10), WithoutReplacement(5), base.PoissonStage(0.1)])
        assert Multistage.of_text("wr:1e1, wor : 5,poisson:.1") == chain
        for text, message in (
            ("wr", "^a stage must be KIND:SIZE, got 'wr'; write wor:500,wr:400$"),
            ("wr:5,w:3", "^unknown kind of stage 'w'; did you mean 'wr'[?]$"),
            ("wr:five", "^the size of a stage must be a number, got 'wr:five'$"),
            ("wor:2.5", "^size must be a whole number, got size = 2.5$"),
            ("wr:inf", "^size must be a whole number"),
        ):
            with pytest.raises(ArgumentError, match=message):
                Multistage.of_text(text)

    def test_last_stage_open(self) -> None:
        for text, most, solved in (("wor:9", 20, "size"), ("wor:9,wor:2", 9, "size"), ("wr:30,wr:2", 30, "size"),
                                   ("wr:5,poisson:0.5", 1.0, "rate")):  # fmt: skip
            chain = Multistage.of_text(text)
            family = Multistage.last_open(chain.chain, 20)
            last = chain.chain[-1]
            assert (family.most, family.solved) == (most, solved)
            assert family.make(last.rate if isinstance(last, base.PoissonStage) else last.size) == chain

    def test_needs_stages(self) -> None:
        refused: list[Any] = [[], [3], ["wr"]]
        for chain in refused:
            with pytest.raises(ArgumentError, match=r"^a multistage sampler needs at least one stage, got "):
                Multistage(chain)

    def test_poisson_stage_comes_last(self) -> None:
        with pytest.raises(UnsupportedError, match=r"can only be the last stage, got it as stage 1 of 2$"):
            Multistage([base.PoissonStage(0.5), WithReplacement(3)])
        law = Multistage([WithReplacement(3), base.PoissonStage(0.5)]).multiplicity_law(6)
        assert law.mean == pytest.approx(0.25)

    def test_a_stage_must_fit_the_one_before(self) -> None:
        with pytest.raises(ArgumentError, match=r"^the size of stage 3 must be at most the size of stage 2 = 4, got "):
            Multistage([WithReplacement(5), WithReplacement(4), WithoutReplacement(6)])

    def test_the_papers_samplers_are_configurations(self) -> None:
        pairs: list[tuple[Sampler, list[base.Stage]]] = [
            (MustOW(5, 3), [WithoutReplacement(5), WithReplacement(3)]),
            (MustWO(5, 3), [WithReplacement(5), WithoutReplacement(3)]),
            (MustWW(5, 3), [WithReplacement(5), WithReplacement(3)]),
            (MustOO(5, 3), [WithoutReplacement(5), WithoutReplacement(3)]),
            (Wor(3), [WithoutReplacement(3)]),
            (Wr(3), [WithReplacement(3)]),
            (Poisson(0.3), [base.PoissonStage(0.3)]),
        ]
        for sampler, chain in pairs:
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
        assert samples[2].size == 0
        assert Poisson(0.0).multiplicity_law(7).eta == 0
        mixed = Poisson(0.05).draw_block(Frame(10), 200, np.random.default_rng(0))
        assert mixed.distinct.min() == 0 and mixed.distinct.max() > 0
        assert mixed.sizes.tolist() == mixed.distinct.tolist()

    @pytest.mark.parametrize(
        "chain",
        [
            [WithReplacement(4), base.PoissonStage(0.0)],
            [WithReplacement(4), WithReplacement(4), base.PoissonStage(0.0)],
            [WithoutReplacement(3), WithReplacement(4), base.PoissonStage(0.05)],
            [WithReplacement(4), WithReplacement(4), base.PoissonStage(0.05)],
        ],
    )
    def test_chains_that_often_end_empty(self, chain: list[base.Stage]) -> None:
        samples = Multistage(chain).draw_block(Frame(5), 200, np.random.default_rng(1))
        assert samples.n_subsets == 200 and samples.distinct.min() == 0
        assert samples.sizes.sum() == samples.counts.sum()
        assert [samples[i].size for i in range(200)] == samples.sizes.tolist()

    def test_full_samples(self) -> None:
        for sampler in (Poisson(1.0), Wor(7), MustOO(7, 7)):
            samples = sampler.draw_block(Frame(7), 5, np.random.default_rng(0))
            assert all(sorted(samples[i].indices.tolist()) == list(range(7)) for i in range(5))
            assert sampler.multiplicity_law(7).eta == 1

    @pytest.mark.parametrize("sampler", [Wr(6), MustWW(3, 6), MustOW(1, 6), MustWO(8, 6)])
    def test_frame_of_one(self, sampler: Wr) -> None:
        samples = sampler.draw_block(Frame(1), 3, np.random.default_rng(0))
        assert samples.indices.tolist() == [0, 0, 0] and samples.counts.tolist() == [6, 6, 6]
        assert sampler.multiplicity_law(1).pmf[-1] == pytest.approx(1)

    def test_repeated_record(self) -> None:
        samples = MustOW(1, 9).draw_block(Frame(50), 30, np.random.default_rng(0))
        assert set(samples.distinct.tolist()) == {1} and set(samples.counts.tolist()) == {9}

    def test_large_frames(self) -> None:
        n = 2**40
        for sampler in (Wor(50), Wr(50), MustWW(60, 50), MustOW(60, 50)):
            samples = sampler.draw_block(Frame(n), 20, np.random.default_rng(0))
            assert samples.indices.dtype == np.int64 and samples.indices.max() > 2**35
            assert set(samples.sizes.tolist()) == {50}


    @pytest.mark.parametrize("n", [2**30 - 1, 2**30, 2**31 - 3, 2**31])
    def test_ragged_rows_where_integers_are_full(self, n: int) -> None:
        samples = Poisson(20 / n).draw_block(Frame(n), 200, np.random.default_rng(0))
        assert samples.indices.min() >= 0 and samples.indices.max() < n
        assert samples.sizes.tolist() == samples.distinct.tolist()


class TestHugeSizes:
    def test_more_records_than_doubles_tell_apart_are_refused(self) -> None:
        for n in (2**53 + 1, 10**400):
            for use in (Wor(3).multiplicity_law, Poisson(0.1).multiplicity_law, Frame):
                with pytest.raises(ArgumentError, match=r"^n must be at most (2\^53|9007199254740992), got n = "):
                    use(n)
        assert Wor(10**15).multiplicity_law(2**53).eta == pytest.approx(10**15 / 2**53)

    def test_laws_that_would_take_hours_are_refused(self) -> None:
        for sampler in (MustWW(10**7, 10**7), MustWO(10**7, 10**7), Multistage.of_text("wr:1e7,poisson:0.1")):
            with pytest.raises(ArgumentError, match=r"may have at most 2e\+07 terms a stage, got .*; take smaller"):
                sampler.multiplicity_law(10)

    def test_large_laws_leave_out_what_is_negligible_and_nothing_else(self) -> None:
        """In seconds, and the same as by all terms."""
        found = MustWW(3000, 2000).multiplicity_law(40).log_pmf
        j = np.arange(3001)
        before = laws.log_binomial(j, 3000, 1 / 40)
        every = laws.mix_rows(before, laws.log_binomial(np.arange(2001), 2000, j[:, None] / 3000))
        assert np.array_equal(found[every > -700], every[every > -700])
        assert np.all(found[every <= -1500] < -700)
        law = Wr(10**7).multiplicity_law(2)
        assert len(law.log_pmf) == 10**7 + 1 and law.mean == pytest.approx(5e6, rel=1e-12)
        assert Wr(10**7).multiplicity_law(1).pmf[-1] == 1

    def test_the_smallest_rates_warn_of_nothing(self) -> None:
        assert Poisson(5e-324).multiplicity_law(1).eta == 5e-324
        assert Poisson(1e-310).multiplicity_law(1).log_pmf[1] == pytest.approx(-310 * np.log(10), rel=1e-12)


class TestSamples:
    samples = Samples(np.array([3, 1, 4, 0]), np.array([2, 1, 1, 5]), np.array([0, 2, 2, 4]))

    def test_views(self) -> None:
        assert self.samples.n_subsets == len(self.samples) == 3
        assert self.samples.distinct.tolist() == [2, 0, 2]
        assert self.samples.sizes.tolist() == [3, 0, 6]
        one = self.samples[2]
        assert isinstance(one, Sample)
        assert one.indices.tolist() == [4, 0] and one.counts.tolist() == [1, 5] and one.size == 6
        assert self.samples[-1].indices.tolist() == [4, 0]
        with pytest.raises(IndexError):
            self.samples[3]

    def test_padded(self) -> None:
        indices, counts = self.samples.padded()
        assert indices.tolist() == [[3, 1], [0, 0], [4, 0]]
        assert counts.tolist() == [[2, 1], [0, 0], [1, 5]]

    def test_subsets_one_by_one(self) -> None:
        assert [self.samples[i].size for i in range(len(self.samples))] == [3, 0, 6]


def test_registry_knows_all() -> None:
    assert REGISTRY.names() == tuple(sorted(REGISTRY.names()))
    assert REGISTRY.get("must_ow") is MustOW


@pytest.mark.parametrize("make", [lambda m: Wr(m), lambda m: MustWW(b=5, m=m), lambda m: WithReplacement(m)])
def test_a_law_with_more_entries_than_memory_is_refused(make: Callable[[int], object]) -> None:
    with pytest.raises(ArgumentError, match=r"^(m|size) must be at most 10000000, got (m|size) = 10000000000$"):
        make(10**10)
