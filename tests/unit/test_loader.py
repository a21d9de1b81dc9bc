"""Training loops as the accountant sees them: batches that a loader really makes, noise on the sum,
and refusals."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub import cli
from dpsub.cli.parsing import OF_LOOPS
from dpsub.cli.samplers import sampler_of

RUN = {"noise_multiplier": 2.0, "epochs": 2}


def loop_of(words: str) -> dict[str, Any]:
    """Return the arguments that these words name."""
    pairs = (word.partition("=") for word in words.split())
    return {
        name: (int(value) if value.isdigit() else value) if equals else True
        for name, equals, value in pairs
    }


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
        (100, 30, "shuffle same_order", [(dpsub.PersistentShuffle(30), 100, 8)]),
        (
            100,
            30,
            "shuffle same_order drop_last",
            [(dpsub.PersistentShuffle(30, drop_last=True), 100, 6)],
        ),
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
    run = dpsub.from_loader(n, batch_size, **RUN, **loop_of(loop))
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


@pytest.mark.slow
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
        ("shuffle ranks=3", "or 99 records"),
        ("shuffle_buffer=3", "give shuffle"),
        ("same_order", "is for a shuffled loader; give shuffle"),
        ("ranks=4 drop_last", "an epoch must have a batch"),
        ("accumulation=9 remainder=drop", "an epoch must have a step"),
        ("accumulation=9 remainder=keep", "unknown remainder 'keep'; known: drop, step"),
    ],
)
def test_a_loop_that_no_theorem_covers_is_refused(loop: str, words: str) -> None:
    with pytest.raises(dpsub.DpsubError, match=words):
        dpsub.from_loader(100, 30, **RUN, **loop_of(loop))


@pytest.mark.parametrize(
    ("n", "loop", "plan", "steps"),
    [
        (100, "shuffle accumulation=3 remainder=step", dpsub.Shuffle(30), 4),
        (100, "shuffle accumulation=3 remainder=drop", dpsub.Shuffle(30, drop_last=True), 3),
        (100, "accumulation=3 remainder=drop", dpsub.Deterministic(30, drop_last=True), 3),
        (103, "shuffle ranks=4 drop_last", dpsub.Shuffle(40, drop_last=True), 2),
        # records that are left out, and a smaller step: no theorem on shuffling
        (109, "shuffle accumulation=3 remainder=step drop_last", dpsub.Deterministic(30), 4),
    ],
)
def test_batches_that_accumulation_leaves_over(
    n: int, loop: str, plan: dpsub.Shuffle, steps: int
) -> None:
    run = dpsub.from_loader(n, 10, **RUN, **loop_of(loop))
    assert kinds(run) == [(plan, n, 2 * steps)]
    assert run.one_sided == (n == 109)


def played(n: int, size: int, accumulation: int, ranks: int, drops: str) -> list[int]:
    """Return the sizes of the steps of an epoch, counted in a loop as PyTorch runs it."""
    shards = [range(rank, n - n % ranks, ranks) for rank in range(ranks)]
    batches = [[shard[at : at + size] for at in range(0, len(shard), size)] for shard in shards]
    steps, held, count = [], 0, 0
    for together in zip(*batches, strict=True):
        if "last" in drops and len(together[0]) < size:
            continue
        held, count = held + sum(map(len, together)), count + 1
        if count % accumulation == 0:
            steps.append(held)
            held = 0
    return steps + [held] * (held > 0 and "remainder" not in drops)


@pytest.mark.parametrize("drops", ["", "last", "remainder", "last remainder"])
def test_steps_are_those_of_the_loop(drops: str) -> None:
    for n, size, accumulation, ranks in itertools.product((24, 50, 60), (3, 7), (1, 2, 3), (1, 2)):
        sizes = played(n, size, accumulation, ranks, drops)
        loop = {"accumulation": accumulation, "ranks": ranks, "drop_last": "last" in drops}
        remainder = "drop" if "remainder" in drops else "step"
        if not sizes:
            continue
        run = dpsub.from_loader(
            n, size, noise_multiplier=2.0, epochs=1, **loop, remainder=remainder
        )
        [release] = run.releases
        assert (release.steps, release.sampler.m) == (len(sizes), max(sizes))
        if run.releases[0].sampler.drop_last:
            assert len(set(sizes)) == 1 and sum(sizes) < n
        assert (f"leaves out {n - sum(sizes)} records" in " ".join(run.notes)) == (sum(sizes) < n)


def test_a_remedy_leads_to_an_answer() -> None:
    """What a refusal names as the way out, taken by itself, is not refused again."""
    refusals = 0
    for n, size, accumulation, ranks in itertools.product((100, 103), (7, 30), (1, 3), (1, 4)):
        loop: dict[str, Any] = {
            "n": n,
            "batch_size": size,
            "shuffle": True,
            "accumulation": accumulation,
            "ranks": ranks,
        }
        tried: list[str] = []
        while True:
            try:
                dpsub.from_loader(**loop, **RUN)
                break
            except dpsub.UnsupportedError as refused:
                refusals += 1
                rule = str(refused).partition(",")[0]
                assert rule not in tried
                tried.append(rule)
                if found := re.search(r"or (\d+) records", str(refused)):
                    loop["n"] = int(found[1])
                else:
                    loop["remainder"] = re.findall(r"give remainder, (\w+)", str(refused))[0]
    assert refusals > 3


def test_a_run_that_stops_within_an_epoch() -> None:
    run = dpsub.from_loader(100, 30, noise_multiplier=2.0, steps=9, shuffle=True)
    assert kinds(run) == [(dpsub.Shuffle(30), 100, 12)] and run.one_sided
    assert any("9 steps end within an epoch of 4: accounted as 3" in note for note in run.notes)
    whole = dpsub.from_loader(100, 30, noise_multiplier=2.0, steps=8, shuffle=True)
    assert whole == dpsub.from_loader(100, 30, noise_multiplier=2.0, epochs=2, shuffle=True)
    # independent steps stop anywhere
    poisson = dpsub.from_loader(100, 30, noise_multiplier=2.0, steps=9, poisson=True)
    assert poisson.steps == 9 and not poisson.one_sided
    drawn = dpsub.from_loader(100, 30, noise_multiplier=2.0, steps=9, replacement=True)
    assert kinds(drawn) == [(dpsub.Wr(30), 100, 7), (dpsub.Wr(10), 100, 2)]
    for length in ({}, {"steps": 9, "epochs": 2}):
        with pytest.raises(dpsub.ArgumentError, match="exactly one of epochs and steps"):
            dpsub.from_loader(100, 30, noise_multiplier=2.0, **length)


def named(name: str, **attributes: Any) -> Any:
    """Return an object of a class with this name, as loaders and samplers are told by theirs."""
    known = {"__len__": lambda self: self.length, **attributes}
    return type(name, (), known)()


def a_loader(sampler: Any, **other: Any) -> Any:
    usual = {"batch_size": 30, "drop_last": False, "length": 4, "dataset": range(100)}
    usual["batch_sampler"] = named("BatchSampler")
    return named("DataLoader", sampler=sampler, **usual | other)


DISTRIBUTED = {"dataset": range(100), "num_replicas": 2, "drop_last": False}
SAMPLERS = {
    "shuffle": named("RandomSampler", replacement=False, num_samples=100),
    "replacement": named("RandomSampler", replacement=True, num_samples=100),
    "": named("SequentialSampler"),
    "shuffle ranks=2": named("DistributedSampler", shuffle=True, **DISTRIBUTED),
    "ranks=2": named("DistributedSampler", shuffle=False, **DISTRIBUTED),
}


@pytest.mark.parametrize("loop", SAMPLERS)
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_loader_describes_itself(loop: str, drop_last: bool) -> None:
    loader = a_loader(SAMPLERS[loop], drop_last=drop_last)
    described = dpsub.from_loader(100, 30, **RUN, **loop_of(loop), drop_last=drop_last)
    assert dpsub.from_loader(loader, **RUN) == described
    accumulated = {"accumulation": 2, "remainder": "step"}
    assert dpsub.from_loader(loader, **RUN, **accumulated) == dpsub.from_loader(
        100, 30, **RUN, **loop_of(loop), drop_last=drop_last, **accumulated
    )


def test_weights_of_a_loader_are_those_of_its_heaviest_record() -> None:
    weights = [2.0] * 10 + [1.0] * 80
    sampler = named("WeightedRandomSampler", weights=weights, num_samples=70, replacement=True)
    run = dpsub.from_loader(a_loader(sampler), **RUN)
    assert kinds(run) == [(dpsub.WeightedWr(30, 0.02), 90, 4), (dpsub.WeightedWr(10, 0.02), 90, 2)]
    assert any("heaviest record" in note for note in run.notes)
    whole = dpsub.from_loader(a_loader(sampler, drop_last=True), **RUN)
    assert kinds(whole) == [(dpsub.WeightedWr(30, 0.02), 90, 4)]
    # equal weights are draws from all records alike
    equal = named("WeightedRandomSampler", weights=[3] * 100, num_samples=90, replacement=True)
    alike = dpsub.account(dpsub.Wr(30), 100, noise_multiplier=2.0, steps=6, **ASKED)
    found = dpsub.from_loader(a_loader(equal), **RUN).account(**ASKED)
    assert (found.lower, found.upper) == pytest.approx((alike.lower, alike.upper), rel=1e-6)


def test_loaders_of_opacus() -> None:
    loader = a_loader(SAMPLERS["shuffle"])
    assert dpsub.from_loader(loader, **RUN, poisson=True) == dpsub.from_loader(
        100, 30, **RUN, poisson=True
    )
    for name, count in (
        ("UniformWithReplacementSampler", {"num_samples": 100}),
        ("DistributedUniformWithReplacementSampler", {"num_samples": 50, "total_size": 100}),
    ):
        batches = named(name, sample_rate=1 / 7, length=7, **count)
        loader = a_loader(None, batch_size=None, batch_sampler=batches)
        run = dpsub.from_loader(loader, **RUN)
        assert kinds(run) == [(dpsub.Poisson(1 / 7), 100, 14)]


@pytest.mark.parametrize(
    ("loader", "more", "words"),
    [
        (a_loader(SAMPLERS["shuffle"]), {"batch_size": 30}, "a loader says batch_size itself"),
        (a_loader(SAMPLERS["shuffle"]), {"drop_last": True}, "a loader says drop_last itself"),
        (a_loader(named("OneOfOnesOwn")), {}, "that is known here"),
        (
            a_loader(named("WeightedRandomSampler", replacement=False, num_samples=100)),
            {},
            "weighted draws without replacement",
        ),
        (a_loader(SAMPLERS["shuffle"], batch_size=None), {}, "a batch sampler of its own"),
        (a_loader(SAMPLERS["shuffle"], dataset=iter(())), {}, "must be counted"),
        (
            a_loader(named("RandomSampler", replacement=False, num_samples=50)),
            {},
            "num_samples = 50; drop num_samples",
        ),
        ([1, 2], {}, "needs the number of records or a DataLoader, got list"),
    ],
)
def test_a_loader_that_says_too_little_is_refused(
    loader: Any, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(dpsub.DpsubError, match=words):
        dpsub.from_loader(loader, **RUN, **more)


def test_the_command_asks_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "loader --n 96 --batch-size 4 --shuffle --drop-last --accumulation 3 --ranks 4 --epochs 2 "
        "--sigma 2 --delta 1e-5 --json"
    )
    assert cli.main(words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    loop = {"accumulation": 3, "ranks": 4, "drop_last": True}
    run = dpsub.from_loader(96, 4, **RUN, shuffle=True, **loop)
    assert found["upper"] == run.account(delta=1e-5).upper
    assert found["notes"] == [*run.notes] and found["steps"] == run.steps == 4


def test_several_steps_on_each_batch() -> None:
    run = dpsub.from_loader(100, 10, **RUN, poisson=True, steps_per_batch=3)
    (release,) = run.releases
    assert (release.steps, release.times, release.releases_per_sample) == (60, 20, 3)
    assert not run.one_sided
    run = dpsub.from_loader(100, 10, **RUN, shuffle=True, steps_per_batch=3)
    (release,) = run.releases
    assert (release.sampler, release.steps) == (dpsub.Shuffle(10), 60)
    assert not run.one_sided
    asked: dict[str, Any] = {"sigma": 2.0, "delta": 1e-5}
    one = dpsub.account(dpsub.Deterministic(10), 100, epochs=6, adjacency="zero_out", **asked)
    assert run.account(delta=1e-5).upper == pytest.approx(one.upper, rel=1e-3)
    # 50 steps are 17 batches, the last one with fewer
    loop: dict[str, Any] = {"sigma": 2.0, "steps": 50, "steps_per_batch": 3}
    run = dpsub.from_loader(100, 10, **loop, poisson=True)
    assert (run.steps, run.one_sided) == (51, True)
    run = dpsub.from_loader(100, 10, **loop)
    assert (run.steps, run.one_sided) == (60, True)
    assert any("51 steps end within an epoch of 30" in note for note in run.notes)


def test_a_loader_of_users(capsys: pytest.CaptureFixture[str]) -> None:
    run = dpsub.from_loader(100, 10, **RUN, shuffle=True, records_per_user=4)
    assert [release.records_per_user for release in run.releases] == [4]
    assert "one user with at most 4 records in a step" in str(run.account(delta=1e-5))
    words = "loader --n 100 --batch-size 10 --poisson --sigma 2 --epochs 2 --delta 1e-5"
    more = "--records-per-user 4 --steps-per-batch 2"
    assert cli.main([*words.split(), *more.split()]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "one user is protected" in out
    assert "2 steps on each batch" in out


@pytest.mark.parametrize("option", OF_LOOPS)
def test_options_of_loops_lead_to_the_command(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert OF_LOOPS[option] in cli.parser_of("loader")._option_string_actions
    for command in ("account", "recommend"):
        known = cli.parser_of(command)._option_string_actions
        if option not in known:
            assert cli.main([command, "shuffle", option, "4"]) == cli.EXIT_ERROR
            assert f"dpsub loader with {OF_LOOPS[option]}" in capsys.readouterr().err


LOOP = "loader --n 100 --batch-size 10 --shuffle --delta 1e-5"
NAMED = "with the sampler that dpsub loader names in the first line of its answer"


@pytest.mark.parametrize(
    ("line", "way_out"),
    [
        ("check shuffle --ranks 4", "and then dpsub check with the sampler and sizes in the first"),
        ("calibrate shuffle --ranks 4", "dpsub calibrate shuffle --n 60000 --m 256 --epochs 3"),
        (f"{LOOP} --sigma 2 --epochs 1 --claimed-epsilon 3", f"ask dpsub check, {NAMED}"),
        (f"{LOOP} --sigma 2 --epochs 1 --epsilon 3", f"both hold together, {NAMED}"),
        (f"{LOOP} --epochs 1", f"ask dpsub calibrate, {NAMED}"),
        (f"{LOOP} --sigma 2 --epochs 2.6", "stopped within an epoch give --steps"),
        (f"{LOOP} --sigma 2 --epochs 1 --ranks 3", "have it drop them and give --drop-last"),
        ("account opacus --rate 0.1", "describe its loop to dpsub loader"),
    ],
)
def test_questions_about_loops_lead_to_an_answer(
    line: str, way_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(line.split()) == cli.EXIT_ERROR
    assert way_out in capsys.readouterr().err


def test_the_command_that_an_error_shows_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    for command, more in (
        ("check", "--sigma 9 --delta 1e-5 --claimed-epsilon 9"),
        ("calibrate", "--epsilon 9 --delta 1e-5"),
    ):
        cli.main([command, "--shuffle"])
        shown = re.findall(r"as in dpsub (.*zero_out)", capsys.readouterr().err)[0]
        understood = cli.parser_of(command).parse_args([*shown.split()[1:], *more.split()])
        assert sampler_of(understood) == dpsub.Shuffle(256)


def test_a_run_in_place_of_a_sampler_names_what_to_give() -> None:
    run = dpsub.from_loader(100, 10, **RUN, poisson=True)
    target = {"epsilon": 1.0, "delta": 1e-5}
    for question in (dpsub.check, dpsub.calibrate, dpsub.account):
        with pytest.raises(dpsub.ArgumentError, match=r"give run\.ledger\(\)"):
            question(run, **target)
    asked = {"adjacency": run.adjacency, "quick": True, **target}
    assert dpsub.check(run.ledger(), **asked).verdict in ("proved", "refuted")
    assert dpsub.calibrate(run.releases[0], **asked).account.upper <= 1


def test_a_statement_of_a_run_that_stops_within_an_epoch() -> None:
    loop: dict[str, Any] = {"sigma": 2.0, "shuffle": True, "ranks": 2}
    run = dpsub.from_loader(100, 10, **loop, steps=12)
    found = run.account(delta=1e-5, quick=True)
    said = found.statement().sentence
    assert said.startswith(
        "A training of 12 steps, accounted as 3 whole epochs, 15 noisy sums over samples from "
        "shuffle(n = 100, m = 20) ("
    )
    assert "which reveal at least as much, is (" in said
    assert said.endswith("since the training revealed less than these epochs.")
    assert "must be called before every epoch" in found.statement().fields["conditions"]
    whole = dpsub.from_loader(100, 10, **loop, steps=10).account(delta=1e-5, quick=True)
    assert whole.statement().sentence.startswith("The release of 10 noisy sums")
    assert "say nothing of the training" in WINDOWED.account(**ASKED).statement().sentence


def test_the_noise_of_ranks_is_said() -> None:
    one = dpsub.from_loader(100, 5, **RUN, shuffle=True, ranks=4)
    assert "one noise of this multiplier on the sum over all ranks" in " ".join(one.notes)
    each = dpsub.from_loader(100, 5, **RUN, shuffle=True, ranks=4, noise_per_rank=True)
    assert "one noise" not in " ".join(each.notes)


def test_the_rate_of_opacus_is_named_where_it_is_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for size, is_another in ((30, True), (25, False)):
        line = f"account poisson --n 100 --m {size} --epochs 2 --sigma 2 --delta 1e-5 --quick"
        assert cli.main(line.split()) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert ("for its loop ask dpsub loader" in said) == is_another
