"""Mechanisms of one's own, on all records or on Poisson samples (docs/proofs/own_pairs.md).

No sampler names this scheme: it stands for every release whose mechanism is an `OwnMechanism`.
"""

from __future__ import annotations

from dpsub.accounting.engine.own_mechanism import OwnEvent, OwnMechanism
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import Case, Theorem
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.base import StagedSampler
from dpsub.sampling.schedules import Deterministic

_INCLUDED = "(1 - q) Q + q P against Q of the given pair, both directions"
_ATTAINED = "a mechanism that outputs P with the record and Q without it"


def own_case(release: Release, mechanism: OwnMechanism, relation: Relation) -> Case:
    """Return the case of a mechanism of one's own: Theorem 42."""
    if relation is not mechanism.adjacency:
        raise UnsupportedError(
            f"{mechanism} was given under {mechanism.adjacency}, got {relation}; ask under "
            f"{mechanism.adjacency}, or give its pair under {relation}"
        )
    if release.denominator != "fixed":
        raise UnsupportedError(
            f"{mechanism} is released as it is, got denominator = {release.denominator}; drop it"
        )
    if release.group != 1:
        raise UnsupportedError(
            f"{mechanism} is given for one record, got a group; give the pair of the group"
        )
    rate = _rate(release, mechanism, relation)
    # sampling lowers every loss, so that a bound for all records holds for samples
    conditions = mechanism.conditions
    if rate < 1:
        conditions += (
            "every step draws a new Poisson sample, independent of the others and secret",
            "the pair dominates the outputs on all samples with and without the record",
        )
    given = "the given pair, both directions"
    event = OwnEvent(mechanism, rate)
    return Case(
        event=event,
        theorem=Theorem("42", "4.9"),
        proved=given if rate == 1 else _INCLUDED,
        attained=_ATTAINED if event.attacked else "",
        sensitivity="that of the given pair",
        conditions=(*conditions, "real arithmetic and exact sampling are assumed"),
        choices=(),
        shift=mechanism.largest_loss,
    )


def _rate(release: Release, mechanism: OwnMechanism, relation: Relation) -> float:
    """Return the rate of the Poisson samples; 1 for all records."""
    sampler = release.sampler
    if isinstance(sampler, Deterministic) and sampler.m is None:
        return 1.0
    if isinstance(sampler, StagedSampler):
        chain = release.chain()
        if chain.kinds == ("poisson",):
            if relation is not Relation.ADD_REMOVE:
                raise UnsupportedError(
                    f"samples of {mechanism} are covered under add_remove only, got {relation}: "
                    "what it outputs without the record is not known; give its pair under "
                    "add_remove"
                )
            return float(chain.stages[0].rate)
    raise UnsupportedError(
        f"no bound is proved for a mechanism of one's own on {sampler.name}; use "
        "dpsub.Poisson(rate), or dpsub.Deterministic() for all records"
    )
