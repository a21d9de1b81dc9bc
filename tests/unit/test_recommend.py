"""What noise each scheme needs for a target, and what is recommended."""

from __future__ import annotations

import random

import pytest

import dpsub
from dpsub.accounting.recommend import SCHEMES, needed, scheme
from dpsub.errors import UnsupportedError

RELATIONS = ("add_remove", "zero_out", "substitute")
SLACK = 1.01  # of the accuracy asked for


def settings(count: int) -> list[tuple[str, str, int, int, int, float, float]]:
    """Random settings: relation, scheme, n, m, epochs, epsilon and delta."""
    rng = random.Random(19)
    return [
        (
            rng.choice(RELATIONS), rng.choice(sorted(SCHEMES)), n := round(10 ** rng.uniform(2, 4)),
            max(1, round(n * 10 ** rng.uniform(-2.5, -0.7))), rng.choice([1, 3, 10]),
            10 ** rng.uniform(-0.3, 0.9), 10 ** rng.uniform(-8, -4),
        )
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("setting", settings(12), ids=lambda setting: " ".join(map(str, setting[:5])))
def test_the_account_proves_the_noise_and_refutes_the_necessary_one(setting: tuple) -> None:
    adjacency, name, n, m, epochs, epsilon, delta = setting
    try:
        plan, steps = scheme(name, n, m, epochs)
        found = needed(plan, n, steps, epsilon=epsilon, delta=delta, adjacency=adjacency)
    except dpsub.DpsubError as error:
        pytest.skip(str(error))
    question = {"steps": steps, "delta": delta, "adjacency": adjacency}
    proved = dpsub.account(plan, n, noise_multiplier=found.noise_multiplier, **question)
    assert proved.upper <= epsilon
    assert found.epsilon_lower <= proved.upper and proved.lower <= found.epsilon_upper <= epsilon
    assert 0 < found.necessary < found.noise_multiplier
    assert dpsub.account(plan, n, noise_multiplier=found.necessary / SLACK, **question).lower > epsilon


@pytest.mark.parametrize(("name", "adjacency"), [("wor", "substitute"), ("must_ow", "add_remove")])
def test_it_is_the_noise_of_a_calibration(name: str, adjacency: str) -> None:
    plan, steps = scheme(name, 10_000, 200, 5)
    target = {"epsilon": 1.0, "delta": 1e-6, "adjacency": adjacency}
    slow = dpsub.calibrate(plan, 10_000, steps=steps, **target)
    assert slow.refuted is not None
    for accuracy in (2e-2, 5e-3):
        found = needed(plan, 10_000, steps, accuracy=accuracy, **target)
        assert found.noise_multiplier == pytest.approx(slow.noise_multiplier, rel=2 * accuracy)
        assert found.necessary == pytest.approx(slow.refuted, rel=2 * accuracy)


def test_a_missing_proof_is_said() -> None:
    plan, steps = scheme("shuffle", 1000, 100, 1)
    with pytest.raises(UnsupportedError, match="under add_remove"):
        needed(plan, 1000, steps, epsilon=1.0, delta=1e-6, adjacency="add_remove")
