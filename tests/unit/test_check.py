"""Verdicts on claims: decided by the right end, no sooner and no later than the ends allow; events
of dp-accounting."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dp_accounting as dp
import pytest

import dpsub
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.check import ClaimJudge
from dpsub.cli import main
from dpsub.errors import ArgumentError, DpsubError, UnsupportedError
from dpsub.relations import Relation

QUESTION: dict[str, Any] = {"noise_multiplier": 1.0, "steps": 128, "delta": 1e-6}


@dataclass
class Planted:
    """A proof whose ends are known: `attained` and `proved`, approached to the width that is asked
    for."""

    attained: float
    proved: float
    tight: float | None = None  # the tight upper bound, if one is known
    sharp: bool = True
    asked: list[str] = field(default_factory=list)

    @property
    def tightens(self) -> bool:
        return self.tight is not None

    def account(self, target: Target) -> Account:
        self.asked.append(f"{target.width:.0e}")
        off = target.width * (1.0 if target.delta is not None else self.proved) / 2
        ends = max(self.attained - off, 0.0), self.proved + off
        return Account(
            *ends,
            "bounds",
            "pair",
            Relation.SUBSTITUTE,
            "sum",
            target.quantity,
            width_met=self.sharp,
        )


@dataclass
class PlantedRefinement:
    """Refinement that tightens a planted proof to its planted ends."""

    proof: Planted
    width: float | None

    def tightened(self, found: Account, target: Target) -> Account:
        assert self.proof.tight is not None and self.width is not None and self.width > 0
        self.proof.asked.append("tight")
        return replace(found, upper=self.proof.tight)


def judged(proof: Planted, claimed: float, *, at: str = "delta") -> str:
    where = {"epsilon": None, "delta": None, at: 1e-5 if at == "delta" else 1.0}
    return ClaimJudge(proof, **where).judge(claimed)  # type: ignore[arg-type]


@pytest.mark.parametrize("at", ["delta", "epsilon"])
@pytest.mark.parametrize("size", [1.0, 1e-4, 0.5])
@pytest.mark.parametrize(
    ("factor", "verdict", "asks"),
    [
        (2, "proved", 1),
        (0.5, "refuted", 1),
        (1 + 1e-4, "proved", 4),
        (1 - 1e-4, "refuted", 4),
        (1 + 1e-12, "open", 8),
    ],
)
def test_one_number_is_told_from_claims_near_it(
    factor: float, verdict: str, asks: int, size: float, at: str
) -> None:
    proof = Planted(size, size)
    assert judged(proof, factor * size, at=at) == verdict
    assert len(proof.asked) <= asks + (size < 1e-3 and at == "delta" and 3)


def test_what_lies_between_the_ends_is_open_and_asked_once() -> None:
    proof = Planted(1.0, 2.0)
    assert judged(proof, 1.5) == "open"
    assert len(proof.asked) == 1
    assert [judged(Planted(1.0, 2.0), claimed) for claimed in (0.999, 1.001, 1.999, 2.001)] == [
        "refuted",
        "open",
        "open",
        "proved",
    ]


def test_a_tight_end_decides_what_the_quick_one_leaves_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpsub.accounting.questions.check.AccountRefinement", PlantedRefinement)
    proof = Planted(1.0, 2.0, tight=1.4)
    assert judged(proof, 1.5) == "proved"
    assert proof.asked[-1] == "tight"
    assert judged(Planted(1.0, 2.0, tight=1.4), 1.3) == "open"
    assert judged(Planted(1.0, 2.0, tight=2.5), 1.9) == "open"  # the better upper bound is kept
    assert (
        "tight" not in (quick := Planted(1.0, 2.0, tight=1.4)).asked
        and judged(quick, 2.1) == "proved"
    )
    assert judged(Planted(0.0, 0.0, tight=0.0), 0.0) == "open"  # nothing to divide by


def test_what_comes_no_closer_is_open() -> None:
    proof = Planted(1.0, 1.0, sharp=False)
    assert judged(proof, 1.001) == "open"
    assert len(proof.asked) == 1


def test_ends_only_get_better_from_claim_to_claim() -> None:
    ends = ClaimJudge(Planted(1.0, 1.0), None, 1e-5)  # type: ignore[arg-type]
    assert ends.judge(1 + 1e-6) == "proved"
    before = ends.account
    assert ends.judge(3.0) == "proved" and ends.judge(0.3) == "refuted"
    assert (ends.account.lower, ends.account.upper) == (before.lower, before.upper)


def test_the_standard_accountant_without_replacement_is_refuted() -> None:
    event = dp.SampledWithoutReplacementDpEvent(1000, 16, dp.GaussianDpEvent(1.0))
    accountant = dp.rdp.RdpAccountant(neighboring_relation=dp.NeighboringRelation.REPLACE_ONE)
    claimed = accountant.compose(dp.SelfComposedDpEvent(event, 128)).get_epsilon(1e-6)
    found = dpsub.check(
        dpsub.Wor(16),
        1000,
        **QUESTION,
        adjacency="substitute",
        effort=None,
        claimed_epsilon=claimed,
    )
    assert found.verdict == "refuted" and claimed < 2.65 < 10.9 < found.account.lower
    assert "(C, -C, ..., -C)" in found.account.lower_pair
    # by the game
    asked = QUESTION | {"claimed_epsilon": 11.0, "adjacency": "substitute"}
    assert dpsub.check(dpsub.Wor(16), 1000, **asked, quick=False).verdict == "proved"


def test_claims_of_delta_and_of_kinds_without_attack() -> None:
    releases = {"noise_multiplier": 1.0, "steps": 100, "epsilon": 1.0}
    exact = dpsub.account(dpsub.Poisson(0.01), **releases)
    for factor, verdict in ((1.001, "proved"), (0.999, "refuted"), (0.0, "refuted")):
        claim = factor * exact.upper
        assert (
            dpsub.check(dpsub.Poisson(0.01), **releases, claimed_delta=claim).verdict == verdict
        ), factor
    assert dpsub.check(dpsub.Poisson(0.01), **releases, claimed_delta=1.0).verdict == "proved"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({}, r"a claim is either an epsilon \(at a delta\) or a delta \(at an epsilon\)"),
        ({"delta": 1e-5, "claimed_epsilon": 1, "claimed_delta": 0.1}, "got both; give"),
        (
            {"epsilon": 1, "claimed_epsilon": 1},
            "a claimed epsilon needs its delta, got delta = None",
        ),
        (
            {"delta": 1e-5, "claimed_delta": 0.1},
            "a claimed delta needs its epsilon, got epsilon = None",
        ),
        ({"delta": 1e-5, "claimed_epsilon": math.nan}, "claimed_epsilon must be finite"),
        (
            {"delta": 1e-5, "claimed_epsilon": -1.0},
            "claimed_epsilon must be at least 0, got claimed_epsilon = -1",
        ),
        ({"epsilon": 1.0, "claimed_delta": 1.5}, "claimed_delta must be at most 1"),
        ({"delta": 0.0, "claimed_epsilon": 1.0}, "delta must be above 0"),
        (
            {"delta": 1e-5, "claimed_epsilon": 1.0, "noise_multiplier": None},
            "a noise_multiplier is needed, got none",
        ),
    ],
)
def test_a_claim_that_is_none_is_refused_in_one_sentence(
    more: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        dpsub.check(dpsub.Poisson(0.1), **{"noise_multiplier": 1.0, **more})


def test_the_epsilon_of_poisson_sampling_is_refuted_for_shuffled_batches() -> None:
    poisson = dpsub.account(dpsub.Poisson(0.01), noise_multiplier=0.5, steps=100, delta=1e-5).upper
    shuffled = {"noise_multiplier": 0.5, "epochs": 1, "delta": 1e-5, "claimed_epsilon": poisson}
    found = dpsub.check(dpsub.Shuffle(10), 1000, **shuffled)
    assert found.account.adjacency == "zero_out"  # whose numbers compare with Poisson's
    assert found.verdict == "refuted" and found.account.lower > 1.5 * poisson


@pytest.mark.parametrize(
    ("adjacency", "words"),
    [
        ("add_remove", "a record +C added to zero"),
        ("substitute", "+C against -C"),
        ("zero_out", "+C against 0"),
    ],
)
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_refutation_names_data_sets(mechanism: str, adjacency: str, words: str) -> None:
    asked = {"noise_multiplier": 2.0, "adjacency": adjacency, "mechanism": mechanism, "delta": 1e-5}
    found = dpsub.check(dpsub.Poisson(0.5), **asked, claimed_epsilon=0.01)
    assert found.verdict == "refuted" and words in found.account.lower_pair


def test_a_ledger_is_judged_as_a_whole() -> None:
    ledger = dpsub.Ledger().add(dpsub.Poisson(0.01), noise_multiplier=1.0, steps=50)
    ledger.record(dpsub.Poisson(0.1), noise_multiplier=4.0, steps=5)
    upper = ledger.account(delta=1e-6).upper
    verdicts = [
        dpsub.check(ledger, delta=1e-6, claimed_epsilon=part * upper).verdict
        for part in (0.99, 1.01)
    ]
    assert verdicts == ["refuted", "proved"]
    with pytest.raises(
        ArgumentError, match="a ledger already holds its releases, got steps as well"
    ):
        dpsub.check(ledger, steps=3, delta=1e-6, claimed_epsilon=1.0)


GAUSSIAN = dp.GaussianDpEvent(2.0)
EVENTS: list[tuple[Any, list[tuple[Any, int | None, float, int, str]]]] = [
    (GAUSSIAN, [(dpsub.Poisson(1.0), None, 2.0, 1, "gaussian")]),
    (dp.LaplaceDpEvent(3.0), [(dpsub.Poisson(1.0), None, 3.0, 1, "laplace")]),
    (
        dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(3.0)),
        [(dpsub.Poisson(0.1), None, 3.0, 1, "laplace")],
    ),
    (
        dp.SampledWithoutReplacementDpEvent(90, 9, GAUSSIAN),
        [(dpsub.Wor(9), 90, 2.0, 1, "gaussian")],
    ),
    (dp.SampledWithReplacementDpEvent(90, 9, GAUSSIAN), [(dpsub.Wr(9), 90, 2.0, 1, "gaussian")]),
    (
        dp.TruncatedSubsampledGaussianDpEvent(90, 0.1, 12, 2.0),
        [(dpsub.TruncatedPoisson(0.1, 12), 90, 2.0, 1, "gaussian")],
    ),
    (
        dp.ComposedDpEvent(
            [
                dp.SelfComposedDpEvent(
                    dp.ComposedDpEvent([dp.PoissonSampledDpEvent(0.1, GAUSSIAN), GAUSSIAN]), 3
                ),
                dp.NoOpDpEvent(),
                dp.SelfComposedDpEvent(GAUSSIAN, 0),
                dp.SelfComposedDpEvent(
                    dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, GAUSSIAN), 2), 5
                ),
            ]
        ),
        [
            (dpsub.Poisson(0.1), None, 2.0, 13, "gaussian"),
            (dpsub.Poisson(1.0), None, 2.0, 3, "gaussian"),
        ],
    ),
]


def as_json(event: Any) -> Any:
    """Return a named tuple of an event in plain words."""
    if isinstance(event, list):
        return [as_json(one) for one in event]
    return (
        {key: as_json(value) for key, value in event._asdict().items()}
        if hasattr(event, "_asdict")
        else event
    )


@pytest.mark.parametrize(("event", "releases"), EVENTS, ids=lambda part: type(part).__name__)
def test_events_are_releases_in_every_form(event: Any, releases: list[Any]) -> None:
    for form in (
        event,
        event.to_named_tuple(),
        json.loads(json.dumps(as_json(event.to_named_tuple()))),
    ):
        found = [
            (one.sampler, one.n, one.noise_multiplier, one.steps, one.mechanism)
            for one in dpsub.ledger_of(form)
        ]
        assert found == releases


def test_the_noise_of_an_event_is_over_the_norm_bound() -> None:
    """The sums N(0, 1) and N(2, 1) at noise multiplier 1, where a record is replaced, are one
    release of sensitivity 2."""
    found = dpsub.ledger_of(dp.GaussianDpEvent(1.0)).account(delta=1e-5, adjacency="substitute")
    other = dpsub.ledger_of(dp.GaussianDpEvent(0.5)).account(delta=1e-5, adjacency="add_remove")
    assert found.upper == pytest.approx(other.upper, abs=2e-3)
    theirs = dp.pld.PLDAccountant(dp.NeighboringRelation.REPLACE_ONE).compose(
        dp.GaussianDpEvent(1.0)
    )
    assert found.lower <= theirs.get_epsilon(1e-5) <= found.upper + 1e-3


@pytest.mark.parametrize(
    ("event", "kind", "sentence"),
    [
        (
            dp.NonPrivateDpEvent(),
            UnsupportedError,
            "events of class NonPrivateDpEvent are not supported",
        ),
        (dp.ZCDpEvent(0.1), UnsupportedError, "events of class ZCDpEvent are not supported"),
        (
            dp.PoissonSampledDpEvent(0.1, dp.ComposedDpEvent([GAUSSIAN, GAUSSIAN])),
            UnsupportedError,
            "PoissonSampledDpEvent of ComposedDpEvent is not supported",
        ),
        ({"class_name": "Foo"}, UnsupportedError, "events of class Foo are not supported"),
        (
            3,
            UnsupportedError,
            "an event must be a DpEvent of dp-accounting, or JSON of one, got int",
        ),
        (
            {"noise_multiplier": 1},
            ArgumentError,
            "an event needs its class_name, got noise_multiplier",
        ),
        (
            {"class_name": "GaussianDpEvent"},
            ArgumentError,
            "GaussianDpEvent needs noise_multiplier, got nothing",
        ),
        ({"class_name": "ComposedDpEvent", "events": 3}, ArgumentError, "must be a list, got int"),
        (dp.ComposedDpEvent([]), ArgumentError, "an event must contain a release"),
        (dp.SelfComposedDpEvent(GAUSSIAN, -1), ArgumentError, "count must be at least 0"),
        (dp.GaussianDpEvent(math.nan), ArgumentError, "noise_multiplier must be finite"),
        (
            dp.SampledWithoutReplacementDpEvent(9, 9, dp.ZCDpEvent(0.1)),
            UnsupportedError,
            "of ZCDpEvent",
        ),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(
    event: Any, kind: type[DpsubError], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        dpsub.ledger_of(event)


def test_events_may_be_nested_only_so_deep() -> None:
    event: Any = {"class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
    for _ in range(200):
        event = {"class_name": "SelfComposedDpEvent", "event": event, "count": 1}
    with pytest.raises(ArgumentError, match="at most 100 deep"):
        dpsub.ledger_of(event)


WOR = (
    "check wor --n 1000 --m 16 --noise-multiplier 1 --steps 128 --delta 1e-6 --adjacency substitute"
)
CUT = (
    "check truncated_poisson --n 1000 --rate 0.05 --max-batch 70 --noise-multiplier 1 --steps "
    "10 --delta 1e-5"
)


@pytest.mark.parametrize(
    ("words", "verdict", "status"),
    [
        (f"{WOR} --claimed-epsilon 2.6", "refuted", 1),
        (f"{WOR} --claimed-epsilon 12", "proved", 0),
        (CUT, "open", 2),
    ],
)
def test_the_exit_status_is_the_verdict_where_strict(
    words: str, verdict: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    if words == CUT:
        ends = dpsub.account(
            dpsub.TruncatedPoisson(0.05, 70), 1000, noise_multiplier=1, steps=10, delta=1e-5
        )
        words += f" --claimed-epsilon {(ends.lower + ends.upper) / 2:.6f}"
    assert main([*words.split(), "--explain"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{verdict}: epsilon <= ")
    assert ("(C, -C, ..., -C)" in text.splitlines()[2]) == (verdict == "refuted")
    assert main([*words.split(), "--strict", "--json"]) == status
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["claimed"]) == (verdict, float(words.split()[-1]))


def test_events_come_from_files_and_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0)), 100)
    Path("plan.json").write_text(json.dumps(as_json(event.to_named_tuple())), encoding="utf-8")
    Path("list.json").write_text(json.dumps(event.to_named_tuple()), encoding="utf-8")
    Path("broken.json").write_text("{", encoding="utf-8")
    twice = '{"class_name": "GaussianDpEvent",\n "noise_multiplier": 9,\n "noise_multiplier": 1}'
    Path("twice.json").write_text(twice, encoding="utf-8")
    Path("my_plan.py").write_text(
        "import dp_accounting as dp\n"
        "PLAN = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0)), "
        "100)\n",
        encoding="utf-8",
    )
    claim = ["--delta", "1e-5", "--claimed-epsilon", "0.72", "--json"]
    answers = []
    for place in ("plan.json", "my_plan:PLAN", "list.json"):
        assert main(["check", "--event", place, *claim]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    first = answers[0]
    assert answers == [first] * 3
    assert first["verdict"] == "proved" and "over the norm bound C" in first["remarks"][0]
    for words, sentence in (
        ("--event none.json", "cannot be read (No such file"),
        ("--event broken.json", "must be JSON of an event"),
        ("--event twice.json", "got 'noise_multiplier' again at line 3; keep the right one"),
        ("--event plan", "must be FILE.json or MODULE:NAME"),
        ("--event not_there:X", "cannot be imported"),
        ("--event my_plan:NOTHING", "my_plan has no NOTHING"),
        ("poisson", "--noise-multiplier or an --event is needed"),
        (
            "poisson --event plan.json",
            "an event already describes the releases, got SAMPLER as well",
        ),
        ("--event plan.json --mechanism laplace", "got --mechanism as well"),
        ("", "SAMPLER or an --event is needed"),
    ):
        assert main(["check", *words.split(), *claim]) == 2
        assert sentence in json.loads(capsys.readouterr().out)["error"], words


def test_a_width_brings_the_ends_together_after_the_verdict() -> None:
    asked = {**QUESTION, "claimed_epsilon": 1.0}
    sampler = dpsub.Poisson(0.05)
    decided = dpsub.check(sampler, **asked)
    narrow = dpsub.check(sampler, **asked, width=1e-4)
    assert decided.verdict == narrow.verdict == "refuted"
    assert narrow.account.upper - narrow.account.lower <= 1e-4
    assert decided.account.upper - decided.account.lower > 1e-4
    # as close as the verdict takes is what was asked for
    assert decided.width_met and narrow.width_met and not decided.width_reason
    assert narrow.relative_width == narrow.account.relative_width > 0
    with pytest.raises(ArgumentError, match="width must be above 0"):
        dpsub.check(sampler, **asked, width=0.0)


def test_an_open_claim_says_why_and_each_end_names_its_theorem() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 20, "delta": 1e-5}
    asked["adjacency"] = "substitute"
    first = dpsub.account(dpsub.Wor(20), 1000, **asked)
    claim = {**asked, "claimed_epsilon": (first.lower + first.upper) / 2}
    quick = dpsub.check(dpsub.Wor(20), 1000, **claim, quick=True)
    assert quick.verdict == "open" and not quick.width_met
    assert quick.width_reason.startswith("quick")
    assert quick.theorem == "Theorem 2, docs/proofs/without_replacement.md"
    full = dpsub.check(dpsub.Wor(20), 1000, **claim, quick=False)
    assert full.verdict == "proved" and (full.width_met, full.width_reason) == (True, "")
    assert full.theorem == "Theorem 15, docs/proofs/without_replacement.md"
    assert full.lower_theorem == "Filler flip, docs/proofs/attacks.md"
    late = dpsub.check(dpsub.Wor(20), 1000, **claim, time_limit=1e-6)
    assert late.verdict == "open" and late.width_reason.startswith("time")


def test_a_missed_width_is_explained() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 2.0, "epochs": 3, "delta": 1e-5, "quick": False}
    apart = dpsub.check(dpsub.Shuffle(10), 100, **asked, claimed_epsilon=1e3, width=0.01)
    assert apart.verdict == "proved" and not apart.width_met
    assert apart.width_reason.startswith("theory")
