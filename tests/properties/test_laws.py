"""The theorems on laws, as identities over random sizes, and next to closed forms."""

from __future__ import annotations

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpsub.sampling import Multistage, MustOO, MustOW, MustWO, MustWW, Wor, Wr
from dpsub.sampling.base import Stage, WithoutReplacement, WithReplacement

SLACK = 1e-13  # rounding of an inclusion probability, relative


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int, int]:
    """Draw n, b, m with m <= b <= n."""
    n = draw(st.integers(2, 400))
    b = draw(st.integers(1, n))
    return n, b, draw(st.integers(1, b))


def same(law: np.ndarray, other: np.ndarray) -> bool:
    """Whether logarithms are equal, down to exp(-600); below that both are small."""
    width = max(len(law), len(other))
    one, two = (np.pad(x, (0, width - len(x)), constant_values=-np.inf) for x in (law, other))
    seen = np.maximum(one, two) > -600
    return bool(np.all(np.abs(one[seen] - two[seen]) <= 1e-12 * np.maximum(1, np.abs(one[seen]))))


@given(sizes())
def test_must_wo_is_wr(size: tuple[int, int, int]) -> None:
    n, b, m = size
    assert same(MustWO(b, m).multiplicity_law(n).log_pmf, Wr(m).multiplicity_law(n).log_pmf)
    assert MustWO(b, m).distinct_law(n) == pytest.approx(Wr(m).distinct_law(n), rel=1e-12, abs=0)


@given(sizes())
def test_must_oo_is_wor(size: tuple[int, int, int]) -> None:
    n, b, m = size
    assert same(MustOO(b, m).multiplicity_law(n).log_pmf, Wor(m).multiplicity_law(n).log_pmf)
    assert np.array_equal(MustOO(b, m).distinct_law(n), Wor(m).distinct_law(n))


@given(st.integers(1, 300), st.integers(1, 300))
def test_must_ow_of_the_whole_frame_is_wr(n: int, m: int) -> None:
    assert same(MustOW(n, m).multiplicity_law(n).log_pmf, Wr(m).multiplicity_law(n).log_pmf)


def test_a_wrong_first_stage_is_seen() -> None:
    assert not same(
        MustOW(99, 40).multiplicity_law(100).log_pmf, Wr(40).multiplicity_law(100).log_pmf
    )


@given(sizes())
def test_order_of_inclusion_probabilities(size: tuple[int, int, int]) -> None:
    n, b, m = size
    ow, wr, wor, ww = (
        s.multiplicity_law(n).eta for s in (MustOW(b, m), Wr(m), Wor(m), MustWW(b, m))
    )
    # Table 2
    assert ow == pytest.approx(
        b / n * (-np.expm1(m * np.log1p(-1 / b)) if b > 1 else 1.0), rel=1e-12
    )
    assert wr == pytest.approx(-np.expm1(m * np.log1p(-1 / n)), rel=1e-12)
    assert wor == pytest.approx(m / n, rel=1e-12)
    assert ww <= ow * (1 + SLACK) and ow <= wr * (1 + SLACK) and wr <= wor * (1 + SLACK)
    if m == 1:
        assert ow == pytest.approx(wr, rel=SLACK) and wr == pytest.approx(wor, rel=SLACK)
    elif b < n:
        # E13: equality of MUST.OW and WR at m = 1 as well as at b = n
        assert ow < wr < wor


def stage_matrix(stage: Stage, n_slots: int, j_max: int) -> np.ndarray:
    """Return the transition matrix of the count of one record, from SciPy's distributions."""
    j = np.arange(j_max + 1)[:, None]
    if isinstance(stage, WithReplacement):
        return np.asarray(stats.binom.pmf(np.arange(stage.size + 1), stage.size, j / n_slots))
    assert isinstance(stage, WithoutReplacement)
    return np.asarray(
        stats.hypergeom.pmf(np.arange(min(j_max, stage.size) + 1), n_slots, j, stage.size)
    )


@given(
    st.integers(1, 60),
    st.lists(st.tuples(st.booleans(), st.integers(1, 60)), min_size=1, max_size=4),
)
def test_a_chain_is_the_product_of_its_stages(n: int, chain: list[tuple[bool, int]]) -> None:
    stages: list[Stage] = []
    slots = n
    row = np.array([0.0, 1.0])
    for replace, size in chain:
        size = size if replace else min(size, slots)
        stages.append(WithReplacement(size) if replace else WithoutReplacement(size))
        row = row @ stage_matrix(stages[-1], slots, len(row) - 1)
        slots = size
    law = Multistage(stages).multiplicity_law(n).pmf
    width = max(len(law), len(row))
    ours, dense = (np.pad(x, (0, width - len(x))) for x in (law, row))
    assert ours == pytest.approx(dense, rel=1e-10, abs=1e-15)


N, B, M = 1000, 500, 400


@pytest.mark.parametrize("u", [1, 2, 5, 20, 60, 150, 300, 400])
def test_logarithms_are_right_where_probabilities_underflow(u: int) -> None:
    with mpmath.workdps(60):

        def binomial(k: int, trials: int, p: mpmath.mpf) -> mpmath.mpf:
            return mpmath.binomial(trials, k) * p**k * (1 - p) ** (trials - k)

        one = mpmath.mpf(1)
        exact = {
            "wr": binomial(u, M, one / N),
            "must_ow": one / 2 * binomial(u, M, one / B),
            "must_ww": mpmath.fsum(
                binomial(j, B, one / N) * binomial(u, M, one * j / B) for j in range(1, B + 1)
            ),
        }
        logs = {name: float(mpmath.log(value)) for name, value in exact.items()}
    for name, sampler in {"wr": Wr(M), "must_ow": MustOW(B, M), "must_ww": MustWW(B, M)}.items():
        log_p = sampler.multiplicity_law(N).log_pmf[u]
        # a few units in the last place of the logarithm, or 2e-13 of the probability
        assert log_p == pytest.approx(logs[name], rel=1e-15, abs=2e-13)
    if u == 400:
        assert logs["wr"] < -2000 and Wr(M).multiplicity_law(N).pmf[u] == 0
