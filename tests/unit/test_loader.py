"""Training loops as the accountant sees them: batches that a loader really makes, noise on the sum,
and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpsub

RUN = {"noise_multiplier": 2.0, "epochs": 2}


def kinds(run: dpsub.LoaderRun) -> list[tuple[object, int | None, int]]:
    return [(release.sampler, release.n, release.steps) for release in run.releases]


@pytest.mark.parametrize(
    ("n", "batch_size", "loop", "expected"),
    [
        (100, 30, "poisson", [(dpsub.Poisson(1 / 4), 100, 8)]),
        (100, 30, "poisson drop_last", [(dpsub.Poisson(1 / 3), 100, 6)]),
        (100, 30, "shuffle", [(dpsub.Shuffle(30), 100, 8)]),
        (100, 30, "shuffle drop_last", [(dpsub.Shuffle(30), 90, 6)]),
        (100, 25, "shuffle drop_last", [(dpsub.Shuffle(25), 100, 8)]),
        (100, 5, "shuffle accumulation=2 ranks=2", [(dpsub.Shuffle(20), 100, 10)]),
        (100, 200, "shuffle", [(dpsub.Shuffle(100), 100, 2)]),
        (100, 30, "", [(dpsub.Deterministic(30), 100, 8)]),
        (100, 30, "shuffle shuffle_buffer=50", [(dpsub.Deterministic(30), 100, 8)]),
        (100, 30, "shuffle shuffle_buffer=100", [(dpsub.Shuffle(30), 100, 8)]),
        (100, 30, "replacement", [(dpsub.Wr(30), 100, 6), (dpsub.Wr(10), 100, 2)]),
        (100, 30, "replacement drop_last", [(dpsub.Wr(30), 100, 6)]),
    ],
    ids=str,
)
def test_sampler_and_steps(
    n: int, batch_size: int, loop: str, expected: list[tuple[object, int, int]]
) -> None:
    pairs = (word.partition("=") for word in loop.split())
    options: dict[str, Any] = {name: int(value) if value else True for name, _, value in pairs}
    run = dpsub.from_loader(n, batch_size, **RUN, **options)
    assert kinds(run) == expected
    assert run.steps == sum(steps for _, _, steps in expected)
    assert run.account(delta=1e-5).adjacency == run.adjacency


def test_ranks_share_a_shuffled_epoch_as_one_loader_of_larger_batches() -> None:
    """By the definition of a distributed sampler: rank r has every `ranks`-th record of one
    order."""
    n, size, ranks = 24, 4, 3
    order = np.random.default_rng(0).permutation(n)
    shards = [order[rank::ranks] for rank in range(ranks)]
    steps = [
        np.concatenate([shard[start : start + size] for shard in shards])
        for start in range(0, n // ranks, size)
    ]
    whole = order.reshape(-1, size * ranks)
    assert [set(step.tolist()) for step in steps] == [set(step.tolist()) for step in whole]
    run = dpsub.from_loader(n, size, **RUN, shuffle=True, ranks=ranks)
    assert kinds(run) == [(dpsub.Shuffle(size * ranks), n, 2 * len(steps))]


def test_noise_of_ranks_adds_up() -> None:
    run = dpsub.from_loader(100, 5, **RUN, shuffle=True, ranks=4, noise_per_rank=True)
    assert run.releases[0].noise_multiplier == pytest.approx(4.0)
    assert run.releases[0].noise_multiplier <= 4.0


@pytest.mark.parametrize("loop", ["shuffle drop_last", "shuffle shuffle_buffer"])
def test_no_lower_end_is_claimed_for_another_loop(loop: str) -> None:
    options = {"shuffle": True, "drop_last": True}
    if "buffer" in loop:
        options = {"shuffle": True, "shuffle_buffer": 20}
    run = dpsub.from_loader(100, 30, **RUN, **options)
    found = run.account(delta=1e-5)
    assert run.one_sided and (found.kind, found.lower) == ("upper", 0.0)
    assert run.ledger().account(delta=1e-5, adjacency="zero_out").upper == found.upper


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        ("poisson shuffle", "at most one of poisson, shuffle and replacement"),
        ("poisson accumulation=2", "may hold a record more than once"),
        ("poisson ranks=2", "batch size of all ranks together"),
        ("shuffle microbatch=2", "clipped by itself"),
        ("shuffle accumulation=3", "multiple of accumulation = 3, got 4"),
        ("shuffle ranks=3", "use 99 records"),
        ("shuffle_buffer=3", "give shuffle"),
        ("ranks=4 drop_last", "an epoch must have a batch"),
    ],
)
def test_a_loop_that_no_theorem_covers_is_refused(loop: str, words: str) -> None:
    pairs = (word.partition("=") for word in loop.split())
    options: dict[str, Any] = {name: int(value) if value else True for name, _, value in pairs}
    with pytest.raises(dpsub.DpsubError, match=words):
        dpsub.from_loader(100, 30, **RUN, **options)
