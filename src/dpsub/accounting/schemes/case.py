"""The upper bound and the attack of one kind of release: a `Case`, and the function that gives it.

A scheme is a function from a release and a relation to its case, registered by `covers`. Nothing
else in the package decides which theorem covers a sampler or a schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation

if TYPE_CHECKING:  # a case names its numerics; what a question needs of them its scheme imports
    from dpsub.accounting.engine.pairs import GaussianPair
    from dpsub.accounting.engine.pld import Profile
    from dpsub.accounting.engine.privacy_events import Event
    from dpsub.accounting.games.filler_flip import Attacked
    from dpsub.accounting.games.game import GameCells
    from dpsub.accounting.games.static import EpochAttack, Neighbours, StepAttack
    from dpsub.accounting.release import Release

OTHER: dict[Relation, float | None] = {
    Relation.ADD_REMOVE: None,
    Relation.ZERO_OUT: 0.0,
    Relation.SUBSTITUTE: -1.0,
}
"""The value that replaces a record at C in an attack, in units of C; None where it is missing."""


STANDS_FOR = (
    "these releases stand for others that tell at most as much of a record, so that no attack on "
    "them is known to be one on those"
)
"""A condition of one-sided releases."""


PAGES = {
    "1": "setting",
    "2": "setting",
    "3": "setting",
    "3.1": "setting",
    "3.2": "poisson",
    "3.3": "without_replacement",
    "3.4": "chains",
    "3.5": "chains",
    "3.6": "chains",
    "3.7": "laplace",
    "3.8": "added_records",
    "3.9": "zero_out",
    "3.10": "cut_samples",
    "4": "composition",
    "4.1": "without_replacement",
    "4.2": "schedules",
    "4.3": "shuffling",
    "4.4": "chains",
    "4.5": "composition",
    "4.6": "allocation",
    "4.7": "selection",
    "4.8": "groups",
    "4.9": "own_pairs",
    "4.10": "first_ends",
    "5": "attacks",
    "6": "what_fails",
    "7": "numerics",
    "8": "open",
}
"""Pages of docs/proofs by their sections."""


def page_of(section: str) -> str:
    """Return the page of a section of the proofs; a section of one's own, which has none, is looked
    up in the index."""
    return f"docs/proofs/{PAGES.get(section, 'index')}.md"


class Theorem(NamedTuple):
    """A theorem of docs/proofs, and its section."""

    number: str
    section: str

    @property
    def text(self) -> str:
        """The theorem and its page, as answers cite them."""
        name = f"Theorem {self.number}" if self.number.isdigit() else self.number.capitalize()
        return f"{name}, {page_of(self.section)}"


class AttackChoice(NamedTuple):
    """Data sets of an attack, and the statistic of their outputs that it looks at; no data sets
    where they do not lie on a line, which is what certificates can hold."""

    neighbours: Neighbours | None
    statistic: str = "sum"


class GroupAttack(NamedTuple):
    """Attacks with the records of a group, each with its data sets, and these in words."""

    events: tuple[Event, ...]
    choices: tuple[AttackChoice, ...]
    attained: str


class TightGame(NamedTuple):
    """The game of the adaptive adversary that bounds many steps, and its theorem."""

    cells: Callable[[], GameCells]  # made where a tight bound is asked for: it takes long
    theorem: Theorem


class Certified(NamedTuple):
    """An upper bound and its theorem, as the verifier proves it again."""

    event: Event
    theorem: Theorem


class Amplification(NamedTuple):
    """The amplification theorem of one release from a sample (`must`, Theorem 5).

    `attained`: whether it is an equality for some mechanism; `missing`: why it is not proved, empty
    if it is.
    """

    attained: bool = False
    missing: str = ""


@dataclass(frozen=True)
class Case:
    """The bounds of one kind of release under one adjacency relation.

    Attributes
    ----------
    event : Event
        Bounds of the loss of one step, or of one epoch of a schedule, proved and attained.
    theorem : Theorem
        The theorem that proves the upper bound.
    proved : str
        Its source in words: two distributions, or the proved profile.
    attained : str
        The data sets of the attacks, in words.
    sensitivity : str
        Effect of one occurrence of the differing record on the released value, in words.
    conditions : tuple of str
        Conditions of the upper bound.
    choices : tuple of AttackChoice
        Data sets of the attacks, in the order of `event.attack_choices`.
    shift : float
        Largest distance that the record moves the outputs of one event, in units of C, where the
        steps that it is in are known (Theorem 24).
    static : callable, optional
        The attack that an audit plays; None if it has none.
    filler_flip : Attacked, optional
        Outputs with fillers of either sign, where an attack may choose it step by step.
    game : TightGame, optional
        The game that brings the upper bound of many steps closer to the attack.
    papers_pair : callable, optional
        The pair that the papers compose, under the relation for which they state it.
    amplification : Amplification, optional
        None for samples that are no chain of stages.
    group_attack : callable, optional
        Function of a size that returns the attacks with all records of a group, where the proof for
        groups is the curve of one record (Theorem 39).
    revealed : callable, optional
        Function of a size that returns, for such groups, the profiles of an epoch whose steps with
        records of the group are known (Theorem 77).
    certified : tuple of Certified
        Bounds that a certificate proves for `event.upper_choices`: each choice by a theorem of its
        own, or the least of fewer bounds. Empty where `theorem` proves all of them.
    attack_section : str
        Section of docs/proofs with the attacks of the lower bound.
    attack_certified : bool
        Whether the verifier knows the attacks of the lower bound.
    reductions : tuple of Theorem
        Theorems by which the releases in question amount to those of `theorem`.
    """

    event: Event
    theorem: Theorem
    proved: str
    attained: str
    sensitivity: str
    conditions: tuple[str, ...]
    choices: tuple[AttackChoice, ...]
    shift: float
    static: Callable[[], StepAttack | EpochAttack] | None = None
    filler_flip: Attacked | None = None
    game: TightGame | None = None
    papers_pair: Callable[[], GaussianPair] | None = None
    amplification: Amplification | None = None
    group_attack: Callable[[int], GroupAttack] | None = None
    revealed: Callable[[int], tuple[Profile, Profile]] | None = None
    certified: tuple[Certified, ...] = ()
    attack_section: str = "5"
    attack_certified: bool = True
    reductions: tuple[Theorem, ...] = ()

    def cited(self, theorem: str) -> tuple[str, ...]:
        """Return a theorem about the releases to which those in question amount, behind those by
        which they do."""
        return *(each.text for each in self.reductions), theorem

    def citing(self, theorem: str) -> str:
        """Cite a theorem and those before it in one line."""
        return "; ".join(self.cited(theorem))

    def upper_alone(self) -> Case:
        """Return the case of releases that stand for others, which tell at most as much of a
        record."""
        # local, as cases name no numerics
        from dpsub.accounting.engine.privacy_events import EnclosedEvent

        event = self.event
        if isinstance(event, EnclosedEvent):
            alone = replace(event, attacks=())
        else:
            alone = EnclosedEvent(event, ())
        proofs = tuple(Certified(each, self.theorem) for each in event.upper_choices)
        return replace(
            self,
            event=alone,
            attained="",
            conditions=(*self.conditions, STANDS_FOR),
            choices=(),
            static=None,
            filler_flip=None,
            certified=self.certified or proofs,
        )

    def choice(self, place: int) -> AttackChoice:
        """Return the data sets of one of several choices; events with fewer choices repeat their
        last one."""
        return self.choices[min(place, len(self.choices) - 1)]

    def certifiable(self, place: int) -> Certified:
        """Return the part of a certificate for one of several proofs; events with fewer repeat
        their last one."""
        proofs = self.certified or [
            Certified(event, self.theorem) for event in self.event.upper_choices
        ]
        return proofs[min(place, len(proofs) - 1)]


Scheme = Callable[["Release", Relation], Case]


def _as_much(release: Release) -> float:
    return 1.0


class Covered(NamedTuple):
    """A scheme, the relation for which papers state its theorem (None: that of the sampler),
    relations under which its theorem holds for several releases of a sample, and by how much less
    noise it asks about."""

    scheme: Scheme
    relation: Relation | None
    reused: frozenset[Relation] = frozenset()
    noise_factor: Callable[[Release], float] = _as_much


COVERED: dict[type | str, Covered] = {}
"""Schemes by the class of sampler or schedule that they cover, or by the kind of the one stage to
which a chain comes down."""


def covers(
    key: type | str,
    relation: Relation | None = None,
    *,
    reused: Iterable[Relation] = (),
    noise_factor: Callable[[Release], float] = _as_much,
) -> Callable[[Scheme], Scheme]:
    """Register a scheme.

    Parameters
    ----------
    key : type or str
        The class of sampler or schedule that it covers, with those of its subclasses that override
        none of its methods (one that does may draw otherwise, and needs a scheme of its own); or
        the kind of the only stage of a chain in normal form, such as "wor".
    relation : Relation, optional
        For which papers state its theorem; by default the sampler's own.
    reused : iterable of Relation
        Under which its proof uses distances of Gaussian outputs alone, so that Theorem 80 carries
        it over to several releases of a sample; else these are bounded with the samples revealed.
    noise_factor : callable, optional
        Maps a release to the factor by which the releases have less noise to which its proof
        reduces it: a search for noise keeps theirs within the usual limits.
    """

    def registered(scheme: Scheme) -> Scheme:
        COVERED[key] = Covered(scheme, relation, frozenset(reused), noise_factor)
        return scheme

    return registered


GROUPED: dict[type | str, Scheme] = {}
"""Schemes for groups of records, by the same keys; a key without one has the bound that holds for
all (Theorem 39)."""


def covers_groups(key: type | str) -> Callable[[Scheme], Scheme]:
    """Register a scheme for groups of two records or more; `key` as for `covers`."""

    def registered(scheme: Scheme) -> Scheme:
        GROUPED[key] = scheme
        return scheme

    return registered


def needs_gaussian_noise(release: Release) -> None:
    """Refuse other noise on a plan whose steps are not independent for a record."""
    if release.mechanism != "gaussian":
        raise UnsupportedError(
            f"no bound is proved for {release.mechanism} noise on {release.sampler.name}, whose "
            "steps are not independent for a record; use gaussian"
        )


def needs_fixed_denominator(release: Release, relation: Relation) -> None:
    """Refuse a sum that is divided by a size which tells of the record, and noise with it."""
    if release.denominator == "realised":
        raise UnsupportedError(
            f"no bound covers a step of {release.sampler.name} divided by its realised "
            f"size under {relation}, because the noise then reveals how many records "
            "were drawn; divide by a fixed number"
        )


def needed_records(release: Release) -> int:
    """Return the number of records; ArgumentError if it is not given."""
    if release.n is None:
        raise ArgumentError(
            f"the number of records n is needed for {release.sampler.name}, got none; give n"
        )
    return release.n
