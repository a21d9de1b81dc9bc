"""DP-SGD against plain loops over the same draws, and their algebra."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import plain_loops
from dpsub import sampling
from dpsub.errors import ArgumentError, NumericalError
from dpsub.learning import descent as dp_sgd
from dpsub.learning.descent import binary_metrics, cross_entropy
from dpsub.sampling.frame import Frame, Samples

SAMPLERS = ("poisson", "wor", "wr", "must_wo", "must_ow", "must_ww")


def _data(n: int, replicates: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    x = np.concatenate(
        [np.ones((replicates, n, 1)), rng.standard_normal((replicates, n, 2))], axis=2
    )
    return x, x @ np.array([1.0, 0.5, 0.2]) + rng.standard_normal((replicates, n))


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(("clip", "divisor"), [(3.0, None), (None, None), (0.5, 8.0)])
def test_vectorised_descent_equals_the_loop_over_records(
    sampler: str, clip: float | None, divisor: float | None
) -> None:
    n, m, b, iterations, replicates = 60, 8, 15, 12, 3
    x, y = _data(n, replicates)
    sampler = sampling.of_sizes(sampler, n=n, m=m, b=b)
    blocks = [
        sampler.draw_block(Frame(n), iterations, np.random.default_rng(i))
        for i in range(replicates)
    ]
    noise = np.random.default_rng(9).standard_normal((replicates, iterations, 3))
    initial = np.array([-1.0, -1.0, -1.0])
    descent = dp_sgd.Descent(dp_sgd.squared_error_residual, 0.04, clip, divisor)
    width = dp_sgd.batch_width(sampler, n)
    ours = np.array(list(dp_sgd.descend(x, y, blocks, noise, initial, descent, width=width)))
    for i in range(replicates):
        loop = plain_loops.linear_regression_path(
            x[i], y[i], blocks[i], noise[i], initial, clip=clip, learning_rate=0.04, divisor=divisor
        )
        np.testing.assert_allclose(ours[:, i], loop, rtol=1e-12, atol=1e-13)


def test_a_replicate_does_not_depend_on_its_company() -> None:
    n, iterations = 80, dp_sgd.ITERATIONS_AT_ONCE + 7
    x, y = _data(n, 5)
    sampler = sampling.of_sizes("must_ww", n=n, m=10, b=20)
    blocks = [sampler.draw_block(Frame(n), iterations, np.random.default_rng(i)) for i in range(5)]
    descent = dp_sgd.Descent(dp_sgd.squared_error_residual, 0.05, 3.0)
    width = dp_sgd.batch_width(sampler, n)
    *_, together = dp_sgd.descend(x, y, blocks, None, np.zeros(3), descent, width=width)
    for i in range(5):
        part = slice(i, i + 1)
        *_, alone = dp_sgd.descend(
            x[part], y[part], blocks[part], None, np.zeros(3), descent, width=width
        )
        assert np.array_equal(alone[0], together[i]), (
            "the same bytes, whoever is computed beside it"
        )


def test_a_wrong_clip_is_seen() -> None:
    # planted fault: clipping at twice the bound must not pass the comparison with the loop
    x, y = _data(40, 1)
    sampler = sampling.of_sizes("wr", n=40, m=10)
    blocks = [sampler.draw_block(Frame(40), 5, np.random.default_rng(0))]
    wrong = dp_sgd.Descent(dp_sgd.squared_error_residual, 0.04, 1.0)
    *_, ours = dp_sgd.descend(x, y, blocks, None, -np.ones(3), wrong, width=10)
    loop = plain_loops.linear_regression_path(
        x[0], y[0], blocks[0], None, -np.ones(3), clip=0.5, learning_rate=0.04
    )
    assert not np.allclose(ours[0], loop[-1], rtol=1e-6)


def test_shared_features_equal_repeated_ones() -> None:
    x, y = _data(50, 1)
    sampler = sampling.of_sizes("wor", n=50, m=10)
    blocks = [sampler.draw_block(Frame(50), 6, np.random.default_rng(i)) for i in range(2)]
    descent = dp_sgd.Descent(dp_sgd.logistic_residual, 0.5, 1.0)
    label = (y > 1).astype(float)
    *_, shared = dp_sgd.descend(x[0], label[0], blocks, None, np.zeros(3), descent, width=10)
    *_, apart = dp_sgd.descend(
        np.repeat(x, 2, axis=0),
        np.repeat(label, 2, axis=0),
        blocks,
        None,
        np.zeros(3),
        descent,
        width=10,
    )
    assert np.array_equal(shared, apart)


def test_an_empty_batch_moves_by_the_noise_alone() -> None:
    nothing = Samples(np.empty(0, dtype=int), np.empty(0, dtype=int), np.array([0, 0]))
    x, y = _data(5, 1)
    descent = dp_sgd.Descent(dp_sgd.squared_error_residual, 0.5, 1.0)
    noise = np.ones((1, 1, 3))
    (beta,) = dp_sgd.descend(x, y, [nothing], noise, np.zeros(3), descent, width=4)
    np.testing.assert_allclose(beta, -0.5 * np.ones((1, 3)))


def test_batches_wider_than_the_law_allows_are_refused() -> None:
    block = sampling.of_sizes("wor", n=20, m=9).draw_block(Frame(20), 2, np.random.default_rng(0))
    with pytest.raises(NumericalError, match="at most 8 distinct records, got 9"):
        list(dp_sgd.batches([block], 8))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_batch_width_covers_the_law(sampler: str) -> None:
    sampler = sampling.of_sizes(sampler, n=1000, m=100, b=200)
    width = dp_sgd.batch_width(sampler, 1000)
    assert sampler.distinct_law(1000)[width + 1 :].sum() < 1e-30
    assert sampler.distinct_law(1000)[width:].sum() > 1e-30


@pytest.mark.parametrize("name", sampling.SCHEDULES.names())
def test_batch_width_covers_every_step_of_a_schedule(name: str) -> None:
    schedule = sampling.SCHEDULES.get(name).of_sizes(1003, m=100, cycle=7)
    width, steps = dp_sgd.batch_width(schedule, 1003), schedule.steps_per_epoch(1003)
    block = schedule.draw_block(Frame(1003), 20 * steps, np.random.default_rng(1))
    assert block.distinct.max() <= width
    for t, (indices, counts) in enumerate(dp_sgd.batches([block], width)):
        present = counts[0] > 0
        assert indices[0][present].tolist() == block[t].indices.tolist()


def test_binary_metrics_by_hand() -> None:
    truth = np.array([1, 1, 1, 0, 0, 0, 0, 1])
    predicted = np.array([1, 1, 0, 0, 0, 1, 0, 0], dtype=bool)
    found = binary_metrics(predicted, truth)
    expected = {
        "accuracy": 5 / 8,
        "sensitivity": 1 / 2,
        "specificity": 3 / 4,
        "ppv": 2 / 3,
        "npv": 3 / 5,
        "f1": 4 / 7,
    }
    assert found == pytest.approx(expected, rel=1e-15)
    assert np.isnan(binary_metrics(np.zeros(3, dtype=bool), np.zeros(3))["ppv"])


def test_cross_entropy_survives_large_arguments() -> None:
    z, y = np.array([0.0, 800.0, -800.0, 2.0]), np.array([1.0, 1.0, 1.0, 0.0])
    expected = (np.log(2) + 0.0 + 800.0 + np.log1p(np.exp(2.0))) / 4
    assert cross_entropy(z, y) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"learning_rate": 0.0, "clip": 1.0}, "learning_rate must be above 0"),
        ({"learning_rate": 0.1, "clip": -1.0}, "clip must be above 0"),
        ({"learning_rate": float("nan"), "clip": 1.0}, "learning_rate must be finite"),
    ],
)
def test_bad_descents_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        dp_sgd.Descent(dp_sgd.squared_error_residual, **arguments)
