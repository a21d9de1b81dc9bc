"""Models trained by DP-SGD: gradients, clipping, counts, chunks, against written-out records and
scikit-learn."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import plain_loops
from dpsub import sampling
from dpsub.errors import ArgumentError
from dpsub.learning import descent, models
from dpsub.learning.descent import train
from dpsub.learning.models import KMeans, Linear, Logistic, Model, Perceptron, Softmax
from dpsub.sampling.frame import Frame, Samples

D = 5
MODELS: dict[str, Model] = {
    "linear": Linear(D),
    "logistic": Logistic(D),
    "softmax": Softmax(D, 3),
    "kmeans": KMeans(D, 4),
    "perceptron": Perceptron(D, 6, 3),
}
EACH = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def _data(model: Model, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, model.d))
    if isinstance(model, Linear):
        return x, rng.standard_normal(n)
    return x, rng.integers(2 if isinstance(model, Logistic) else 3, size=n)


def _start(model: Model, runs: int, seed: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((runs, model.n_parameters))


def _gradient(
    model: Model, parameters: np.ndarray, x: np.ndarray, y: np.ndarray, h: float = 1e-6
) -> np.ndarray:
    """Return the gradient of one record's loss by central differences, shape (p,)."""
    moved = np.concatenate(
        [parameters + h * np.eye(len(parameters)), parameters - h * np.eye(len(parameters))]
    )
    values = model.loss(moved, x[None], y[None])
    return (values[: len(parameters)] - values[len(parameters) :]) / (2 * h)


def _blocks(n: int, m: int, steps: int, seeds: int, sampler: str = "wr") -> list[Samples]:
    drawn = sampling.of_sizes(sampler, n=n, m=m)
    return [drawn.draw_block(Frame(n), steps, np.random.default_rng(i)) for i in range(seeds)]


@EACH
def test_gradients_are_those_of_the_loss(model: Model) -> None:
    x, y = _data(model, 7)
    parameters = _start(model, 2)
    layers = model.backward(parameters, x, y)
    norms = models.squared_norms(layers)
    for record in range(len(x)):
        weights = np.zeros((2, len(x)))
        weights[:, record] = 1
        found = models.weighted_sum(layers, weights)
        for run in range(2):
            expected = _gradient(model, parameters[run], x[record], y[record])
            np.testing.assert_allclose(found[run], expected, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(norms[run, record], found[run] @ found[run], rtol=1e-12)


@EACH
@pytest.mark.parametrize("clip", (0.3, 100.0))
def test_training_equals_the_loop_over_records(model: Model, clip: float) -> None:
    n, steps, seeds, each = 40, 6, 2, 2
    x, y = _data(model, n)
    # a sample larger than the data: records are counted several times
    blocks = _blocks(n, 50, steps, seeds)
    assert max(block.counts.max() for block in blocks) > 2
    start, rates, clips = (
        _start(model, seeds * each),
        np.array([0.1, 0.4, 0.1, 0.4]),
        clip * np.array([1, 2, 1, 2]),
    )
    found = train(
        model,
        x,
        y,
        blocks,
        initial=start,
        learning_rate=rates,
        clip=clips,
        divisor=50,
        noise_multiplier=0.3,
        rngs=[np.random.default_rng(70 + i) for i in range(seeds)],
    )
    for run in range(seeds * each):
        normal = np.random.default_rng(70 + run // each).standard_normal(
            (steps, model.n_parameters)
        )
        loop = plain_loops.private_descent(
            model,
            x,
            y,
            blocks[run // each],
            0.3 * clips[run] * normal,
            start[run],
            clip=clips[run],
            learning_rate=rates[run],
            divisor=50,
        )
        np.testing.assert_allclose(found[run], loop, rtol=1e-10, atol=1e-12)


@EACH
def test_no_contribution_is_longer_than_the_clip(model: Model) -> None:
    x, y = _data(model, 200)
    x[:3] = np.array([[0], [1e100], [1e-170]])
    start = 5 * _start(model, 1)
    for record in range(len(x)):
        one = Samples(np.array([record]), np.array([1]), np.array([0, 1]))
        moved = train(
            model,
            x,
            y,
            [one],
            initial=np.zeros((1, model.n_parameters)) if record < 3 else start,
            learning_rate=1.0,
            clip=0.7,
            divisor=1.0,
        )
        step = moved - (0 if record < 3 else start)
        assert np.linalg.norm(step) <= 0.7 * (1 + 1e-14) + 1e-14 * np.abs(start).max()


def test_thinned_batches_have_the_mean_of_all_records_and_no_longer_contributions() -> None:
    model, clip, n = MODELS["kmeans"], 6.0, 60
    x, y = _data(model, n)
    start, chances = _start(model, 1), np.random.default_rng(2).uniform(0.05, 1.0, n)
    settings = {"initial": start, "learning_rate": 1.0, "divisor": 1.0}
    expected, cut = np.zeros(model.n_parameters), list[bool]()
    for record in range(n):
        one = Samples(np.array([record]), np.array([1]), np.array([0, 1]))
        kept = start - train(model, x, y, [one], clip=clip, chances=chances, **settings)
        alone = start - train(model, x, y, [one], clip=clip * chances[record], **settings)
        np.testing.assert_allclose(kept, alone / chances[record], rtol=1e-12)
        assert np.linalg.norm(kept) <= clip * (1 + 1e-14)
        expected += alone[0]
        cut.append(np.linalg.norm(alone) > clip * chances[record] * (1 - 1e-9))
    assert 10 < sum(cut) < n - 10, "some gradients are longer than their bound, some are not"
    whole = Samples(np.tile(np.arange(n), 4000), np.ones(4000 * n, dtype=int), n * np.arange(4001))
    thinned = whole.thinned(chances, np.random.default_rng(3))
    sums = np.array(
        [
            start[0]
            - train(model, x, y, [thinned[t : t + 1]], clip=clip, chances=chances, **settings)[0]
            for t in range(0, 400)
        ]
    )
    error = sums.std(axis=0) / 20
    assert (np.abs(sums.mean(axis=0) - expected) <= 5 * error + 1e-12).all()
    kept_shares = np.bincount(thinned.indices, minlength=n) / 4000
    assert (np.abs(kept_shares - chances) <= 5 * np.sqrt(chances * (1 - chances) / 4000)).all()


@pytest.mark.parametrize("sampler", ("poisson", "wor", "wr", "must_wo", "must_ow", "must_ww"))
@pytest.mark.parametrize(("clip", "divisor"), [(3.0, None), (None, None), (0.5, 8.0)])
def test_every_step_equals_that_of_the_loop_over_records(
    sampler: str, clip: float | None, divisor: float | None
) -> None:
    n, steps, seeds, sigma = 60, 12, 3, 0.7
    rng = np.random.default_rng(5)
    x = np.concatenate([np.ones((seeds, n, 1)), rng.standard_normal((seeds, n, 2))], axis=2)
    y = x @ np.array([1.0, 0.5, 0.2]) + rng.standard_normal((seeds, n))
    drawn = sampling.of_sizes(sampler, n=n, m=8, b=15)
    blocks = [drawn.draw_block(Frame(n), steps, np.random.default_rng(i)) for i in range(seeds)]
    path = list[np.ndarray]()
    found = train(
        Linear(3),
        x.reshape(-1, 3),
        y.reshape(-1),
        descent.on_own_records(blocks, n),
        initial=-np.ones(3),
        learning_rate=0.04,
        clip=clip,
        divisor=divisor,
        # on the sum if its divisor is fixed, else on the average; without a clip there is no noise
        noise_multiplier=0.0 if clip is None else sigma * (divisor or 1.0) / clip,
        rngs=None if clip is None else [np.random.default_rng(70 + i) for i in range(seeds)],
        after_step=lambda betas: path.append(betas.copy()),
    )
    assert np.array_equal(found, path[-1]) and len(path) == steps
    for i in range(seeds):
        normal = np.random.default_rng(70 + i).standard_normal((steps, 3))
        loop = plain_loops.linear_regression_path(
            x[i],
            y[i],
            blocks[i],
            None if clip is None else sigma * normal,
            -np.ones(3),
            clip=clip,
            learning_rate=0.04,
            divisor=divisor,
        )
        np.testing.assert_allclose([betas[i] for betas in path], loop, rtol=1e-12, atol=1e-13)


def test_a_clip_that_is_too_large_is_seen() -> None:
    # planted fault: the bound times the count instead of the record's own must not pass the
    # comparison with the loop
    model = MODELS["softmax"]
    x, y = _data(model, 5)
    thrice = Samples(np.array([2]), np.array([3]), np.array([0, 1]))
    start = _start(model, 1)
    found = train(model, x, y, [thrice], initial=start, learning_rate=1.0, clip=0.01, divisor=1.0)
    assert np.linalg.norm(found - start) == pytest.approx(0.03)
    wrong = plain_loops.private_descent(
        model, x, y, thrice, None, start[0], clip=0.03, learning_rate=1.0, divisor=1
    )
    assert not np.allclose(found[0], wrong, rtol=1e-3)


@EACH
def test_a_run_has_the_same_bytes_however_it_is_computed(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, seeds = 3000, 4
    x, y = _data(model, n)
    blocks = [
        sampling.Poisson(rate).draw_block(Frame(n), 4, np.random.default_rng(i))
        for i, rate in enumerate((0.01, 0.2, 0.1, 0.9))
    ]
    start = _start(model, seeds)

    def run(part: slice, after_step: Callable[[np.ndarray], None] | None = None) -> np.ndarray:
        rngs = [np.random.default_rng(i) for i in range(seeds)[part]]
        return train(
            model,
            x,
            y,
            blocks[part],
            initial=start[part],
            learning_rate=0.5,
            clip=1.0,
            divisor=30,
            noise_multiplier=1.0,
            rngs=rngs,
            after_step=after_step,
        )

    whole = run(slice(None))
    assert np.array_equal(run(slice(None), lambda _: None), whole), "whether it is watched or not"
    measured = model.loss(whole, x, y)
    for i in range(seeds):
        assert np.array_equal(run(slice(i, i + 1))[0], whole[i])
        assert model.loss(whole[i : i + 1], x, y)[0] == measured[i]
    monkeypatch.setattr(models, "NUMBERS_AT_ONCE", 1)
    monkeypatch.setattr(descent, "NUMBERS_AT_ONCE", 1)
    assert np.array_equal(run(slice(None), lambda _: None), whole)
    assert np.array_equal(run(slice(None)), whole)
    assert np.array_equal(model.loss(whole, x, y), measured)


@EACH
def test_an_empty_batch_moves_by_the_noise_alone(model: Model) -> None:
    x, y = _data(model, 5)
    nothing = Samples(np.empty(0, dtype=int), np.empty(0, dtype=int), np.array([0, 0]))
    start = _start(model, 1)
    found = train(
        model,
        x,
        y,
        [nothing],
        initial=start,
        learning_rate=0.5,
        clip=2.0,
        divisor=10.0,
        noise_multiplier=3.0,
        rngs=[np.random.default_rng(1)],
    )
    noise = 3.0 * 2.0 * np.random.default_rng(1).standard_normal(model.n_parameters)
    np.testing.assert_allclose(found[0], start[0] - 0.5 * noise / 10)


def test_single_precision_rows_are_summed_in_double() -> None:
    model = MODELS["perceptron"]
    x, y = _data(model, 300)
    x, blocks, start = x.astype(np.float32), _blocks(300, 64, 3, 1), _start(model, 1)
    settings = {"initial": start, "learning_rate": 0.5, "clip": 1.0, "divisor": 64}
    assert np.array_equal(
        train(model, x, y, blocks, **settings), train(model, x.astype(float), y, blocks, **settings)
    )


@pytest.mark.parametrize("name", ("logistic", "softmax"))
def test_full_batches_without_noise_reach_the_optimum_of_scikit_learn(name: str) -> None:
    from sklearn.linear_model import LogisticRegression

    model, n = MODELS[name], 200
    x, y = _data(model, n)
    whole = Samples(np.tile(np.arange(n), 400), np.ones(400 * n, dtype=int), n * np.arange(401))
    found = train(
        model,
        x,
        y,
        [whole],
        initial=model.initial(np.random.default_rng()),
        learning_rate=1.0,
        clip=1e9,
        divisor=n,
    )
    peer = LogisticRegression(C=1e10, fit_intercept=False, tol=1e-10, max_iter=1000).fit(x, y)
    weights = found.reshape(-1, D)
    centred = weights - weights.mean(axis=0) if name == "softmax" else weights
    np.testing.assert_allclose(centred, peer.coef_, atol=1e-4)
    assert model.accuracy(found, x, y)[0] == pytest.approx(peer.score(x, y))


def test_full_batches_of_k_means_end_where_lloyd_ends() -> None:
    from sklearn.cluster import KMeans as Peer

    rng = np.random.default_rng(0)
    model, n = KMeans(2, 3), 300
    x = np.repeat([[0.0, 2.0], [2.0, 0.0], [-2.0, -2.0]], 100, axis=0) + 0.2 * rng.standard_normal(
        (n, 2)
    )
    start = np.array([[0.0, 1.0, 1.0, 0.0, -1.0, -1.0]])
    whole = Samples(np.tile(np.arange(n), 60), np.ones(60 * n, dtype=int), n * np.arange(61))
    found = train(
        model, x, np.zeros(n), [whole], initial=start, learning_rate=1.0, clip=1e9, divisor=n
    )
    peer = Peer(3, init=start.reshape(3, 2), n_init=1).fit(x)
    np.testing.assert_allclose(found.reshape(3, 2), peer.cluster_centers_, atol=1e-6)
    assert model.loss(found, x, np.zeros(n))[0] * n == pytest.approx(peer.inertia_)


def test_of_equally_near_centres_one_moves() -> None:
    model = KMeans(2, 3)
    one = Samples(np.array([0]), np.array([1]), np.array([0, 1]))
    found = train(
        model,
        np.ones((1, 2)),
        np.zeros(1),
        [one],
        initial=np.zeros((1, 6)),
        learning_rate=0.25,
        clip=9.0,
        divisor=1.0,
    )
    assert found.reshape(3, 2).tolist() == [[0.5, 0.5], [0, 0], [0, 0]]


def test_models_without_classes_have_no_accuracy() -> None:
    x, y = _data(MODELS["linear"], 10)
    for name in ("linear", "kmeans"):
        assert np.isnan(MODELS[name].accuracy(_start(MODELS[name], 2), x, y)).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"initial": np.zeros((3, D))}, "multiple of the seeds"),
        ({"initial": np.zeros(4)}, "initial 5 parameters per run"),
        ({"clip": np.array([0.0, 1.0])}, "clip must be above 0"),
        ({"clip": np.inf}, "clip must be finite"),
        ({"noise_multiplier": 1.0}, "a noise generator per seed"),
        ({"noise_multiplier": 1.0, "clip": None}, "noise needs a clip"),
        ({"divisor": 0}, "divisor must be above 0"),
        ({"chances": np.linspace(0, 1, 20)}, "one in (0, 1] for each of the 20 rows"),
        ({"chances": np.ones(4)}, "one in (0, 1] for each of the 20 rows"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: dict[str, object], message: str) -> None:
    x, y = _data(MODELS["logistic"], 20)
    settings = {
        "initial": np.zeros((2, D)),
        "learning_rate": 0.1,
        "clip": 1.0,
        "divisor": 4,
        **wrong,
    }
    with pytest.raises(ArgumentError, match=re.escape(message)):
        train(MODELS["logistic"], x, y, _blocks(20, 4, 3, 2), **settings)
