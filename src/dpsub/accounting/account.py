"""Privacy of many releases from subsamples: what is proved, what an attack attains, and what the
papers' pair gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting import zeroed
from dpsub.accounting.attacks import AdaptiveAttack, Attacked, Played
from dpsub.accounting.bracket import Target
from dpsub.accounting.composition import Composition
from dpsub.accounting.game import Cells, Copies, FillerGame, GamePlayed, GaussianCells
from dpsub.accounting.laplace import laplace_case
from dpsub.accounting.pairs import (
    FillerPair,
    MixturePair,
    PoissonPair,
    WorPair,
    ZeroedPair,
)
from dpsub.accounting.pld import OutOfTimeError, RememberedProfile, deadline_after, time_limited
from dpsub.accounting.privacy_events import DominatedEvent, Event, PairEvent
from dpsub.accounting.proofs import ChainProfile, law_of
from dpsub.accounting.release import Release, steps_of
from dpsub.accounting.schedules import (
    check_denominator,
    check_places,
    once_an_epoch,
    plan_of,
    schedule_case,
)
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.base import Chain, PoissonStage, Sampler, StagedSampler
from dpsub.sampling.laws import MultiplicityLaw
from dpsub.sampling.schedules import Schedule

KINDS = ("exact", "bounds", "upper", "lower", "paper")
"""exact: both ends bracket the one number that the worst data sets attain.  bounds: the upper end
is proved, the lower one attained by explicit data sets, perhaps adaptively, so that no guarantee
below it can hold.  upper, lower: one of these ends, the other being trivial.  paper: brackets what
the papers' pair gives, and is not a guarantee."""
VARIANTS = ("rigorous", "paper")
_FRESH = "samples are fresh, independent and secret at every step, with all stages drawn anew"
_PUBLIC = "the number of records and all sizes or rates are public"
_GENERAL = (
    "the noise does not depend on the sample or its size",
    _FRESH,
    _PUBLIC,
    "real arithmetic and exact sampling are assumed",
)
SAME_SIZES = (
    "all sizes or rates are public, and the same in both data sets, of which one has a record more"
)
"""In place of the condition on the number of records where that is what data sets differ in."""
SIZES = "one data set has n records and the other, with one record more, n + 1"
"""Under which guarantees for add_remove hold where they depend on the number of records; added to
the conditions."""
CONDITIONS = (
    "each record enters by a vector of norm at most C that depends on that record and on past "
    "releases only",
    "the release is the sum over the sample plus N(0, (s C)^2 I), or that divided by a number "
    "fixed in advance",
    *_GENERAL,
)
"""Under which every guarantee for Gaussian noise holds."""
LAPLACE_CONDITIONS = (
    "the query is scalar: each record enters by a number in [-C, C] that depends on that record "
    "and on past releases only",
    "the release is the sum over the sample plus Laplace noise of scale s C, or that divided by a "
    "number fixed in advance",
    *_GENERAL,
)
"""Under which every guarantee for Laplace noise holds."""
WIDTH_MISSED = (
    "numerical limits stopped the refinement before the width that was asked for: both ends hold, "
    "but at least one is looser"
)
"""Added to the conditions where `Account.width_met` is false."""
TIGHT_SECONDS = 30.0
"""Time limit of a tight answer for which none is given."""
# of epsilon, how far apart exact ends of schedules may be at most where no width is given
_SHARE = 4e-3
# how far apart tight ends may be where no width is given, relative
_TIGHT_SHARE = {"epsilon": 5e-3, "delta": 5e-2}


@dataclass(frozen=True)
class Account:
    """delta at an epsilon, or epsilon at a delta, of a composed mechanism, and what that statement
    is worth.

    Attributes
    ----------
    lower, upper : float, or ndarray of the shape that was asked for
        The number lies in [lower, upper]; epsilon in nats.
    kind : {"exact", "bounds", "upper", "lower", "paper"}
        See `KINDS`.
    pair, lower_pair : str
        What gives the upper end (two distributions, or the proved profile), and what attains the
        lower one.
    adjacency : Relation
    sensitivity : str
        What one occurrence of the differing record does to the released value.
    quantity : {"delta", "epsilon"}
    conditions : tuple of str
        What the upper end needs; empty where it is not a guarantee.
    width_met : bool
        Whether both ends are as sharp as asked for. If not they hold all the same (`WIDTH_MISSED`
        is the last condition), and kind exact only says that they are about one number.
    """

    lower: Any
    upper: Any
    kind: str
    pair: str
    adjacency: Relation
    sensitivity: str
    quantity: str = "epsilon"
    lower_pair: str = ""
    conditions: tuple[str, ...] = ()
    width_met: bool = True
    _origin: tuple[Proof, Target] | None = field(default=None, repr=False, compare=False)

    def certificate(self) -> dict[str, Any]:
        """What another program needs to prove this answer again, as plain values that `json.dump`
        writes.

        Ends are claimed with nine digits, rounded outwards.  docs/certificates.md describes the
        entries, and the program `verifier` checks them.

        Raises
        ------
        ArgumentError
            If the answer is to several values, or not about what is proved (variant = paper).
        UnsupportedError
            If what gave an end cannot be written down.
        """
        # which knows ledgers, and they know this module
        from dpsub.accounting.certificate import certificate_of

        if self._origin is None:
            raise ArgumentError(
                "a certificate is of one proved answer, got several values, variant = paper or a "
                "copy; ask for one epsilon or delta, variant rigorous, and for the certificate "
                "where the answer was computed"
            )
        return certificate_of(self, *self._origin)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or another process gets: the answer without what it was computed from, which
        is large."""
        return {**self.__dict__, "_origin": None}

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        if not np.all(np.less_equal(self.lower, self.upper)):
            raise ArgumentError(
                f"an interval needs lower <= upper, got [{self.lower}, {self.upper}]"
            )
        for name in ("lower", "upper"):
            end = np.asarray(getattr(self, name), dtype=float)
            object.__setattr__(self, name, end if end.ndim else float(end))


def account(
    sampler: Sampler | Schedule,
    n: int | None = None,
    *,
    noise_multiplier: float,
    steps: int | None = None,
    epochs: int | None = None,
    epsilon: ArrayLike | None = None,
    delta: ArrayLike | None = None,
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    denominator: str = "fixed",
    variant: str = "rigorous",
    width: float | None = None,
    time_limit: float | None = None,
    tight: bool = False,
) -> Account:
    """Bound delta at `epsilon`, or epsilon at `delta`, of many releases from samples, from both
    sides.

    Parameters
    ----------
    sampler : Sampler or Schedule
        Who is in each sample, drawn anew at every step; or the plan of an epoch, drawn anew for
        every epoch.
    n : int, optional
        Number of records; Poisson sampling, and schedules that do not go by it, need none.
        Under add_remove it is that of the smaller data set, and both have as many steps.
    noise_multiplier : float
        Scale of the noise on the sum over the norm bound of one record, from 0.05 to 1e9.
    steps : int, optional
        Number of releases, by default 1; of a schedule whole epochs.
    epochs : int, optional
        Of a schedule, in place of `steps`; by default 1.
    epsilon, delta : float or array_like
        Exactly one: epsilon in nats, >= 0; delta in (0, 1). An array costs little more than the one
        of its values that needs most.
    adjacency : {"add_remove", "substitute", "zero_out"}, optional
        Default: add_remove for Poisson sampling, cyclic or truncated ones included, and random
        allocation, substitute for the rest. Under zero_out a record is replaced by one that
        contributes 0, and the number of records is public.
    mechanism : {"gaussian", "laplace"}
        Laplace noise is for scalar sums.
    denominator : {"fixed", "realised"}
        What the sum is divided by, with its noise: a number fixed in advance, or the size of the
        sample drawn.
    variant : {"rigorous", "paper"}
        Proof and attack; or the papers' pair (unit shift per occurrence, one direction), which is
        not a guarantee.
    width : float, optional
        Accuracy of each end, absolute for epsilon, relative for delta; 1e-3 on schedules and where
        both bracket one number, else 5e-3. By default what is exact for a schedule is also no wider
        than half a percent of epsilon.
    time_limit : float, optional
        Seconds after which the refinement stops: the ends reached by then are valid, and
        `width_met` is False.
    tight : bool
        Where the ends are not about one number, bring the upper one closer to the lower, in
        seconds, until they are `width` apart (by default half a percent of epsilon, 5 % of delta)
        or the time limit, by default 30 s, has passed. Under substitution, for samples drawn
        without replacement and, with Gaussian noise, with it (also WO), or with it from a first
        stage without (OW, where 6 % and more of epsilon stay open).

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no theorem covers the case; the message gives the reason.

    References
    ----------
    balle, Theorems 8 to 11; must, Section 3.4 (variant paper); docs/accounting.md, where each bound
    is proved.

    Examples
    --------
    >>> import dpsub
    >>> found = dpsub.account(dpsub.Poisson(0.01), noise_multiplier=1.0, steps=100, delta=1e-5)
    >>> found.kind, str(found.adjacency), 0.71 < found.lower <= found.upper < 0.73
    ('exact', 'add_remove', True)
    >>> poisson = dpsub.Poisson(0.01)
    >>> found = dpsub.account(poisson, noise_multiplier=1.0, steps=100, delta=[1e-6, 1e-5])
    >>> found.upper.round(1).tolist()
    [1.0, 0.7]
    >>> question = {"noise_multiplier": 1.0, "epsilon": 1.0}
    >>> printed = dpsub.account(dpsub.MustOW(2, 2), 4, **question, variant="paper")
    >>> attained = dpsub.account(dpsub.MustOW(2, 2), 4, **question)
    >>> printed.upper < 0.09 < 0.19 < attained.lower  # the paper's number is far below an attack
    True
    """
    limit = TIGHT_SECONDS if tight and time_limit is None else time_limit
    deadline = deadline_after(limit)
    steps = steps_of(sampler, n, steps, epochs)
    release = Release(sampler, n, noise_multiplier, steps, mechanism, denominator)
    proved = checks.one_of("variant", variant, VARIANTS) == "rigorous"
    if not proved and tight:
        raise ArgumentError(
            "the papers' pair has no tight bound, got tight with variant = paper; drop one of them"
        )
    with time_limited(deadline):
        source = Proof.of([release], adjacency) if proved else _PaperPair(release, adjacency)
        found = answers(source, epsilon, delta, width, deadline, tight)
    if not tight or found.width_met:
        return found
    missed = (
        f"the time limit of {limit:g} s, or a numerical one, came before the ends were that "
        "close: both hold"
    )
    return replace(found, conditions=(*found.conditions[:-1], missed))


def answers(
    source: Proof | _PaperPair,
    epsilon: Any,
    delta: Any,
    width: float | None,
    deadline: float | None,
    tight: bool = False,
) -> Account:
    """The account of one target; of an array of them, with the ends in its shape."""
    asked: dict[str, Any] = {
        "width": source.width if width is None else width,
        "deadline": deadline,
    }

    def accounts_of(targets: Sequence[Target]) -> list[Account]:
        accounts = source.accounts(targets)
        if isinstance(source, _PaperPair):
            return accounts
        if width is None and source.planned and source.composition.is_exact:
            accounts = [
                source.account(replace(target, width=_SHARE * found.upper))
                if target.epsilon is None and found.upper - found.lower > _SHARE * found.upper
                else found
                for target, found in zip(targets, accounts, strict=True)
            ]
        if not tight:
            return accounts
        return [
            source.tightened(found, target, width)
            for found, target in zip(accounts, targets, strict=True)
        ]

    name, given = ("epsilon", epsilon) if delta is None else ("delta", delta)
    if np.ndim(given) == 0 or (epsilon is None) == (delta is None):
        found = accounts_of([Target(epsilon, delta, **asked)])[0]
        source.composition.forget()  # the answer knows what it was computed from, to certify it
        return found
    values = checks.finite_array(name, given)
    if not values.size:
        raise ArgumentError(f"an array of {name} must hold at least one value, got none; give one")
    # in order: a grid that suits one value is tried first for the next
    unique, places = np.unique(values, return_inverse=True)
    accounts = accounts_of([Target(**{name: value}, **asked) for value in unique.tolist()])
    lower, upper = (
        np.array([getattr(found, end) for found in accounts])[places] for end in ("lower", "upper")
    )
    attacks = "; ".join(dict.fromkeys(found.lower_pair for found in accounts))
    loosest, shape = min(accounts, key=lambda found: found.width_met), values.shape
    lower, upper = lower.reshape(shape), upper.reshape(shape)
    return replace(loosest, lower=lower, upper=upper, lower_pair=attacks, _origin=None)


@dataclass(frozen=True, eq=False)
class Proof:
    """What is proved for releases of several kinds on the same records, before any number is
    computed."""

    releases: tuple[Release, ...]
    cases: tuple[_Case, ...]
    relation: Relation
    composition: Composition
    policies: list[Played] = field(default_factory=list)
    games: list[GamePlayed] = field(default_factory=list)

    @classmethod
    def of(cls, releases: Sequence[Release], adjacency: str | None = None) -> Proof:
        """Find the theorems that apply; UnsupportedError, with the reason, if none does."""
        relation = _relation(releases, adjacency)
        cases = tuple(_case(release, relation) for release in releases)
        entries = [
            (case.event, release.times) for case, release in zip(cases, releases, strict=True)
        ]
        return cls(tuple(releases), cases, relation, Composition(entries))

    @property
    def planned(self) -> bool:
        """Whether any of the releases follow a schedule."""
        return any(isinstance(one.sampler, Schedule) for one in self.releases)

    @property
    def width(self) -> float:
        """Default accuracy: finer where both ends bracket one number, and on schedules."""
        return 1e-3 if self.planned or self.composition.is_exact else 5e-3

    def accounts(self, targets: Sequence[Target]) -> list[Account]:
        """Both ends for each of several targets, which share privacy loss distributions."""
        attack = "; ".join(dict.fromkeys(case.attack for case in self.cases))
        if self.composition.is_exact:
            found = self.composition.brackets(targets)
            return [
                self._account(target, *ends, attack)
                for target, ends in zip(targets, found, strict=True)
            ]
        # the guarantee first: attacks get what time is left
        uppers, adaptive = self.composition.bounds(targets), [0.0] * len(targets)
        flipped = self.cases[0].flipped
        if len(self.releases) == 1 and flipped is not None:
            with time_limited(targets[0].deadline):
                adaptive = AdaptiveAttack(flipped, self.releases[0].steps, self.policies).answers(
                    targets
                )
        accounts = []
        lowers = self.composition.attacks(targets, adaptive)
        for target, upper, lower, flip in zip(targets, uppers, lowers, adaptive, strict=True):
            words = (
                (f"{attack}, the fillers' sign chosen adaptively") if flip > lower.value else attack
            )
            met = lower.width_met and upper.width_met
            accounts.append(self._account(target, max(lower.value, flip), upper.value, met, words))
        return accounts

    def account(self, target: Target) -> Account:
        return self.accounts([target])[0]

    @property
    def tightens(self) -> bool:
        """Whether `tightened` brings the upper end closer to the lower one."""
        return (
            not self.composition.is_exact
            and len(self.releases) == 1
            and self.cases[0].cells is not None
        )

    def tightened(self, found: Account, target: Target, width: float | None) -> Account:
        """An account with an upper end from the game of the adaptive adversary, until both ends are
        `width` apart."""
        if self.composition.is_exact:
            return found
        cells = self.cases[0].cells
        if not self.tightens or cells is None:
            raise UnsupportedError(
                "a tight bound is known under substitute, for samples without replacement and, "
                "with Gaussian noise, with it, and with it after a stage of 2 or more without; "
                "leave tight out"
            )
        lower, upper = float(found.lower), float(found.upper)
        if not 0 < upper < np.inf:
            return found  # nothing to bring closer, or nothing from which to start
        apart = width or _TIGHT_SHARE[found.quantity] * (
            upper if found.quantity == "epsilon" else 1.0
        )
        wanted = replace(target, width=apart)
        best = upper
        with time_limited(target.deadline), suppress(OutOfTimeError):
            game = FillerGame(cells(), self.releases[0].steps, self.composition.spread, self.games)
            best = max(game.answer(wanted, lower, upper), lower)
        pair = (
            found.pair
            if best == upper
            else ("the game of v, v' and the replaced vectors, on cells of such choices")
        )
        met = wanted.gap(lower, best) <= 1
        conditions = tuple(line for line in found.conditions if line != WIDTH_MISSED)
        return replace(
            found,
            upper=best,
            pair=pair,
            width_met=met,
            conditions=conditions if met else (*conditions, WIDTH_MISSED),
        )

    def upper(self, target: Target) -> Account:
        """The upper end alone, of kind upper; both where they are computed together."""
        if self.composition.is_exact:
            return self.account(target)
        upper, width_met = self.composition.bound(target)
        return self._account(target, 0.0, upper, width_met, "")

    def _account(
        self, target: Target, lower: float, upper: float, width_met: bool, attack: str
    ) -> Account:
        largest = self.composition.largest_loss
        if target.epsilon is None:
            upper = min(upper, largest)
        elif target.epsilon >= largest:
            upper = 0.0
        if lower > upper * (1 + 1e-9) + 1e-12:
            raise crossed(lower, upper)
        conditions = tuple(dict.fromkeys(line for case in self.cases for line in case.conditions))
        return Account(
            min(lower, upper),
            upper,
            kind="exact" if self.composition.is_exact else "bounds" if attack else "upper",
            pair="; ".join(dict.fromkeys(case.pair for case in self.cases)),
            lower_pair=attack,
            adjacency=self.relation,
            sensitivity=self.cases[0].sensitivity,
            quantity=target.quantity,
            conditions=conditions if width_met else (*conditions, WIDTH_MISSED),
            width_met=width_met,
            _origin=(self, target),
        )


def crossed(lower: float, upper: float) -> NumericalError:
    """Of two ends that contradict each other, one is wrong. What less noise guarantees is true of
    more."""
    return NumericalError(
        f"bounds must not cross, got lower {lower!r} and upper {upper!r}: one of them is wrong; "
        "report the arguments, and ask with a slightly smaller noise_multiplier, whose upper end "
        "holds for this one too"
    )


class _PaperPair:
    """What the papers' pair gives, from both sides (must, Section 3.4 and Sections S5 and S6 of its
    supplement)."""

    width = 1e-3

    def __init__(self, release: Release, adjacency: str | None) -> None:
        if release.mechanism != "gaussian":
            raise ArgumentError(
                f"the papers' pairs are Gaussian, got mechanism = {release.mechanism}; use variant "
                "rigorous"
            )
        if not isinstance(release.sampler, StagedSampler):
            raise ArgumentError(
                f"the papers' pairs are those of chains, got {release.sampler.name}; use rigorous"
            )
        if release.denominator != "fixed":
            raise ArgumentError(
                "the papers' pairs do not know the denominator, got denominator = "
                f"{release.denominator}; drop it"
            )
        chain, s = release.chain(), release.noise_multiplier
        self.pair: PoissonPair | WorPair | MixturePair
        if chain.kinds == ("poisson",):
            self.pair = PoissonPair(chain.stages[0].rate, s)
        elif chain.kinds == ("wor",):
            missed, q = chain.stages[0].count_law(chain.n, 1).tolist()
            self.pair = WorPair(q, s, missed)
        else:
            self.pair = MixturePair(law_of(chain), s)
        if adjacency is not None and adjacency != self.pair.relation:
            raise ArgumentError(
                f"the papers state this pair under {self.pair.relation}, got adjacency = "
                f"{adjacency}; drop it"
            )
        self.composition = Composition([(PairEvent(self.pair, one_direction=True), release.steps)])

    def accounts(self, targets: Sequence[Target]) -> list[Account]:
        return [
            Account(
                lower,
                upper,
                kind="paper",
                pair=f"{self.pair.label}, s = {self.pair.deviation:g}",
                adjacency=self.pair.relation,
                sensitivity="one occurrence of the record moves the sum by C",
                quantity=target.quantity,
                lower_pair="the same pair",
                width_met=width_met,
            )
            for target, (lower, upper, width_met) in zip(
                targets, self.composition.brackets(targets), strict=True
            )
        ]


@dataclass(frozen=True)
class _Case:
    """What is proved for one kind of release: its event, and words for it."""

    event: Event
    pair: str
    attack: str
    sensitivity: str
    flipped: Attacked | None = None
    # made where a tight bound is asked for alone: it takes long
    cells: Callable[[], Cells] | None = None
    conditions: tuple[str, ...] = CONDITIONS


def _relation(releases: Sequence[Release], adjacency: str | None) -> Relation:
    if adjacency is not None:
        return Relation(checks.one_of("adjacency", adjacency, list(Relation)))
    return (
        Relation.ADD_REMOVE if all(_adds(release) for release in releases) else Relation.SUBSTITUTE
    )


def _adds(release: Release) -> bool:
    """Whether the adjacency of releases that name none is add_remove."""
    if isinstance(release.sampler, StagedSampler):
        return release.chain().kinds == ("poisson",)
    return release.sampler.relation is Relation.ADD_REMOVE


def _case(release: Release, relation: Relation) -> _Case:
    case = _proved_case(release, relation)
    if relation is not Relation.ADD_REMOVE:
        return case
    # the number of records is what these data sets differ in
    conditions = tuple(SAME_SIZES if line == _PUBLIC else line for line in case.conditions)
    return replace(case, conditions=(*conditions, SIZES) if _goes_by_n(release) else conditions)


def _goes_by_n(release: Release) -> bool:
    """Whether what is proved of a record more depends on how many others there are."""
    if isinstance(release.sampler, StagedSampler):
        return release.chain().kinds != ("poisson",)
    return not isinstance(release.sampler, Schedule)


def _proved_case(release: Release, relation: Relation) -> _Case:
    if isinstance(release.sampler, StagedSampler):
        return _staged_case(release, release.chain(), relation)
    check_denominator(release, relation)
    check_places(release, relation)
    once = once_an_epoch(release.sampler)
    if once is None:
        case = _Case(*schedule_case(release, relation))
    else:
        case = _staged_case(release, Chain(1, (PoissonStage(once),)), relation)
        pair = f"once an epoch {case.pair}, q = {once:g}"
        case = replace(case, pair=pair)
    at, plan = case.conditions.index(_FRESH), plan_of(release.sampler, relation)
    return replace(case, conditions=(*case.conditions[:at], *plan, *case.conditions[at + 1 :]))


def _staged_case(release: Release, chain: Chain, relation: Relation) -> _Case:
    if relation is Relation.ADD_REMOVE and chain.kinds != ("poisson",):
        chain = replace(chain, n=chain.n + 1)  # of the data set with the record
    if release.mechanism == "laplace":
        return _Case(
            *laplace_case(chain, relation, release.noise_multiplier), conditions=LAPLACE_CONDITIONS
        )
    return _gaussian_case(release.noise_multiplier, chain, relation)


def _gaussian_case(s: float, chain: Chain, relation: Relation) -> _Case:
    if chain.kinds == ("poisson",):
        q = chain.stages[0].rate
        if relation is not Relation.SUBSTITUTE:
            pair = "(1 - q) N(0, s^2) + q N(1, s^2) against N(0, s^2), both directions"
            zeroed = relation is Relation.ZERO_OUT
            moved = "a record put to 0" if zeroed else "one record more or less"
            attack = (
                f"a record +C {'against 0' if zeroed else 'more'} among zero records, both "
                "directions"
            )
            return _Case(PairEvent(PoissonPair(q, s)), pair, attack, f"{moved} moves the sum by C")
        pair = "(1 - q) N(0, s^2) + q N(1, s^2) against (1 - q) N(0, s^2) + q N(-1, s^2)"
        attack = "a record +C against -C among zero records"
        return _Case(
            PairEvent(WorPair(q, s)),
            pair,
            attack,
            "one occurrence replaced moves the sum by up to 2 C",
        )
    if relation is Relation.ZERO_OUT:
        return _zeroed_case(s, chain)
    law = law_of(chain)
    if relation is Relation.ADD_REMOVE:
        return _added_case(s, chain, law)
    sensitivity = "one occurrence replaced moves the sum by up to 2 C, l of them by up to 2 l C"
    profile = cache(lambda tail: (RememberedProfile(ChainProfile(chain, s, tail)), None))
    if chain.kinds == ("wor",):
        proved = "profile q G(1 + (a - 1) / q, 2 / s), q = m / n"
    elif chain.kinds == ("wr",):
        proved = "group lemma at Binomial(m, 1/n)"
    else:
        proved = "group lemma at the last stage, the stages before it revealed"
    if chain.kinds[-1] == "poisson":
        attack = "records +C against -C among zero records"
        return _Case(DominatedEvent(profile, MixturePair(law, s)), proved, attack, sensitivity)
    attack = "data sets (C, -C, ..., -C) against (-C, ..., -C), both directions"
    filler = FillerPair(law, s / 2)
    once = chain.kinds == ("wor",)
    copies = copies_of(chain)
    cells = None if copies is None else lambda: GaussianCells(copies(), s)
    return _Case(
        DominatedEvent(profile, filler, attained=once), proved, attack, sensitivity, filler, cells
    )


def _zeroed_case(s: float, chain: Chain) -> _Case:
    """A record put to 0 in a sample without replacement (docs/accounting.md, Theorem 16)."""
    if chain.kinds != ("wor",):
        raise UnsupportedError(
            "under zero_out bounds are proved for Poisson sampling and for one stage without "
            "replacement, not for records that can occur several times; use substitute, which "
            "covers it"
        )
    missed, rate = chain.stages[0].count_law(chain.n, 1).tolist()
    if missed == 0:
        pair = "N(1, s^2) against N(0, s^2)"
        return _Case(
            PairEvent(PoissonPair(1.0, s)), pair, pair, "the record put to 0 moves the sum by C"
        )
    attack = ZeroedPair(rate, s, missed)
    return _Case(
        zeroed.zeroed_event(attack), zeroed.PROFILE, zeroed.ATTACK, zeroed.SENSITIVITY, attack
    )


def copies_of(chain: Chain) -> Callable[[], Copies] | None:
    """What makes what the game needs to know of a chain, for one stage or one with replacement
    after one without; None for the rest."""
    *before, last = chain.stages
    slots = before[0].size if before else chain.n
    counts = tuple(last.count_law(slots, 1).tolist())
    if (
        [stage.kind for stage in before] not in ([], ["wor"])
        or last.kind == "poisson"
        or counts[0] <= 0
    ):
        return None
    if not before:
        return lambda: Copies(counts)
    missed, passed = before[0].count_law(chain.n, 1).tolist()
    return lambda: Copies.of_draws(counts, passed, slots, last.size, missed)


def _added_case(s: float, chain: Chain, law: MultiplicityLaw) -> _Case:
    """A record more in `chain`, of the data set that has it: it takes the places of others, so that
    one occurrence moves the sum by up to 2 C (docs/accounting.md, Theorems 9 and 10)."""
    sensitivity = (
        "one occurrence takes another record's place and moves the sum by up to 2 C, l "
        "of them by up to 2 l C"
    )
    attack = "data sets (C, -C, ..., -C) against (-C, ..., -C) of one record less, both directions"
    if len(chain.kinds) == 1:
        p = "Bernoulli(m / (n + 1))" if chain.kinds == ("wor",) else "Binomial(m, 1 / (n + 1))"
        pair = f"sum_l p_l N(2 l, s^2) against N(0, s^2), p = {p}, both directions"
        return _Case(PairEvent(FillerPair(law, s / 2)), pair, attack, sensitivity)
    shift = 2.0
    if chain.kinds[-1] == "poisson":  # whose random size would blur what fillers at -C add
        shift, attack = 1.0, "a record +C more among zero records, both directions"
    profile = cache(
        lambda tail: (
            RememberedProfile(ChainProfile(chain, s, tail)),
            RememberedProfile(ChainProfile(chain, s, tail).removed),
        )
    )
    proved = (
        "group lemma at the last stage, the stages before it revealed, with and without the record"
    )
    return _Case(DominatedEvent(profile, FillerPair(law, s / shift)), proved, attack, sensitivity)
