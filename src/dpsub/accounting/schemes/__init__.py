"""Schemes: upper bounds and attacks for each family of samplers, one file per family.

A module of this package that registers a scheme with `covers` is found by itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import COVERED, Case, Covered
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.base import StagedSampler
from dpsub.sampling.schedules import Schedule


def case_of(release: Release, relation: Relation) -> Case:
    """The bounds of one kind of release; UnsupportedError, with the reason, if nothing is
    proved."""
    return _covered(release).scheme(release, relation)


def default_relation(release: Release) -> Relation:
    """The relation of an account of this release that names none."""
    return _covered(release).relation or release.sampler.relation


@cache
def _found() -> dict[type | str, Covered]:
    for module in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        importlib.import_module(module.name)
    return COVERED


def _covered(release: Release) -> Covered:
    schemes = _found()
    kind = type(release.sampler)
    # a class of one's own may have a scheme, or be covered as what it is derived from
    for ancestor in kind.__mro__:
        if ancestor is StagedSampler:
            # a chain is told by its stages, whatever its class is called
            kinds = release.chain().kinds
            if len(kinds) == 1 and kinds[0] in schemes:
                return schemes[kinds[0]]
        if ancestor in schemes:
            return schemes[ancestor]
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
