"""Schemes: upper bounds and attacks for each family of samplers, one file per family.

A module of this package that registers a scheme with `covers` is found by itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from dpsub.accounting.own import OwnMechanism
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import COVERED, GROUPED, Case, Covered
from dpsub.accounting.schemes.own import own_case
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.base import StagedSampler
from dpsub.sampling.schedules import Schedule


def case_of(release: Release, relation: Relation) -> Case:
    """The bounds of one kind of release; UnsupportedError, with the reason, if nothing is
    proved.

    Raises
    ------
    ArgumentError
        If the group does not fit the relation or the number of records.
    """
    if isinstance(release.mechanism, OwnMechanism):
        return own_case(release, release.mechanism, relation)
    key = _key(release)
    single = COVERED[key].scheme
    if release.group == 1:
        return single(release, relation)
    _check_group(release, relation)
    if key in GROUPED:
        return GROUPED[key](release, relation)
    # above the schemes, as it stands on any of them
    from dpsub.accounting.schemes.groups import by_composition

    return by_composition(release, relation, single)


def _check_group(release: Release, relation: Relation) -> None:
    added = relation is Relation.ADD_REMOVE
    if not isinstance(release.group, int):
        if not added:
            raise ArgumentError(
                f"records that are added and others that are removed make a group under "
                f"add_remove, got group = {release.group} under {relation}; give one number"
            )
    elif not added and release.n is not None and release.group > release.n:
        raise ArgumentError(
            f"group must be at most n = {release.n} under {relation}, got {release.group}; give "
            "fewer records"
        )


def default_relation(release: Release) -> Relation:
    """The relation of an account of this release that names none."""
    if isinstance(release.mechanism, OwnMechanism):
        return release.mechanism.adjacency
    return COVERED[_key(release)].relation or release.sampler.relation


@cache
def _found() -> dict[type | str, Covered]:
    for module in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        importlib.import_module(module.name)
    return COVERED


def _key(release: Release) -> type | str:
    """What the scheme of a release is registered by."""
    schemes = _found()
    kind = type(release.sampler)
    # a class of one's own may have a scheme, or be covered as what it is derived from
    for ancestor in kind.__mro__:
        if ancestor is StagedSampler:
            # a chain is told by its stages, whatever its class is called
            kinds = release.chain().kinds
            if len(kinds) == 1 and kinds[0] in schemes:
                return kinds[0]
        if ancestor in schemes:
            return ancestor
    if isinstance(release.sampler, Schedule):
        raise UnsupportedError(
            f"no bound is proved for epochs of {kind.__name__}, because no scheme in "
            "dpsub.accounting.schemes covers them; use another schedule, or add a "
            "scheme with its proof there"
        )
    raise UnsupportedError(
        f"no bound is proved for samples of {kind.__name__}, because they are not a "
        "chain of stages and no scheme in dpsub.accounting.schemes covers them; "
        "describe them as Multistage, or add a scheme with its proof there"
    )
