"""The best of a random number of runs: bounds against laws that are enumerated run by run, the
number of runs, and the bound of Papernot and Steinke."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

import dpsub
from dpsub.accounting.questions import selection
from dpsub.accounting.questions.export import ComposedLaw
from dpsub.accounting.questions.selection import NumberOfRuns
from dpsub.cli import main
from dpsub.errors import UnsupportedError
from tests.few import few

LAWS = {
    "geometric": NumberOfRuns("geometric", 4),
    "logarithmic": NumberOfRuns("logarithmic", 3),
    "few": NumberOfRuns("negative_binomial", 2.5, -0.5),
    "many": NumberOfRuns("negative_binomial", 6, 2.5),
    "poisson": NumberOfRuns("poisson", 3),
    "fixed": NumberOfRuns("fixed", 3),
}
# laws of one output on two data sets: randomised response, one with masses that tell at once, and
# two without a structure
MECHANISMS = {
    "response": ((0.7, 0.3), (0.3, 0.7)),
    "revealing": ((0.05, 0.6, 0.35, 0.0), (0.0, 0.4, 0.55, 0.05)),
    "three": ((0.5, 0.2, 0.3), (0.2, 0.45, 0.35)),
    "four": ((0.02, 0.18, 0.5, 0.3), (0.01, 0.35, 0.3, 0.34)),
}
EPSILONS = (0.0, 0.3, 1.0, 2.0)
MOST = 700  # runs that are enumerated


def masses_of(runs: NumberOfRuns) -> np.ndarray:
    """Return P(K = k) by its definition, shape (MOST,)."""
    k = np.arange(MOST)
    if runs.distribution == "fixed":
        return (k == runs.mean).astype(float)
    if runs.distribution == "poisson":
        logs = k * math.log(runs.mean) - runs.mean - np.array([math.lgamma(i + 1) for i in k])
        return np.exp(logs)
    shape = {"geometric": 1.0, "logarithmic": 0.0}.get(runs.distribution, runs.shape)
    assert shape is not None
    masses = np.zeros(MOST)
    masses[1] = 1.0
    for i in range(2, MOST):
        masses[i] = masses[i - 1] * (1 - runs.gamma) * (i - 1 + shape) / i
    return masses / masses.sum()


def best_of(masses: np.ndarray, law: np.ndarray) -> np.ndarray:
    """Return the law of the best output, the last one being the best, and of no output at all."""
    below = np.append(0.0, np.cumsum(law))
    k = np.arange(MOST)
    at_most = np.array([float(np.sum(masses * below_y**k)) for below_y in np.minimum(below, 1.0)])
    return np.append(np.diff(at_most), masses[0])


def rankings(p: tuple[float, ...], q: tuple[float, ...]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for order in itertools.permutations(range(len(p))):
        yield np.array(p)[list(order)], np.array(q)[list(order)]


def largest_delta(masses: np.ndarray, name: str, epsilon: float) -> float:
    """Return the largest hockey-stick divergence of the best output, over all rankings."""
    return max(
        float(np.maximum(best_of(masses, p) - math.exp(epsilon) * best_of(masses, q), 0).sum())
        for p, q in rankings(*MECHANISMS[name])
    )


def law_of(name: str, side: str) -> ComposedLaw:
    p, q = np.array(MECHANISMS[name])
    seen = (p > 0) & (q > 0)
    losses, first = np.unique(np.log(p[seen] / q[seen]), return_inverse=True)
    masses = np.bincount(first, p[seen])
    return ComposedLaw(losses, masses, float(p[q == 0].sum()), side, "forward")


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("law", LAWS)
def test_ends_enclose_the_worst_ranking_that_is_enumerated(law: str, name: str) -> None:
    runs, masses = LAWS[law], masses_of(LAWS[law])
    upper = selection._UpperEnd(law_of(name, "upper"), runs)
    lower = selection._LowerEnd(law_of(name, "lower"), runs)
    for epsilon in EPSILONS:
        truth = largest_delta(masses, name, epsilon)
        assert lower.delta(epsilon) <= truth + 1e-12
        assert upper.delta(epsilon) >= truth - 1e-12


def test_three_runs_one_by_one() -> None:
    """The law of the best output is computed from all sequences of outputs."""
    p, _ = MECHANISMS["three"]
    told = np.zeros(4)
    for outputs in itertools.product(range(3), repeat=3):
        told[max(outputs)] += math.prod(p[output] for output in outputs)
    assert best_of(masses_of(LAWS["fixed"]), np.array(p)) == pytest.approx(told)


@pytest.mark.parametrize("fault", ["ranks", "weights"])
def test_a_bound_that_forgets_how_ranks_move_is_found_out(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted faults use the ranks of one data set for both, or leave the number of runs
    out."""
    runs = LAWS["many"]
    if fault == "ranks":
        monkeypatch.setattr(selection.np, "interp", lambda x, *_: x)
    else:
        monkeypatch.setattr(NumberOfRuns, "derivative", lambda _, rest: np.ones(rest.shape))
    end = selection._UpperEnd(law_of("four", "upper"), runs)
    masses = masses_of(runs)
    assert any(end.delta(x) < largest_delta(masses, "four", x) - 1e-6 for x in EPSILONS)


@pytest.mark.parametrize("law", LAWS)
def test_functions_of_the_number_of_runs_are_those_of_its_masses(law: str) -> None:
    runs, masses, k = LAWS[law], masses_of(LAWS[law]), np.arange(MOST)
    assert float(np.sum(masses * k)) == pytest.approx(runs.mean, rel=1e-9)
    rest = np.array([1.0, 0.7, 0.1, 1e-6, 0.0])
    generating = [float(np.sum(masses * x**k)) for x in 1 - rest]
    derivative = [float(np.sum(masses[1:] * k[1:] * x ** (k[1:] - 1))) for x in 1 - rest]
    assert runs.generating(rest) == pytest.approx(np.array(generating), abs=1e-12)
    assert runs.derivative(rest) == pytest.approx(np.array(derivative), rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_draws_have_the_law(law: str) -> None:
    runs, masses, rng = LAWS[law], masses_of(LAWS[law]), np.random.default_rng(1)
    draws = np.array([runs.draw(rng) for _ in range(4000)])
    for k in range(4):
        share, truth = float(np.mean(draws == k)), float(masses[k])
        assert abs(share - truth) <= 5 * math.sqrt(truth * (1 - truth) / draws.size) + 1e-12


def gaussian(mu: float) -> dict[str, float | int]:
    """Return a release that is mu-GDP and no better."""
    return {"noise_multiplier": 10 / mu, "steps": 100}


def renyi(mu: float, runs: NumberOfRuns, delta: float) -> float:
    """Return epsilon by the theorems of Papernot and Steinke, for a Gaussian mechanism."""
    orders = np.concatenate([1 + np.geomspace(1e-3, 1, 200), np.linspace(2, 300, 3000)])
    if runs.distribution == "poisson":
        inner = np.log1p(1 / (orders - 1))
        tail = norm.cdf(mu / 2 - inner / mu) - np.exp(inner) * norm.cdf(-mu / 2 - inner / mu)
        extra = runs.mean * tail
    else:
        shape = {"geometric": 1.0, "logarithmic": 0.0}.get(runs.distribution, runs.shape)
        assert shape is not None
        other = 1 + np.geomspace(1e-3, 1e3, 4000)
        cost = (1 - 1 / other) * other * mu**2 / 2 + math.log(1 / runs.gamma) / other
        extra = np.full(orders.shape, (1 + shape) * cost.min())
    divergence = orders * mu**2 / 2 + extra + math.log(runs.mean) / (orders - 1)
    converted = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return float((divergence + converted).min())


@pytest.mark.parametrize(
    ("law", "mu"), few([(law, mu) for mu in (0.3, 2.0) for law in LAWS if law != "fixed"], 5)
)
def test_the_bound_is_at_most_that_from_renyi_divergences(law: str, mu: float) -> None:
    runs = LAWS[law]
    found = dpsub.select(
        dpsub.Poisson(1.0),
        **gaussian(mu),
        delta=1e-5,
        runs_mean=runs.mean,
        distribution=runs.distribution,
        shape=runs.shape,
    )
    assert found.kind == "bounds"
    assert found.lower <= found.upper <= renyi(mu, runs, 1e-5)
    assert found.upper <= 1.05 * found.lower


def test_one_run_costs_what_it_costs() -> None:
    run = {"noise_multiplier": 1.0, "steps": 100, "delta": 1e-5}
    once = dpsub.account(dpsub.Poisson(0.01), **run)
    found = dpsub.select(dpsub.Poisson(0.01), **run, runs_mean=1, distribution="fixed")
    assert once.lower <= found.upper <= once.upper * 1.003
    assert once.lower * 0.997 <= found.lower <= once.upper


def test_a_fixed_number_of_runs_costs_at_most_the_release_of_all() -> None:
    found = dpsub.select(
        dpsub.Poisson(1.0), **gaussian(0.2), delta=1e-5, runs_mean=2, distribution="fixed"
    )
    both = dpsub.account(dpsub.Poisson(1.0), noise_multiplier=50, steps=200, delta=1e-5)
    assert found.lower <= found.upper <= both.upper


def test_delta_and_epsilon_are_inverse() -> None:
    run = {"noise_multiplier": 1.0, "steps": 100, "runs_mean": 12, "distribution": "poisson"}
    found = dpsub.select(dpsub.Poisson(0.01), **run, delta=1e-5)
    back = dpsub.select(dpsub.Poisson(0.01), **run, epsilon=found.upper)
    assert back.quantity == "delta" and back.lower <= back.upper <= 1e-5
    assert back.upper == pytest.approx(1e-5, rel=1e-4)


def test_a_quick_answer_is_wider_and_valid() -> None:
    run = {"noise_multiplier": 1.0, "steps": 100, "runs_mean": 12, "delta": 1e-5}
    found, quick = (
        dpsub.select(dpsub.Poisson(0.01), **run, quick=quick) for quick in (False, True)
    )
    assert quick.lower <= found.upper <= quick.upper and found.lower <= quick.upper
    assert found.theorem == "Theorem 44, docs/proofs/selection.md"
    assert "geometric number of runs" in str(found)


def test_a_group_pays_more() -> None:
    run = {"noise_multiplier": 2.0, "runs_mean": 3, "delta": 1e-5}
    one, two = (dpsub.select(dpsub.Poisson(0.1), **run, group=group) for group in (1, 2))
    assert one.upper < two.lower


def test_a_ledger_is_one_run() -> None:
    ledger = dpsub.Ledger().add(dpsub.Wor(10), 100, noise_multiplier=4.0, steps=10)
    found = ledger.select(delta=1e-5, runs_mean=12)
    alone = dpsub.select(
        dpsub.Wor(10), 100, noise_multiplier=4.0, steps=10, delta=1e-5, runs_mean=12
    )
    assert (found.lower, found.upper) == (alone.lower, alone.upper)
    assert any("secret" in condition and "runs" in condition for condition in found.conditions)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"runs_mean": 1}, "runs_mean must be above 1, got runs_mean = 1"),
        ({"runs_mean": 2.5, "distribution": "fixed"}, "runs_mean must be a whole number"),
        ({"runs_mean": 3, "distribution": "negative_binomial"}, "shape = None; give it"),
        ({"runs_mean": 3, "shape": 1.0}, "shape = 1.0; drop it"),
        ({"runs_mean": 3, "distribution": "geometrical"}, "geometric"),
        ({"runs_mean": 3, "epsilon": 1.0}, "exactly one of epsilon and delta"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_a_question_out_of_range_is_refused(question: dict[str, object], words: str) -> None:
    with pytest.raises(dpsub.ArgumentError, match=words):
        dpsub.select(dpsub.Poisson(0.1), noise_multiplier=1.0, delta=1e-5, **question)


def test_a_statement_names_the_selection_and_the_guarantee_of_the_best_run() -> None:
    run = {"noise_multiplier": 2.0, "steps": 3, "delta": 1e-5}
    found = dpsub.select(dpsub.Poisson(0.1), runs_mean=12, quick=True, **run)
    stated = found.statement(clip=0.5)
    assert "the best of a geometric number of runs" in stated.sentence
    assert stated.fields["epsilon"] >= found.upper > 0
    assert "mean 12" in stated.fields["selection"]
    # what is known of one run is not known of the best one
    assert not {"mu", "membership", "certificate_sha256"} & set(stated.fields)
    for about_one_run in (found.plot, found.certificate):
        with pytest.raises(UnsupportedError, match="about one run"):
            about_one_run()


def test_the_command_line_states_a_selection(capsys: pytest.CaptureFixture[str]) -> None:
    line = "select poisson --rate .1 --noise-multiplier 2 --steps 3 --delta 1e-5 --runs-mean 3"
    assert main([*line.split(), "--quick", "--statement", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["runs"]["mean"] == 3 and "mean 3" in found["selection"]
    assert "the best of a geometric number of runs" in found["statement"]


@pytest.mark.parametrize(("shape", "mean"), [(-0.98, 2.0), (-0.98, 900.0), (-0.95, 2.0)])
def test_shapes_near_their_limit(shape: float, mean: float) -> None:
    runs = NumberOfRuns("negative_binomial", mean, shape)
    with mpmath.workdps(60):
        gamma, eta = mpmath.mpf(runs.gamma), mpmath.mpf(shape)
        exact = eta * (1 - gamma) / (gamma * (1 - gamma**eta))
        assert float(exact) == pytest.approx(mean, rel=1e-12)
        middle = exact * (gamma / (1 - (1 - gamma) / 2)) ** (1 + eta)
    assert float(runs.derivative(np.array([0.5]))[0]) == pytest.approx(float(middle), rel=1e-12)
    assert runs.draw(np.random.default_rng(0)) >= 1


@pytest.mark.parametrize(("shape", "mean"), [(-0.999, 2.0), (-0.98, 1e6), (-1 + 1e-15, 1.5)])
def test_shapes_beyond_what_doubles_hold(shape: float, mean: float) -> None:
    with pytest.raises(dpsub.ArgumentError, match="so close to -1 that gamma falls below 1e-299"):
        NumberOfRuns("negative_binomial", mean, shape)
