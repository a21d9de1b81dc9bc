"""Shuffled epochs in one order, which is drawn once and kept for all of them
(docs/proofs/shuffling.md, Theorem 83).

Batch by batch E epochs are to a record E Gaussian releases, which are one release at the noise
multiplier s / sqrt(E). So all epochs together are an event of the kind of one epoch at this noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dpsub.accounting.engine.pairs import MIN_SCALE
from dpsub.accounting.games.static import EpochAttack
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import Case, Theorem, covers, needs_gaussian_noise
from dpsub.accounting.schemes.conditions import FRESH
from dpsub.accounting.schemes.shuffling.scheme import PLAN, epoch_case
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.persistent_shuffle import PersistentShuffle
from dpsub.sampling.schedules import Shuffle

_ONE_ORDER = Theorem("83", "4.3")
_PLAN = "the order of the records is drawn uniformly, once for all epochs, and kept secret"


def _root_of_epochs(release: Release) -> float:
    return math.sqrt(release.epochs)


@covers(PersistentShuffle, reused=(Relation.ADD_REMOVE,), noise_factor=_root_of_epochs)
def one_order(release: Release, relation: Relation) -> Case:
    """Return the case of all epochs together."""
    epochs = release.epochs
    if epochs > 1:
        needs_gaussian_noise(release)
    case = epoch_case(_as_one_epoch(release), relation, drawn_again=epochs == 1)
    conditions = tuple(_PLAN if each in (PLAN, FRESH) else each for each in case.conditions)
    if epochs == 1:
        return replace(case, conditions=conditions)
    as_one = f"all epochs as one, s = noise multiplier / sqrt({epochs})"
    return replace(
        case,
        theorem=_ONE_ORDER,
        proved=f"{case.proved}; {as_one}",
        attained=f"{case.attained}; in the sums over epochs of each step",
        conditions=conditions,
        shift=case.shift * _root_of_epochs(release),
        static=_played(case, release.noise_multiplier, epochs),
        # releases from one sample are not independent steps
        filler_flip=None,
        game=None,
        papers_pair=None,
        amplification=None,
        certified=tuple(case.certifiable(i) for i in range(len(case.event.upper_choices))),
    )


def _as_one_epoch(release: Release) -> Release:
    """Return one shuffled epoch whose order, once known, tells as much as that of all epochs.

    Raises
    ------
    UnsupportedError
        If it has less noise than is covered.
    """
    schedule, epochs = release.sampler, release.epochs
    assert isinstance(schedule, PersistentShuffle)
    s = release.noise_multiplier / _root_of_epochs(release)
    # rounded down: less noise tells more
    while Fraction(s) ** 2 * epochs > Fraction(release.noise_multiplier) ** 2:
        s = math.nextafter(s, 0.0)
    if s < MIN_SCALE:
        raise UnsupportedError(
            f"for a record in the same step of {epochs} epochs, noise multiplier "
            f"{release.noise_multiplier:g} amounts to one epoch with {s:.3g}, below {MIN_SCALE:g}; "
            "take fewer epochs or more noise"
        )
    return replace(
        release,
        sampler=Shuffle(schedule.m, schedule.drop_last),
        noise_multiplier=s,
        steps=release.steps // epochs,
    )


def _played(case: Case, noise_multiplier: float, epochs: int) -> Callable[[], EpochAttack] | None:
    """Return the attack that an audit plays on one epoch, on the means of all epochs; None where
    that epoch is a sample, or has none."""
    one_epoch = case.static and case.static()
    if not isinstance(one_epoch, EpochAttack):
        return None
    played = replace(one_epoch, noise_multiplier=noise_multiplier, epochs=epochs)
    return lambda: played
