"""No upper bound of two steps is below the truth of tiny data sets, all samples enumerated.

For a grouping of outputs into cells of masses p, q (post-processing, so from below) they have

    H_a = sum over cells of the first step of p_i H_(a q_i / p_i)(second step),

and the second step may depend on the first: the largest H over the second steps that are allowed is
taken at every order.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

import dpsub
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.laplace_pairs import LaplacePair
from dpsub.accounting.engine.profiles import law_of
from dpsub.relations import Relation
from dpsub.sampling import Multistage, MustOW, MustWW, Poisson, Sampler, Wor, Wr
from dpsub.streams import stream
from tests.few import few
from tests.tiny_mechanisms import cell_masses, sample_counts, slot_chain, stages, two_steps


def test_a_law_of_counts_by_two_roads() -> None:
    # more draws than records, one slot, three stages, a last Poisson stage
    for n, chain in (
        (5, "wor:2"),
        (2, "wr:4"),
        (3, "wor:1,wr:3"),
        (4, "wr:3,wor:2"),
        (2, "wr:3,wr:3"),
        (4, "wr:3,wor:2,wr:3"),
        (4, "wor:3,poisson:0.4"),
        (4, "wor:2,wr:2,poisson:0.5"),
    ):
        counts, weights = sample_counts(n, stages(chain))
        law = np.bincount(counts[:, 0], weights)
        np.testing.assert_allclose(
            law_of(slot_chain(n, stages(chain))).pmf[: law.size], law, rtol=1e-12, atol=1e-15
        )


def all_neighbours(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all ordered pairs of data sets in {-1, 0, 1} that differ in the first record, up to
    the order of the others."""
    rest = list(itertools.combinations_with_replacement((-1.0, 0.0, 1.0), n - 1))
    versions = itertools.permutations((-1.0, 0.0, 1.0), 2)
    first, second = zip(
        *[((v, *others), (w, *others)) for v, w in versions for others in rest], strict=True
    )
    return np.array(first), np.array(second)


class TestLaplace:
    """Two steps with Laplace noise, and the laws of its attacks; one step is in
    test_random_cases.py."""

    def twice(
        self,
        n: int,
        chain: str,
        data: list[float],
        other: list[float],
        scale: float,
        epsilon: float,
    ) -> float:
        """Return the divergences of the same two data sets twice, in the worse direction, from all
        pairs of cells."""
        sides = np.array([data]), np.array([other])
        p, q = cell_masses(*sample_counts(n, stages(chain)), *sides, scale, 0.02, "laplace")
        p, q = np.multiply.outer(p[0], p[0]), np.multiply.outer(q[0], q[0])
        return max(
            float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p))
        )

    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize(("rate", "scale"), [(0.3, 0.5), (0.8, 2.0)])
    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
    def test_two_poisson_steps_are_exact(
        self, relation: Relation, rate: float, scale: float, epsilon: float
    ) -> None:
        other = [-1.0 if relation is Relation.SUBSTITUTE else 0.0, 0.0]
        truth = self.twice(2, f"poisson:{rate}", [1.0, 0.0], other, scale, epsilon)
        asked = {"adjacency": str(relation), "mechanism": "laplace"}
        answer = dpsub.account(
            Poisson(rate), noise_multiplier=scale, steps=2, epsilon=epsilon, **asked
        )
        assert answer.kind == "exact"
        assert answer.lower <= answer.upper <= answer.lower * (1 + 2e-3) + 1e-9
        assert truth <= answer.upper
        assert answer.lower <= truth * (1 + 2e-3) + 1e-9

    @pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
    def test_two_steps_without_replacement_lie_between_attack_and_proof(
        self, epsilon: float
    ) -> None:
        static = self.twice(4, "wor:2", [1.0, -1, -1, -1], [-1.0] * 4, 1.0, epsilon)
        answer = dpsub.account(
            Wor(2),
            4,
            noise_multiplier=1.0,
            steps=2,
            epsilon=epsilon,
            mechanism="laplace",
            adjacency="substitute",
        )
        assert answer.kind == "bounds"
        assert static * (1 - 5e-3) <= answer.lower <= answer.upper
        assert answer.lower > 0

    @pytest.mark.parametrize(
        ("n", "m", "scale"), [(3, 2, 1.0), (2, 1, 0.5), (3, 1, 3.0), (2, 2, 1.0)]
    )
    def test_a_record_more_without_replacement_is_exact(self, n: int, m: int, scale: float) -> None:
        epsilons = (0.0, 0.3, 1.0)
        both = with_and_without(n)
        p, q = (
            cell_masses(
                *sample_counts(data.shape[1], stages(f"wor:{m}")),
                data,
                data,
                scale,
                0.02,
                "laplace",
            )[0]
            for data in both
        )
        truth = np.maximum(two_steps(p, q, epsilons), two_steps(q, p, epsilons))
        asked = {"noise_multiplier": scale, "mechanism": "laplace", "adjacency": "add_remove"}
        for epsilon, value in zip(epsilons, truth, strict=True):
            answer = dpsub.account(Wor(m), n, steps=2, epsilon=epsilon, **asked)  # type: ignore[arg-type]
            assert answer.kind == "exact"
            assert value <= answer.upper + 1e-12
            assert answer.lower <= value * (1 + 1e-2) + 1e-9
            # planted fault: as if the record took nobody's place
            alone = dpsub.account(Poisson(m / (n + 1)), steps=2, epsilon=epsilon, **asked)  # type: ignore[arg-type]
            assert value == 0 or alone.upper < value

    @pytest.mark.parametrize("swapped", [False, True])
    @pytest.mark.parametrize(
        "pair",
        [
            LaplacePair(0.1, 4.0),
            LaplacePair(0.6, 1.0),
            LaplacePair(1.0, 2.0),
            LaplacePair(0.3, 0.1, True),
            LaplacePair(0.05, 6.0, True),
        ],
    )
    def test_lower_laws_are_those_of_grouped_outputs(
        self, pair: LaplacePair, swapped: bool
    ) -> None:
        t = np.linspace(-pair.ratio - 20, pair.ratio + 20, 400_001)
        middle, width = (t[1:] + t[:-1]) / 2, t[1] - t[0]

        def density(centre: float) -> np.ndarray:
            return 0.5 * np.exp(-np.abs(middle - centre)) * width

        p = (1 - pair.rate) * density(0) + pair.rate * density(pair.ratio)
        q = (
            (1 - pair.rate) * density(0) + pair.rate * density(-pair.ratio)
            if pair.mirrored
            else density(0)
        )
        p, q = (q, p) if swapped else (p, q)
        np.testing.assert_allclose(
            (-1 if swapped else 1) * pair.loss(middle), np.log(p / q), atol=1e-9
        )
        for step, epsilon in itertools.product((0.5, 0.05, 1e-3), (0.0, 0.02, 0.3)):
            truth = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
            for law in (pair.lower_pld(step, swapped), pair.lower_pld(pair.fitting(step), swapped)):
                assert law.masses.sum() <= 1
                assert ComposedLoss([law], [1]).delta(epsilon) <= truth * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("scale", few([0.055, 0.06, 0.08, 0.1, 0.3, 1.0, 3.0], most=3))
@pytest.mark.parametrize(
    ("sampler", "n", "chain"),
    [
        (Wor(2), 4, "wor:2"),
        (Wr(2), 3, "wr:2"),
        (MustOW(2, 2), 3, "wor:2,wr:2"),
        (MustWW(2, 2), 3, "wr:2,wr:2"),
    ],
)
def test_no_bound_of_two_steps_is_below_the_truth(
    sampler: Sampler, n: int, chain: str, scale: float
) -> None:
    epsilons = (0.0, 0.5, 2.0)
    sides = all_neighbours(n)
    p, q = cell_masses(
        *sample_counts(n, stages(chain)), *sides, scale, 0.05 if scale < 0.2 else 0.02
    )
    for epsilon, value in zip(epsilons, two_steps(p, q, epsilons), strict=True):
        answer = dpsub.account(
            sampler,
            n,
            noise_multiplier=scale,
            steps=2,
            epsilon=epsilon,
            width=0.01,
            adjacency="substitute",
        )
        assert value <= answer.upper + 1e-12
        if chain == "wor:2" and scale < 0.2:
            # two inclusions are told apart almost surely: the truth is near 1 - (1 - q)^2, and so
            # is the bound
            assert value > 0.745
            assert answer.upper < 0.752


def with_and_without(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all data sets in {-1, 0, 1} of n records, with one record more in front and without
    it."""
    rest = list(itertools.combinations_with_replacement((-1.0, 0.0, 1.0), n))
    found = [((v, *others), others) for v in (-1.0, 0.0, 1.0) for others in rest]
    return np.array([one for one, _ in found]), np.array([other for _, other in found])


@pytest.mark.parametrize("scale", few([0.06, 0.3, 1.0, 3.0], most=2))
@pytest.mark.parametrize(
    ("sampler", "n", "chain"),
    [
        (Wor(2), 3, "wor:2"),
        (Wr(2), 2, "wr:2"),
        (MustOW(2, 2), 3, "wor:2,wr:2"),
        (MustWW(2, 2), 2, "wr:2,wr:2"),
        (Multistage.of_text("wor:2,poisson:0.5"), 3, "wor:2,poisson:0.5"),
    ],
)
def test_no_bound_of_a_record_more_or_less_is_below_the_truth(
    sampler: Sampler, n: int, chain: str, scale: float
) -> None:
    epsilons, width = (0.0, 0.5, 2.0), 0.05 if scale < 0.2 else 0.02
    both = with_and_without(n)
    p, q = (
        cell_masses(*sample_counts(data.shape[1], stages(chain)), data, data, scale, width)[0]
        for data in both
    )
    asked = {"noise_multiplier": scale, "adjacency": "add_remove", "width": 1e-3}
    for place, epsilon in enumerate(epsilons):
        once = max(
            float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum(axis=1).max())
            for a, b in ((p, q), (q, p))
        )
        truth = max(two_steps(p, q, epsilons)[place], two_steps(q, p, epsilons)[place])
        for steps, value in ((1, once), (2, truth)):
            answer = dpsub.account(sampler, n, steps=steps, epsilon=epsilon, **asked)
            assert value <= answer.upper + 1e-12
            assert answer.lower <= value * (1 + 1e-2) + 1e-9  # the worst data sets are on the grid
            assert (answer.kind == "exact") == (len(stages(chain)) == 1)
            if answer.kind == "exact" and scale >= 1 and value > 1e-3:
                # planted fault: an occurrence moves the sum by C only, as if the sample became
                # larger
                less = {**asked, "noise_multiplier": 2 * scale}
                assert dpsub.account(sampler, n, steps=steps, epsilon=epsilon, **less).upper < value


def test_two_steps_by_hand() -> None:
    # randomised response twice: (3/4, 1/4) against (1/4, 3/4)
    p, q = np.array([[0.75, 0.25]]), np.array([[0.25, 0.75]])
    np.testing.assert_allclose(two_steps(p, q, (0.0,)), 0.5, rtol=2e-3)
    assert two_steps(p, q, (0.0,))[0] <= 0.5


# the samplers take turns: one case of each, then three more
@pytest.mark.parametrize("index", few(range(20), most=5))
def test_ends_are_ordered_for_any_noise_and_number_of_steps(index: int) -> None:
    rng = stream(
        20261, experiment="random_accounts", cell={"case": index}, role="data", replicate=0
    )
    n = int(rng.integers(20, 2000))
    m = int(rng.integers(2, max(3, min(n // 2, 15))))
    samplers = [Wor(m), Wr(m), MustOW(min(n, 2 * m), m), MustWW(min(n, 2 * m), m), Poisson(m / n)]
    sampler: Sampler = samplers[index % len(samplers)]
    size = None if isinstance(sampler, Poisson) else n
    scale = float(np.exp(rng.uniform(math.log(0.05), math.log(5.0))))
    k = round(float(np.exp(rng.uniform(0.0, math.log(1e4)))))
    asked = {"noise_multiplier": scale, "epsilon": float(rng.uniform(0, 4)), "width": 0.05}
    asked["adjacency"] = str(sampler.relation)
    answer = dpsub.account(sampler, size, steps=k, **asked)
    assert 0 <= answer.lower <= answer.upper <= 1
    # an inclusion is at most a sure loss
    assert answer.upper <= 1 - (1 - sampler.multiplicity_law(n).eta) ** k + 1e-6
    if index < 5:
        assert answer.lower <= dpsub.account(sampler, size, steps=k + k // 2 + 1, **asked).upper


def multiset_law(slots: int, draws: int, others: int) -> dict[tuple[int, ...], Fraction]:
    """Return the law of how often each of `others` records is among uniform draws from slots that
    are filled with them."""
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for filled in itertools.product(range(others), repeat=slots):
        for drawn in itertools.product(range(slots), repeat=draws):
            counts = Counter(filled[slot] for slot in drawn)
            law[tuple(counts[record] for record in range(others))] += Fraction(
                1, others**slots * slots**draws
            )
    return law


@pytest.mark.parametrize(
    ("n", "b", "m"), [(1, 2, 2), (2, 2, 2), (2, 3, 2), (3, 3, 2), (2, 2, 3), (3, 2, 1)]
)
def test_a_sample_without_the_record_is_one_of_which_it_is_refilled(n: int, b: int, m: int) -> None:
    """The proof of Theorem 32 decomposes the law, here in rational numbers, with coefficients 0 <=
    theta_j <= 1."""
    copies = [Fraction(math.comb(b, j) * n ** (b - j), (n + 1) ** b) for j in range(b + 1)]
    hit = [1 - Fraction(b - j, b) ** m for j in range(b + 1)]
    eta = sum(pi * h for pi, h in zip(copies, hit, strict=True))
    # W_(b-j); empty where no slot is left
    drawn = [multiset_law(b - j, m, n) for j in range(b + 1)]
    for place in drawn[0]:
        left_out = sum(
            pi * (1 - h) * w[place] for pi, h, w in zip(copies, hit, drawn, strict=True) if h < 1
        )
        refilled = sum(
            pi * (drawn[0][place] - ((1 - h) * w[place] if h < 1 else 0))
            for pi, h, w in list(zip(copies, hit, drawn, strict=True))[1:]
        )
        assert left_out + refilled == drawn[0][place]
    assert all(0 <= (h - eta) / (1 - eta) <= 1 for h in hit[1:])


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(
    ("n", "b", "m"), [(1, 2, 2), (2, 2, 2), (2, 3, 2), (3, 2, 2), (2, 2, 3), (2, 3, 1)]
)
def test_the_group_bound_of_two_stages_holds_with_a_record_more(
    n: int, b: int, m: int, scale: float
) -> None:
    """Theorem 32 holds: T2 with the law of the copies among n + 1 records, in both directions."""
    chain = stages(f"wr:{b},wr:{m}")
    sides = [(data, sample_counts(data.shape[1], chain)) for data in with_and_without(n)]
    p, q = (cell_masses(*counts, data, data, scale, 0.02)[0] for data, counts in sides)
    counts, weights = sides[0][1]
    orders = np.exp([0.0, 0.2, 0.7, 1.5, 3.0])
    found = [
        [np.maximum(one - a * other, 0.0).sum(axis=1).max() for one, other in ((p, q), (q, p))]
        for a in orders
    ]
    truth, law = np.max(found, axis=1), np.bincount(counts[:, 0], weights)

    def group_bound(law: np.ndarray, shift: float = 2.0) -> np.ndarray:
        eta, copies = law[1:].sum(), np.arange(1, law.size)
        lifted, distance = 1 + (orders[:, None] - 1) / eta, shift * copies / scale
        lines = np.log(lifted) / distance
        return (ndtr(distance / 2 - lines) - lifted * ndtr(-distance / 2 - lines)) @ law[1:]

    assert np.all(truth <= group_bound(law) + 1e-12)
    # planted fault: a copy takes the place of nobody
    assert np.any(truth > group_bound(law, shift=1.0) + 1e-6)
