"""One release from one sample: the multiplicity law of a record, and the amplification theorem
where it is proved."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict, Unpack

from numpy.typing import ArrayLike

from dpsub import noise
from dpsub.accounting.questions.question import check_names
from dpsub.accounting.release import Release
from dpsub.accounting.schemes import case_of, stated_relation
from dpsub.amplification import theorem
from dpsub.amplification.theorem import Amplified
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.base import PoissonStage, Sampler, StagedSampler
from dpsub.sampling.laws import MultiplicityLaw
from dpsub.sampling.schedules import Schedule


def law(sampler: Sampler | Schedule, n: int | None = None) -> MultiplicityLaw:
    """Return how often one fixed record occurs in a sample: `pmf` of shape (m + 1,), `eta` = P(L >=
    1) and `mean`.

    The count is a Markov chain along the stages: j copies among N slots become Binomial(j, rate),
    Hypergeometric(N, j, size) or Binomial(size, j / N).

    Parameters
    ----------
    sampler : Sampler
    n : int, optional
        Number of records; Poisson sampling alone needs none.

    Raises
    ------
    ArgumentError
        If the sampler asks for more records than there are, or needs their number and it is not
        given.

    References
    ----------
    must, Theorem 5 and Table 2.

    Examples
    --------
    >>> import dpsub
    >>> dpsub.law(dpsub.Wr(2), 4).pmf
    array([0.5625, 0.375 , 0.0625])
    """
    if isinstance(sampler, Schedule):
        raise UnsupportedError(
            f"the steps of {sampler.name} depend on one another, so the law of one step "
            "says little; use account"
        )
    if n is None:
        stages = sampler.stages if isinstance(sampler, StagedSampler) else ()
        if not stages or not all(isinstance(stage, PoissonStage) for stage in stages):
            raise ArgumentError(
                "the number of records n is needed for samplers of fixed size, got none; give n"
            )
        n = 1  # a record's chance does not depend on the others
    return sampler.multiplicity_law(n)


class AmplifyKeywords(TypedDict, total=False):
    """The noise of a release."""

    noise_multiplier: float
    sigma: float
    mechanism: str


def amplify(
    sampler: Sampler | Schedule | Release,
    n: int | None = None,
    *,
    epsilon: ArrayLike,
    **described: Unpack[AmplifyKeywords],
) -> Amplified:
    """Return the (epsilon', delta') of one release from a sample, if on all data it would be
    (epsilon, delta)-DP.

    This is an upper bound, with the adjacency for which it holds: epsilon' = log(1 + eta
    (exp(epsilon) - 1)), eta = P(L >= 1), and delta' = sum over l >= 1 of P(L = l) delta_l(epsilon),
    delta_l the profile at l times the sensitivity: C under add_remove (Poisson sampling), 2 C for
    each occurrence under substitute (the rest).

    Parameters
    ----------
    sampler, n, noise_multiplier, sigma, mechanism
        As in `dpsub.account`; of a `Release` of many steps, one step is meant.
    epsilon : array_like
        Nats on all data, >= 0, any shape.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If the theorem is not proved for the sampler.

    References
    ----------
    must, Theorem 5; balle, Theorems 8 to 11.

    Examples
    --------
    >>> import dpsub
    >>> amplified = dpsub.amplify(dpsub.Poisson(0.01), epsilon=1.0, noise_multiplier=2.0)
    >>> float(amplified.epsilon_amplified.round(6)), str(amplified.adjacency)
    (0.017037, 'add_remove')
    """
    check_names(described, AmplifyKeywords)
    release = Release.one_of(sampler, n, **described)
    multiplicity = law(release.sampler, release.n)
    mechanism = release.mechanism
    of_one = release.is_plain and (release.denominator, release.group) == ("fixed", 1)
    if not (isinstance(mechanism, str) and of_one):
        raise UnsupportedError(
            "the amplification theorem is about one record, a fixed denominator and named noise, "
            f"got {release}, denominator {release.denominator}; use account"
        )
    adjacency, _ = covered(release.sampler, release.n)
    sensitivity = 1.0 if adjacency is Relation.ADD_REMOVE else 2.0
    profile = noise.of(mechanism, sensitivity / release.noise_multiplier)
    return replace(theorem.amplify(multiplicity, profile, epsilon), adjacency=adjacency)


def covered(sampler: Sampler | Schedule, n: int | None) -> tuple[Relation, bool]:
    """Return the adjacency under which the theorem is proved for the sampler, and whether it is
    attained, as a record occurs at most once; UnsupportedError if it is not proved."""
    # the theorem is about any mechanism: what its scheme says of it depends on no noise
    release = Release(sampler, n, 1.0)
    release.chain()
    relation = stated_relation(release)
    theorem = case_of(release, relation).amplification
    if theorem is None:
        raise UnsupportedError(
            f"no amplification theorem is proved for {sampler.name}; use account"
        )
    if theorem.missing:
        raise UnsupportedError(theorem.missing)
    return relation, theorem.attained
