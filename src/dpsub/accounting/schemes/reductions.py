"""Releases that amount to others with less noise: several of each sample, samples of users, and
noise that is correlated over steps.

A scheme is about one release of each sample, of single records, with independent noise: a *plain*
release. `plain_kinds` gives those that it is asked about in place of another one, and `in_words_of`
their cases in the other's words.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpsub.accounting.engine.own_mechanism import OwnMechanism
from dpsub.accounting.engine.pairs import MIN_SCALE, PoissonPair
from dpsub.accounting.engine.privacy_events import EnclosedEvent, PairEvent
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import Case, Theorem
from dpsub.accounting.schemes.conditions import FRESH
from dpsub.errors import UnsupportedError
from dpsub.noise.banded import BandedStrategy
from dpsub.sampling.schedules import CyclicPoisson, Deterministic

_REUSED, _USERS, _BANDED = Theorem("80", "4"), Theorem("81", "4.8"), Theorem("82", "4.2")
_REVEALED = Theorem("24", "4.5")


class PlainKind(NamedTuple):
    """Plain releases of one kind: those that are proved, and those that an attack is known for,
    which may have more noise."""

    release: Release
    attacked: Release


def plain_kinds(release: Release) -> tuple[PlainKind, ...]:
    """Return the plain releases to which one amounts, one kind for each noise multiplier; itself if
    it is one.

    Raises
    ------
    UnsupportedError
        If no theorem says so, or their noise is below what is covered.
    """
    if release.is_plain:
        return (PlainKind(release, release),)
    _check_covered(release)
    each, most = release.releases_per_sample, release.records_per_user
    square = Fraction(release.noise_multiplier) ** 2 / (each * (most or 1) ** 2)

    def plain(times: int, norm: float) -> Release:
        return replace(
            release,
            noise_multiplier=_noise_of(release, square / Fraction(norm) ** 2),
            steps=times * (release.steps // release.times // each),
            releases_per_sample=1,
            records_per_user=None,
            strategy=None,
        )

    if release.strategy is None:
        only = plain(release.times, 1.0)
        return (PlainKind(only, only),)
    return tuple(
        PlainKind(plain(times, largest), plain(times, attacked))
        for (largest, attacked), times in _norms_of_worst_group(release, release.strategy)
    )


def reduced_noise_factor(release: Release) -> float:
    """Return by how much less noise its plain releases have at most, nearly."""
    largest = 1.0 if release.strategy is None else release.strategy.largest
    return math.sqrt(release.releases_per_sample) * (release.records_per_user or 1) * largest


def _check_covered(release: Release) -> None:
    each, most = release.releases_per_sample, release.records_per_user
    if isinstance(release.mechanism, OwnMechanism):
        raise UnsupportedError(
            f"{release.mechanism} is given for one record, and one release of a sample, got "
            f"{release}; give the pair of all of them"
        )
    if each > 1 and release.mechanism != "gaussian":
        raise UnsupportedError(
            f"several releases of one sample with {release.mechanism} noise are no release with "
            f"such noise, and no bound is computed for them, got releases_per_sample = {each}; "
            "use gaussian"
        )
    if most is not None and release.denominator == "realised":
        raise UnsupportedError(
            "the number of records in a sample of users tells how many records a user has, got "
            "denominator = realised; divide by a fixed number"
        )
    if release.strategy is not None:
        _check_strategy(release, release.strategy)


def _check_strategy(release: Release, strategy: BandedStrategy) -> None:
    usual = release.mechanism, release.denominator, release.group, release.releases_per_sample
    if usual != ("gaussian", "fixed", 1, 1):
        raise UnsupportedError(
            "noise that is correlated over steps is covered for one record or user, one release of "
            f"each sample, gaussian noise and a fixed denominator, got {release}, denominator "
            f"{release.denominator}; drop the strategy, or the rest"
        )
    # a class derived from one of them may give turns otherwise
    if type(release.sampler) not in (CyclicPoisson, Deterministic):
        raise UnsupportedError(
            "noise that is correlated over steps is covered where a record has its turn every so "
            f"many steps, got {release.sampler.name}; use cyclic_poisson or deterministic"
        )
    turn = release.steps // release.times
    if strategy.bands > turn:
        raise UnsupportedError(
            f"a record must not have its next turn, {turn} steps later, before the bands of its "
            f"last one end, got {strategy.bands} bands: no bound is proved for samples that "
            "overlap; use fewer bands, or more groups"
        )


def _norms_of_worst_group(
    release: Release, strategy: BandedStrategy
) -> list[tuple[tuple[float, float], int]]:
    """Return pairs of column norms, and how often each occurs: of steps that no group of records
    exceeds, and of those of one group."""
    times = release.times
    # a column for each group, of its turns in order of their norms
    by_group = np.sort(strategy.norms_of(release.steps).reshape(times, -1), axis=0)
    largest = by_group.max(axis=1)
    loudest = by_group[:, np.argmax((by_group**2).sum(axis=0))]
    pairs, counts = np.unique(np.stack([largest, loudest]), axis=1, return_counts=True)
    firsts, seconds = pairs.tolist()
    return list(zip(zip(firsts, seconds, strict=True), counts.tolist(), strict=True))


def _noise_of(release: Release, square: Fraction) -> float:
    """Return the root of a squared noise multiplier, rounded down: less noise tells more."""
    s = math.sqrt(square)
    while Fraction(s) ** 2 > square:
        s = math.nextafter(s, 0.0)
    if s < MIN_SCALE:
        raise UnsupportedError(
            f"noise multiplier {release.noise_multiplier:g} amounts to {s:.3g} for one release of "
            f"each sample and single records, below {MIN_SCALE:g}; take more noise"
        )
    return s


def with_samples_revealed(plain: Release, case: Case) -> Case:
    """Return the case of several releases of a sample whose own theorem is about one: an upper
    bound with all samples revealed, and the attacks (Theorem 80)."""
    proved = PairEvent(PoissonPair(1.0, plain.noise_multiplier / case.shift))
    attacks = tuple(each for each in case.event.attack_choices if each.attacked)
    return replace(
        case,
        event=EnclosedEvent(proved, attacks),
        theorem=_REVEALED,
        proved=f"samples revealed, N({case.shift:g}, s^2) against N(0, s^2)",
        filler_flip=None,
        certified=(),
    )


def in_words_of(release: Release, case: Case, attacked: Case) -> Case:
    """Return the case of plain releases as one of the release that they stand for, with the attack
    on those of another case."""
    each, most, strategy = release.releases_per_sample, release.records_per_user, release.strategy
    reductions, factors, conditions = [], [], case.conditions
    if each > 1:
        reductions.append(_REUSED)
        factors.append(f"sqrt({each})")
        fresh = (
            f"a new sample is drawn through all stages for every {each} releases, independent of "
            "the other samples and secret"
        )
        conditions = tuple(fresh if line == FRESH else line for line in conditions)
        conditions += (
            f"each sample is used for {each} releases, whose vectors may depend on all past ones",
        )
    if most is not None:
        reductions.append(_USERS)
        factors.append(str(most))
        conditions += (
            "users are drawn, and counted, in place of records; of a user who is drawn at most "
            f"{most} records enter, chosen by the user's records, past releases and coins of the "
            "user's own",
        )
    if strategy is not None:
        reductions.append(_BANDED)
        factors.append("the norm of the step's column")
        conditions += (
            "the sums of all steps are multiplied by the strategy matrix before the noise is "
            "added, or the noise by its inverse; the matrix is public and fixed in advance",
        )
    unit = "" if most is None else f"a user for a record, {most} C for C: "
    event = case.event
    if attacked is not case:
        event = EnclosedEvent(event, (attacked.event,))
    return replace(
        case,
        event=event,
        proved=f"{case.proved}; s = noise multiplier / {' / '.join(factors)}",
        attained=f"{case.attained}{_equal(release)}" if case.attained else "",
        sensitivity=f"{unit}{case.sensitivity}",
        conditions=conditions,
        attack_certified=case.attack_certified and attacked is case,
        reductions=tuple(reductions),
        # an audit draws samples for one release each, of records
        static=None,
        # cells of a game hold what one release of a sample may choose
        game=case.game if each == 1 else None,
        papers_pair=None,
        amplification=None,
    )


def _equal(release: Release) -> str:
    """Say which vectors are equal in the attacks."""
    whose = []
    if release.records_per_user is not None:
        whose.append("in all records of a user")
    if release.releases_per_sample > 1:
        whose.append(f"in all {release.releases_per_sample} releases of a sample")
    return f", the same {' and '.join(whose)}" if whose else ""
