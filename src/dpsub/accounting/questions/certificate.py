"""Certificates, with which a second program can prove an answer again (docs/certificates.md).

No bound is computed here. The searches note which grids they used. For each direction the coarsest
grid that gives the claimed bound is built again, and its laws are written down, each with the
theorem that proves it or the data sets that attain it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpsub.accounting.engine.bracket import Evaluation, Target
from dpsub.accounting.engine.composition import Composition, answers_of
from dpsub.accounting.engine.pld import PrivacyLossDistribution
from dpsub.accounting.engine.privacy_events import EnclosedEvent, Event
from dpsub.accounting.games.filler_flip import Played
from dpsub.accounting.games.game import GamePlayed
from dpsub.accounting.games.static import Neighbours
from dpsub.accounting.release import Release, as_plain
from dpsub.accounting.schemes import case_of
from dpsub.accounting.schemes.allocation.one_step import (
    AllocationEvent,
    JoinedLaw,
    RatioEvent,
    ReplacedEvent,
    SelectionEvent,
    SumEvent,
    reference_grid,
)
from dpsub.accounting.schemes.allocation.opposite_event import OppositeEvent
from dpsub.accounting.schemes.allocation.several_steps import Block, GivenSumEvent, LargerBlocks
from dpsub.accounting.schemes.allocation.turns import OppositeTurns
from dpsub.accounting.schemes.case import Case, Theorem
from dpsub.accounting.schemes.separation.events import SeparatedEvent, SeparatedSum
from dpsub.accounting.schemes.shuffling.differences import FOR_MOMENTS
from dpsub.accounting.schemes.shuffling.hidden_step import HiddenStep, HiddenStepEvent
from dpsub.accounting.schemes.shuffling.weights import Weights
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.schedules import Deterministic, Shuffle, TruncatedPoisson

if TYPE_CHECKING:
    from dpsub.accounting.questions.account import Account
    from dpsub.accounting.questions.proof import Proof

SCHEMA = 1
"""Version of the JSON that is written; docs/certificates.md describes it."""
_COMPOSED_CURVE, _REVEALED, _ORDER_REVEALED = "39", "24", "19"
_OF_GROUPS = (
    "a certificate of a group needs Gaussian noise, Theorem 35, 36, 37 or 38 and an attack on all "
    "records of the unit"
)
_FIRST_ENDS_ALONE = (
    "a certificate needs the privacy loss distributions behind a bound, got closed forms, which "
    "need none; raise effort"
)
_EPS = float(np.finfo(float).eps)
_COARSER = 1.5  # grids whose steps are so many times too large are left
_DIGITS = 9  # of claimed bounds: what is rounded away is far more than two programs can differ by


def certificate_of(account: Account, proof: Proof, target: Target) -> dict[str, Any]:
    """Return the certificate of an answer, ready for JSON, from the proof and the target for which
    it was computed."""
    # first of all, answers that no file can hold are refused
    for release in proof.releases:
        as_plain(release)
    stated = _stated(proof)
    _check_groups(proof)
    _check_dropped(stated, proof.relation)
    given = {"delta": target.delta} if target.epsilon is None else {"epsilon": target.epsilon}
    lower, lower_claim = _lower(account, proof, target)
    upper, upper_claim = _upper(account, proof, target)
    if lower is None and upper is None:
        raise UnsupportedError(_FIRST_ENDS_ALONE)
    return {
        "dpsub_certificate": SCHEMA,
        "made_by": f"dpsub {version('dpsub')}",
        "question": {
            "releases": [as_plain(release) for release in stated],
            "adjacency": str(proof.relation),
            "quantity": account.quantity,
            "given": given,
        },
        "claim": {"lower": lower_claim, "upper": upper_claim},
        "upper": upper,
        "lower": lower,
    }


def _stated(proof: Proof) -> list[Release]:
    """Return the releases that the question of a certificate states: those of the answer, or
    others that tell at least as much."""
    return [
        _with_samples_known(release, case, proof.relation) if _is_revealed(case) else release
        for release, case in zip(proof.releases, proof.cases, strict=True)
    ]


def _is_revealed(case: Case) -> bool:
    """Whether several releases of a sample are bounded with the samples revealed."""
    return case.theorem.number == _REVEALED


def _with_samples_known(release: Release, case: Case, relation: Relation) -> Release:
    """Return one release of all records for each sample, which tells at least as much."""
    farthest = 2.0 if relation is Relation.SUBSTITUTE else 1.0
    s = release.noise_multiplier * farthest / case.shift
    return replace(
        release,
        sampler=Deterministic(),
        # rounded down: less noise tells more
        noise_multiplier=s * (1 - 8 * _EPS),
        steps=release.times,
        one_sided=True,
    )


def _check_groups(proof: Proof) -> None:
    """Refuse a group unless its attack is one on all of its records, of whose number the law is
    known."""
    if all(release.group == 1 for release in proof.releases):
        return
    for case, release in zip(proof.cases, proof.releases, strict=True):
        if case.theorem.number == _COMPOSED_CURVE:
            refused = f"Theorem {_COMPOSED_CURVE}"
        elif release.mechanism != "gaussian":
            refused = f"{release.mechanism} noise"
        elif isinstance(release.sampler, TruncatedPoisson):
            refused = "cut samples"
        elif isinstance(case.event, EnclosedEvent):
            refused = "an attack on fewer records"
        else:
            continue
        raise UnsupportedError(f"{_OF_GROUPS}, got {refused}; ask for group = 1")


def _check_dropped(stated: Sequence[Release], relation: Relation) -> None:
    """Refuse shuffled epochs that drop records where one is added, and those of one step, which are
    samples and are written as these."""
    for release in stated:
        sampler = release.sampler
        if not (isinstance(sampler, Shuffle) and sampler.drop_last):
            continue
        if sampler.steps_per_epoch(release.n) == 1:
            used = f" with releases_per_sample = {release.epochs}" if sampler.one_plan else ""
            raise UnsupportedError(
                f"a certificate of epochs with one step and drop_last is one of samples without "
                f"replacement, got {sampler}; ask for Wor({sampler.m}){used}"
            )
        if relation is Relation.ADD_REMOVE:
            raise UnsupportedError(
                "a certificate of shuffled epochs needs substitute or zero_out, got add_remove, "
                "whose Theorem 78 the verifier does not know; ask for substitute"
            )


def _upper(
    account: Account, proof: Proof, target: Target
) -> tuple[dict[str, Any] | None, float | None]:
    """Return the proof of the upper bound, and the bound that is claimed; None and None where the
    bound is trivial, or has a closed form."""
    if not account.upper < target.ceiling:
        return None, None
    certified = _certified(proof, target)
    games = [
        played
        for played in proof.games
        if _same(played.target, target) and played.answer <= account.upper
    ]
    if games and account.upper < certified.end:
        return _game(proof, games[0]), _rounded(account.upper, ROUND_CEILING)
    if not certified.end < np.inf:
        return None, None
    # a bound that was lowered to the largest loss is claimed as the laws give it
    claim = _rounded(max(account.upper, certified.end), ROUND_CEILING)
    certified = _shortened(certified, claim, target)
    sides: dict[str, Any] = {"forward": None, "backward": None}
    blocks: dict[Block, dict[str, Any]] = {}
    for swapped, tried in certified.by_direction.items():
        # the coarsest grid that proves the claim: its laws are the shortest
        enough = [grid for grid in tried if grid.answer <= claim]
        grid = max(enough, key=_coarseness)
        sides[_direction(swapped)] = _proved_parts(certified, grid, blocks)
    if blocks:
        sides["blocks"] = list(blocks.values())
    return sides, claim


class _Certified(NamedTuple):
    """A composition whose upper laws a certificate holds, the theorem of each of its events, and
    its grids for one target."""

    composition: Composition
    theorems: list[Theorem]
    grids: list[Evaluation]

    @property
    def by_direction(self) -> dict[bool, list[Evaluation]]:
        return {
            swapped: [grid for grid in self.grids if grid.swapped == swapped]
            for swapped in self.composition.proved_directions
        }

    @property
    def end(self) -> float:
        """The upper bound that is proved: of both directions the larger one."""
        # a proof for which there was no time has no grids
        return max(
            min((grid.answer for grid in tried), default=np.inf)
            for tried in self.by_direction.values()
        )


def _certified(proof: Proof, target: Target) -> _Certified:
    """Return the proof of the smallest bound among those of the answer, each as far as the verifier
    knows it."""
    places = range(len(proof.composition.proofs))
    return min((_as_certified(proof, place, target) for place in places), key=lambda one: one.end)


def _as_certified(proof: Proof, place: int, target: Target) -> _Certified:
    """Return one of the proofs of the answer, on the grids on which it was looked at.

    What the verifier knows of it may give a larger bound than the answer's.
    """
    answered = proof.composition.proofs[place]
    grids = _evaluated(answered.evaluations, "upper", target)
    chosen = [
        case_of(release, proof.relation).certifiable(0)
        if _is_revealed(case)
        else case.certifiable(place)
        for case, release in zip(proof.cases, _stated(proof), strict=True)
    ]
    theorems = [each.theorem for each in chosen]
    pairs = list(zip(chosen, answered.entries, strict=True))
    if all(each.event is event for each, (event, _) in pairs) and not answered.is_blended:
        return _Certified(answered, theorems, grids)
    # the verifier asks for a law of each kind, which the mixtures of an answer lie above
    known = Composition([(each.event, times) for each, (_, times) in pairs], one_by_one=True)
    if known.spread < answered.spread / _COARSER:
        # of small losses that are composed often: grids for the large ones of the answer are none
        known.bounds([target])
        return _Certified(known, theorems, _evaluated(known.evaluations, "upper", target))
    return _Certified(known, theorems, [_looked_at(known, grid, target) for grid in grids])


def _shortened(certified: _Certified, claim: float, target: Target) -> _Certified:
    """Leave out the numbers of steps of Theorem 49 that the claim does not need, as the laws for
    each of them are long."""
    for place, (event, _) in enumerate(certified.composition.entries):
        if not isinstance(event, HiddenStepEvent):
            continue
        for k in event.references:
            shorter = _with_event(certified, place, event.without(k), target)
            if shorter.end <= claim:
                certified, event = shorter, event.without(k)
    return certified


def _with_event(certified: _Certified, place: int, event: Event, target: Target) -> _Certified:
    """Put another event at one place."""
    entries = [*certified.composition.entries]
    entries[place] = event, entries[place][1]
    composition = Composition(entries)
    grids = [_looked_at(composition, grid, target) for grid in certified.grids]
    return certified._replace(composition=composition, grids=grids)


def _looked_at(composition: Composition, grid: Evaluation, target: Target) -> Evaluation:
    """Return the grid with the bound that this composition gives on it."""
    composed = composition.upper(grid.step, grid.tail, grid.swapped)
    (answer,) = answers_of(composed, [target])
    return grid._replace(answer=float(answer))


def _attained_on(composition: Composition, grid: Evaluation, target: Target) -> Evaluation:
    """Return the grid with the bound that this composition attains on it."""
    composed = composition.lower(grid.step, grid.tail, grid.swapped)
    answer = 0.0 if composed is None else float(answers_of(composed, [target])[0])
    return grid._replace(answer=answer)


def _lower(
    account: Account, proof: Proof, target: Target
) -> tuple[dict[str, Any] | None, float | None]:
    """Return the attack at the lower bound, and the bound that is claimed; None and None where the
    bound is trivial, or has a closed form."""
    if not (account.lower > 0 and all(case.attack_certified for case in proof.cases)):
        return None, None
    # an attack on samples is none on what stands for them
    if any(_is_revealed(case) for case in proof.cases):
        return None, None
    kept = [played.answer for played in proof.policies if _same(played.target, target)]
    whole = proof.composition
    # where both ends are about one number, the first attack is looked at together with the proof
    choices = [
        (place, attack, (whole if whole.is_exact and place == 0 else attack).evaluations)
        for place, attack in enumerate(whole.attack_choices)
        if all(case.choice(place).neighbours for case in proof.cases) and not _is_unknown(attack)
    ]
    for _, _, evaluations in choices:
        kept += [grid.answer for grid in _evaluated(evaluations, "lower", target)]
    # a closed-form bound may be larger than what any law shows
    claim = _rounded(min(account.lower, max(kept, default=0.0)), ROUND_FLOOR)
    if not claim > 0:
        return None, None
    for played in proof.policies:
        if _same(played.target, target) and played.answer >= claim:
            return _policy(proof, played), claim
    for place, composition, evaluations in choices:
        grids = _evaluated(evaluations, "lower", target)
        if composition.is_blended and grids:
            # attacks are certified kind by kind, too: what these attain is claimed
            composition = Composition(composition.entries, one_by_one=True)
            grids = [_attained_on(composition, grid, target) for grid in grids]
            claim = _rounded(min(account.lower, max(grid.answer for grid in grids)), ROUND_FLOOR)
        reaching = [grid for grid in grids if grid.answer >= claim > 0]
        if reaching:
            grid = max(reaching, key=_coarseness)
            parts = _attained_parts(proof, composition, grid, place)
            return {"direction": _direction(grid.swapped), "parts": parts}, claim
    return None, None


def _is_unknown(attack: Composition) -> bool:
    """Whether the verifier does not know what an attack looks at."""
    unknown = OppositeEvent | OppositeTurns
    return any(isinstance(event, unknown) for event, _ in attack.entries)


def _evaluated(evaluations: Iterable[Evaluation], side: str, target: Target) -> list[Evaluation]:
    """Return the grids on which one side of one target was looked for."""
    return [grid for grid in evaluations if grid.side == side and _same(grid.target, target)]


def _same(one: Target, other: Target) -> bool:
    return (one.epsilon, one.delta) == (other.epsilon, other.delta)


def _coarseness(evaluation: Evaluation) -> tuple[float, float]:
    return evaluation.step, evaluation.tail


def _direction(swapped: bool) -> str:
    return "backward" if swapped else "forward"


def _rounded(end: float, rounding: str) -> float:
    """Return the bound with a few digits on its safe side, also as a double."""
    # outwards in decimals, as a reader sees it, and once more where the nearest double lies inside
    digits = Context(prec=_DIGITS, rounding=rounding)
    value = float(digits.create_decimal(Decimal(end)))
    step = np.inf if rounding == ROUND_CEILING else -np.inf
    safe = value >= end if rounding == ROUND_CEILING else value <= end
    return value if safe else float(np.nextafter(value, step))


def _law(pld: PrivacyLossDistribution) -> dict[str, Any]:
    """Return a privacy loss distribution as plain data: masses at multiples of the step, offset by
    `offset`."""
    order = np.argsort(pld.indices, kind="stable")
    return {
        "step": pld.step,
        "offset": pld.offset,
        "indices": pld.indices[order].tolist(),
        "masses": pld.masses[order].tolist(),
        "infinity": pld.infinity,
    }


def _proved_parts(
    certified: _Certified, grid: Evaluation, shared: dict[Block, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the laws of one direction, each with its theorem; entries that laws of both directions
    refer to go to `shared`."""
    parts = []
    entries = zip(certified.composition.entries, certified.theorems, strict=True)
    for place, ((event, times), (theorem, section)) in enumerate(entries):
        blocks = _blocks(event)
        laws = event.uppers(grid.step, grid.tail, grid.swapped)
        for number, (pld, repeats) in enumerate(laws):
            part = {
                "release": place,
                "times": times * repeats,
                "theorem": theorem,
                "section": section,
                "law": _law(pld),
            }
            if blocks:
                part |= _of_block(blocks[number], grid, shared)
            if isinstance(event, SeparatedEvent):
                part["steps"] = _of_step(event, grid)
            if isinstance(event, ReplacedEvent):
                part["revealed"] = _revealed(event.removed, *reference_grid(event.removed))
            if isinstance(event, HiddenStepEvent):
                part |= _of_hidden_step(event)
            parts.append(part)
    return parts


def _of_step(event: SeparatedEvent, grid: Evaluation) -> dict[str, Any]:
    """Return the laws of both parts of a step at which the record is available."""
    laws = event.step_laws(grid.step, grid.tail, grid.swapped)
    return dict(zip(("missed", "drawn"), map(_law, laws), strict=True))


def _of_hidden_step(event: HiddenStepEvent) -> dict[str, Any]:
    """Return what the theorems about a hidden step leave free."""
    clones = _clones(event.hidden)
    named: dict[str, Any] = {"clones": clones} if clones else {}
    if not event.hidden.has_weights:
        # where clones give less at no order the step might as well be revealed
        return named or {"theorem": _ORDER_REVEALED}
    return named | {
        "orders": _orders(event),
        "references": _references(event),
        "weights": _weights(event.hidden),
    }


def _clones(hidden: HiddenStep) -> list[dict[str, Any]]:
    """Return the orders at which Theorem 89 is to be computed, with a weight, numbers of steps and
    grids."""
    return [
        {
            "loss": bound.log_order,
            "weight": bound.weight,
            "counts": list(bound.counts),
            "grids": [grid._asdict() for grid in bound.grids],
        }
        for bound in hidden.certified.cloned
    ]


def _orders(event: HiddenStepEvent) -> list[dict[str, Any]]:
    """Return the orders at which Theorem 61 is to be computed, with their numbers of steps and
    grids."""
    return [
        {"loss": bound.log_order, "steps": bound.steps, "unit": bound.unit}
        for bound in event.hidden.certified.direct
    ]


def _weights(hidden: HiddenStep) -> dict[str, Any]:
    """Return the orders at which Theorem 76 is to be computed, with what it leaves free: for each
    law a tilt, the level up to which weights pay the common price, and cuts, as places."""
    return {
        "levels": Weights.levels_of(hidden.steps).tolist(),
        "places": FOR_MOMENTS.places.tolist(),
        "orders": [
            {
                "loss": bound.log_order,
                "unit": bound.unit,
                "laws": [
                    {
                        "tilt": proof.tilt,
                        "level": proof.level,
                        "first_cut": proof.first_cut,
                        "cuts": [*proof.cuts],
                    }
                    for proof in bound.proofs
                ],
            }
            for bound in hidden.certified.weighed
        ],
    }


def _references(event: HiddenStepEvent) -> list[dict[str, Any]]:
    """Return the numbers that Theorem 49 needs, for each of its numbers of steps."""
    return [
        {"steps": k}
        | {
            of: _revealed(allocated, *reference_grid(allocated))
            for of, allocated in event.hidden.stand_ins(k).items()
        }
        for k in event.references
    ]


def _of_block(
    block: RatioEvent | Block, grid: Evaluation, shared: dict[Block, dict[str, Any]]
) -> dict[str, Any]:
    """Return the proof of a block's law: its own sums, or the place in `shared` of the sums for
    both directions."""
    if not isinstance(block, Block):
        return {"sums": _sums(block, grid.step, grid.tail, upper=True, swapped=grid.swapped)}
    if block not in shared:
        shared[block] = _several(block)
    return {"block": list(shared).index(block)}


def _blocks(event: Event) -> Sequence[RatioEvent | Block]:
    """Return the allocations, to one step or to several, or all epochs of secret groups, that make
    up an event."""
    if isinstance(event, LargerBlocks):
        return [
            AllocationEvent(size, event.deviation) if own == 1 else event.block(size, own)
            for size, own, _ in event.parts
        ]
    return _in_single_steps(event) if isinstance(event, RatioEvent | SelectionEvent) else []


def _in_single_steps(event: RatioEvent | SelectionEvent) -> Sequence[RatioEvent]:
    """Return the blocks of Theorem 27, one of each size; for one step of the record, and for secret
    groups, there is one block."""
    if isinstance(event, SelectionEvent):
        return [block for block, _ in event.blocks]
    return [event]


def _several(block: Block) -> dict[str, Any]:
    """Return the proof of an allocation to several steps: sums over the steps, with the
    orders at which they are used, and the laws of the blocks of Theorem 27."""
    sums = [
        {
            "edges": moments.edges.tolist(),
            "first": moments.first,
            "together": moments.together,
            "count": moments.at_most.shape[1],
        }
        for moments in block.moments
    ]
    return {
        "steps": block.t,
        "own": block.k,
        "sums": sums,
        "orders": {_direction(side): block.orders[side].tolist() for side in (False, True)},
        "revealed": _revealed(block.revealed, *block.revealed_grid),
    }


def _revealed(
    event: RatioEvent | SelectionEvent, step: float, tail: float
) -> dict[str, list[dict[str, Any]]]:
    """Return the laws of the blocks of Theorem 27 in either direction, each with how often it is
    composed and the sums that prove it."""
    return {
        _direction(swapped): [
            {
                "times": times,
                "law": _law(pld),
                "sums": _sums(block, step, tail, upper=True, swapped=swapped),
            }
            for block, (pld, times) in zip(
                _in_single_steps(event), event.uppers(step, tail, swapped), strict=True
            )
        ]
        for swapped in (False, True)
    }


def _sums(
    event: RatioEvent, step: float, tail: float, *, upper: bool, swapped: bool
) -> list[dict[str, Any]]:
    """Return the laws of likelihood ratios from which that of an epoch is made, with their errors
    taken into account."""
    return [_ratios(each, swapped=swapped) for each in event.laws(step, tail, upper)]


def _ratios(joint: JoinedLaw, *, swapped: bool) -> dict[str, Any]:
    """Return one law with masses and ratios moved by twice their errors to the safe side: a law
    made of two has errors of at least their sum, so that the rounding of these products is
    covered."""
    law, of = joint.law, joint.of
    heavier = 1.0 if law.upper else -1.0
    farther = -heavier if swapped else heavier  # (a - R)_+ falls with R, (R - a)_+ grows with it
    masses = law.mass * (1 + heavier * 2 * law.mass_error)
    ratios = law.ratio * (1 + farther * 2 * law.ratio_error)
    row = {
        "terms": law.terms,
        "of": None if of is None else list(of),
        "ratios": ratios.tolist(),
        "masses": masses.tolist(),
        "lost": law.lost * (1 + 2 * law.mass_error),
        "edges": law.edges.tolist(),
    }
    return row | {"product": True} if joint.is_product else row


def _attained_parts(
    proof: Proof, composition: Composition, grid: Evaluation, place: int
) -> list[dict[str, Any]]:
    """Return the laws that data sets attain, each with these data sets; events without an attack
    are left out."""
    parts = []
    # the grid of the answer is the one that suits all events
    step = composition.fitting_step(grid.step)
    attained = composition.attained(step, grid.tail, grid.swapped)
    for number, ((event, _), (pld, times)) in enumerate(
        zip(composition.entries, attained, strict=True)
    ):
        if pld is None:
            continue
        neighbours, statistic = proof.cases[number].choice(place)
        assert neighbours is not None
        part = {
            "release": number,
            "times": times,
            "data": _written(neighbours),
            "statistic": statistic,
            "law": _law(pld),
        }
        # the law of an epoch is proved again from the laws of sums that it is made of
        if isinstance(event, RatioEvent):
            part["sums"] = _sums(event, step, grid.tail, upper=False, swapped=grid.swapped)
        # for a sum over the steps it is enough to know the addition of each of them
        summed = event.sums if isinstance(event, SelectionEvent) else event
        if isinstance(summed, SumEvent | GivenSumEvent | SeparatedSum):
            part["edges"] = summed.edges(grid.swapped).tolist()
        parts.append(part)
    return parts


def _written(neighbours: Neighbours) -> dict[str, int | None]:
    """Return the contributions of records, in units of C: the certificate's numbers are
    integers."""
    other = neighbours.other
    return {
        "record": int(neighbours.record),
        "other": None if other is None else int(other),
        "filler": int(neighbours.filler),
    }


def _policy(proof: Proof, played: Played) -> dict[str, Any]:
    neighbours = proof.cases[0].choice(0).neighbours
    assert neighbours is not None
    data_sets = _written(neighbours)
    return {
        "direction": "forward",
        "release": 0,
        "data": {**data_sets, "filler": "-1 or 1"},
        "step": played.grid.step,
        "window": [played.grid.first, played.grid.last],
        "blocks": [list(block) for block in played.grid.blocks],
    }


def _game(proof: Proof, played: GamePlayed) -> dict[str, Any]:
    adversary = proof.cases[0].game
    assert adversary is not None
    theorem, section = adversary.theorem
    cells: list[dict[str, Any]] = [
        {"cell": list(cell), "law": _law(pld)}
        for cell, pld in zip(played.cells, played.plds, strict=True)
    ]
    for entry, pld in zip(cells, played.swapped, strict=False):
        entry["backward"] = _law(pld)
    return {
        "game": {
            "release": 0,
            "steps": proof.releases[0].steps,
            "theorem": theorem,
            "section": section,
            "points": played.points,
            "cells": cells,
        }
    }
