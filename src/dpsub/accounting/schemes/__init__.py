"""Schemes: upper bounds and attacks for each family of samplers, one file or folder per family.

A module of this package that registers a scheme with `covers` is found by itself. Those of the
library's samplers are also listed here, so that a question loads the numerics of one family alone.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from dpsub.accounting.engine.own_mechanism import OwnMechanism
from dpsub.accounting.release import Release
from dpsub.accounting.schemes.case import COVERED, GROUPED, Case
from dpsub.accounting.schemes.own import own_case
from dpsub.accounting.schemes.reductions import (
    in_words_of,
    plain_kinds,
    reduced_noise_factor,
    with_samples_revealed,
)
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import chains as chains_of_stages
from dpsub.sampling.base import StagedSampler, redefined
from dpsub.sampling.persistent_shuffle import PersistentShuffle
from dpsub.sampling.schedules import (
    CyclicPoisson,
    Deterministic,
    RandomAllocation,
    Schedule,
    Shuffle,
    TruncatedPoisson,
)
from dpsub.sampling.secret_cyclic_poisson import SecretCyclicPoisson
from dpsub.sampling.separated import MinSeparation
from dpsub.sampling.weighted import WeightedWr

DEFAULTS = (Relation.ADD_REMOVE, Relation.ZERO_OUT, Relation.SUBSTITUTE)
"""Relations of an answer that names none, in their order: first the one of most accountants."""
_MODULES: dict[type | str, str] = {
    "poisson": "poisson",
    "wor": "without_replacement",
    CyclicPoisson: "deterministic",
    Deterministic: "deterministic",
    PersistentShuffle: "shuffling.one_order",
    MinSeparation: "separation.scheme",
    RandomAllocation: "allocation.scheme",
    SecretCyclicPoisson: "secret_groups",
    Shuffle: "shuffling.scheme",
    TruncatedPoisson: "truncated.scheme",
    WeightedWr: "chains.weighted",
}
"""Modules of the library's schemes, by the samplers and schedules they cover; all other chains are
in `_CHAINS`."""
_CHAINS = "chains.scheme"


def case_of(release: Release, relation: Relation) -> Case:
    """Return the bounds of one kind of release, of several plain ones the first; errors as of
    `plain_cases`."""
    return plain_cases(release, relation)[0][1]


def plain_cases(release: Release, relation: Relation) -> list[tuple[Release, Case]]:
    """Return the plain releases to which one amounts (`reductions`), each with its bounds;
    UnsupportedError, with the reason, if nothing is proved.

    Raises
    ------
    ArgumentError
        If the group does not fit the relation or the number of records.
    """
    found = []
    for plain, attacked in plain_kinds(release):
        case = _case_of(plain, relation)
        if release.releases_per_sample > 1 and relation not in COVERED[_key(plain)].reused:
            case = with_samples_revealed(plain, case)
        if not release.is_plain:
            other = case if attacked == plain else _case_of(attacked, relation)
            case = in_words_of(release, case, other)
        found.append((plain, case.upper_alone() if release.one_sided else case))
    return found


def noise_factor(release: Release) -> float:
    """Return by how much less noise the releases have at most whose bounds answer for one, nearly:
    its plain releases, or those to which a scheme reduces them."""
    return reduced_noise_factor(release) * COVERED[_key(release)].noise_factor(release)


def _case_of(release: Release, relation: Relation) -> Case:
    key = _key(release)
    if isinstance(release.mechanism, OwnMechanism):
        return own_case(release, release.mechanism, relation)
    single = COVERED[key].scheme
    if release.group == 1:
        return single(release, relation)
    _check_group(release, relation)
    # above the schemes, as it stands on any of them
    from dpsub.accounting.schemes.groups.scheme import by_composition

    if key in GROUPED:
        return GROUPED[key](release, relation)
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


def default_relation(releases: Sequence[Release]) -> Relation:
    """Return the relation of an answer about these releases that names none: the first one of
    `DEFAULTS` under which theorems cover all of them.

    Raises
    ------
    ArgumentError, UnsupportedError
        As `case_of`, if none does: for the relation of the papers, else for the last one.
    """
    for relation in DEFAULTS:
        with suppress(ArgumentError, UnsupportedError):
            for release in releases:
                case_of(release, relation)
            return relation
    # a release that nothing covers says why in the words of its own theorem
    for release in releases:
        case_of(release, stated_relation(release))
    for release in releases:
        case_of(release, DEFAULTS[-1])
    raise AssertionError("a relation that covers all releases was found")


def stated_relation(release: Release) -> Relation:
    """Return the relation for which papers state the theorems about a sampler: a record of the
    sample is added under add_remove, and replaced under substitute."""
    if isinstance(release.mechanism, OwnMechanism):
        return release.mechanism.adjacency
    return COVERED[_key(release)].relation or release.sampler.relation


def _module(release: Release) -> str | None:
    """Return the module with the scheme of one of the library's samplers; None for another's."""
    kind = type(release.sampler)
    if kind.__module__ != chains_of_stages.__name__:
        return _MODULES.get(kind)
    kinds = release.chain().kinds
    return _MODULES.get(kinds[0], _CHAINS) if len(kinds) == 1 else _CHAINS


@cache
def _load(module: str | None) -> None:
    """Register the schemes of one module, or of all."""
    all_of_them = [found.name for found in pkgutil.walk_packages(__path__, f"{__name__}.")]
    for name in all_of_them if module is None else [f"{__name__}.{module}"]:
        importlib.import_module(name)


def _key(release: Release) -> type | str:
    """Return the key under which the scheme of a release is registered."""
    _load(_module(release))
    schemes, kind = COVERED, type(release.sampler)
    # a class of one's own may have a scheme, or be covered as the class it is derived from
    for ancestor in kind.__mro__:
        if ancestor is StagedSampler or ancestor in schemes:
            _check_draws(kind, ancestor)
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


def _check_draws(kind: type, known: type) -> None:
    """Refuse a class that may draw otherwise than the one that a theorem is about: a subclass
    inherits methods, and no proof."""
    # a chain draws by its stages, which are its own
    free = ("stages", "stage_names") if known is StagedSampler else ()
    if changed := redefined(kind, known, but=free):
        raise UnsupportedError(
            f"no bound is proved for {kind.__name__}, which has {changed[0]} otherwise than "
            f"{known.__name__}, the class that the theorem is about; register a scheme for it with "
            "dpsub.accounting.schemes.case.covers"
        )
