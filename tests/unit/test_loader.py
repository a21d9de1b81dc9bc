"""Training loops as the accountant sees them: batches that a loader really makes, noise on the sum,
and refusals."""

from __future__ import annotations

from pathlib import Path
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
        (100, 30, "shuffle drop_last", [(dpsub.Shuffle(30, drop_last=True), 100, 6)]),
        (100, 25, "shuffle drop_last", [(dpsub.Shuffle(25), 100, 8)]),
        (100, 5, "shuffle accumulation=2 ranks=2", [(dpsub.Shuffle(20), 100, 10)]),
        (100, 200, "shuffle", [(dpsub.Shuffle(100), 100, 2)]),
        (100, 30, "", [(dpsub.Deterministic(30), 100, 8)]),
        (100, 30, "drop_last", [(dpsub.Deterministic(30, drop_last=True), 100, 6)]),
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
    """By the definition of a distributed sampler, rank r has every `ranks`-th record of one
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


WINDOWED = dpsub.from_loader(100, 30, **RUN, shuffle=True, shuffle_buffer=20)
ASKED: dict[str, Any] = {"delta": 1e-5, "adjacency": "zero_out"}


def test_no_lower_end_is_claimed_for_another_loop() -> None:
    found = WINDOWED.account(delta=1e-5)
    assert WINDOWED.one_sided and (found.kind, found.lower) == ("upper", 0.0)
    assert "others that tell at most as much" in str(found)
    same = dpsub.account(dpsub.Deterministic(30), 100, noise_multiplier=2.0, epochs=2, **ASKED)
    assert same.kind == "exact"
    assert 0 < same.lower <= found.upper == pytest.approx(same.upper, rel=1e-3)


@pytest.mark.parametrize("quick", [True, False])
def test_a_ledger_knows_that_its_run_is_one_sided(quick: bool, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    WINDOWED.ledger().save(path)
    for ledger in (WINDOWED.ledger(), dpsub.Ledger.load(path)):
        found = ledger.account(**ASKED, quick=quick)
        assert (found.kind, found.lower, found.lower_pair) == ("upper", 0.0, "")
        assert not any(ledger.curve(adjacency="zero_out", quick=quick).delta.lower)
        claim = dpsub.check(ledger, **ASKED, claimed_epsilon=0.01, quick=quick)
        assert claim.verdict == "open"


def test_what_is_made_of_a_one_sided_answer_is_one_sided() -> None:
    found = WINDOWED.account(delta=1e-5)
    certificate = found.certificate()
    assert certificate["claim"]["lower"] is None and certificate["lower"] is None
    assert certificate["question"]["releases"][0]["one_sided"] is True
    statement = found.statement()
    assert "attains" not in statement.sentence
    assert statement.fields["epsilon_lower"] == 0
    [axes] = found.plot().axes
    [proved, attained] = axes.get_lines()
    assert not any(attained.get_ydata())
    assert all(proved.get_ydata() > 0)


def test_others_of_a_ledger_are_attacked_as_before() -> None:
    release = {"noise_multiplier": 1.0, "steps": 10}
    ledger = dpsub.Ledger(WINDOWED.releases).add(dpsub.Poisson(0.1), **release)
    alone = dpsub.account(dpsub.Poisson(0.1), **release, **ASKED)
    found = ledger.account(**ASKED)
    assert alone.lower * 0.99 <= found.lower <= alone.upper < found.upper
    assert found.kind == "bounds"


def test_a_dropped_batch_has_an_attack_of_its_own() -> None:
    run = dpsub.from_loader(199, 100, noise_multiplier=1, epochs=10, shuffle=True, drop_last=True)
    sample = dpsub.account(dpsub.Wor(100), 199, noise_multiplier=1, steps=10, **ASKED)
    found = run.ledger().account(**ASKED)
    assert not run.one_sided
    # the same theorem and attack, refined as a schedule is
    assert found.lower == pytest.approx(sample.lower, rel=5e-3)
    assert found.upper == pytest.approx(sample.upper, rel=5e-3)
    assert found.theorem == sample.theorem


@pytest.mark.thorough
def test_a_picture_of_a_dropped_batch_rises() -> None:
    run = dpsub.from_loader(1000, 96, noise_multiplier=1.1, epochs=10, shuffle=True, drop_last=True)
    found = run.account(delta=1e-5)
    assert found.statement().fields["sampler"] == "shuffle(n = 1000, m = 96, drop_last)"
    [axes] = found.plot().axes
    [_, attained] = axes.get_lines()
    assert all(np.diff(attained.get_ydata()) > 0)
    assert attained.get_ydata()[-1] == found.lower > 10


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
