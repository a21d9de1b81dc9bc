"""Subsampling schemes of given sizes, by name, for comparisons between them."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.sampling import (
    SCHEDULES,
    CyclicPoisson,
    Deterministic,
    Multistage,
    MustOW,
    MustWW,
    Poisson,
    RandomAllocation,
    Sampler,
    Schedule,
    SecretCyclicPoisson,
    Shuffle,
    TruncatedPoisson,
    Wor,
    Wr,
)

CYCLE = 10
"""Groups of cyclic Poisson sampling."""
FIXED_SIZE = ("wor", "wr", "must_ow", "must_ww", "three_stage")
"""Schemes that draw batches of one size, each afresh."""
_CYCLIC = ("cyclic_poisson", "secret_cyclic_poisson")
_AT_LEAST = {"must_ow": 2, "must_ww": 2, "three_stage": 4, **dict.fromkeys(_CYCLIC, CYCLE)}
"""Least number of records that a scheme needs, in batches."""

Plan = Sampler | Schedule


def steps_of(n: int, m: int, epochs: int) -> int:
    """Return the steps of so many epochs, n / m each, rounded up."""
    return epochs * -(-n // m)


SCHEMES: dict[str, Callable[[int, int, int], Plan]] = {
    "poisson": lambda n, m, epochs: Poisson(m / n),
    # three standard deviations above the mean: about one batch in a thousand is cut
    "truncated_poisson": lambda n, m, epochs: TruncatedPoisson(
        m / n, min(n, m + math.ceil(3 * math.sqrt(m)))
    ),
    "wor": lambda n, m, epochs: Wor(m),
    "wr": lambda n, m, epochs: Wr(m),
    "must_ow": lambda n, m, epochs: MustOW(2 * m, m),
    "must_ww": lambda n, m, epochs: MustWW(2 * m, m),
    "three_stage": lambda n, m, epochs: Multistage.of_text(f"wor:{4 * m},wr:{2 * m},wor:{m}"),
    "random_allocation": lambda n, m, epochs: RandomAllocation(-(-n // m)),
    "k_of_t": lambda n, m, epochs: RandomAllocation(steps_of(n, m, epochs), epochs),
    "shuffle": lambda n, m, epochs: Shuffle(m),
    "cyclic_poisson": lambda n, m, epochs: CyclicPoisson(CYCLE * m / n, CYCLE),
    "deterministic": lambda n, m, epochs: Deterministic(m),
}
"""Each scheme's sampler or schedule for n records, batches of (expected) size m, and epochs."""
_OWN_SIZES: dict[str, Callable[[int, int, int], Plan]] = {
    "secret_cyclic_poisson": lambda n, m, epochs: SecretCyclicPoisson(CYCLE * m / n, CYCLE),
}
"""The same of schedules that no scheme stands for and that have other sizes than m."""


def scheme_names() -> tuple[str, ...]:
    """Return the names of `SCHEMES`, of the schedules that no scheme stands for and whose sizes
    follow from a batch size, and of those that need a batch size alone."""
    named = {*SCHEMES, *_OWN_SIZES}
    others = {name: kind for name, kind in SCHEDULES.members().items() if name not in named}
    listed = (name for name, kind in others.items() if {*kind.sizes} == {"m"})
    return *SCHEMES, *_OWN_SIZES, *listed


def _listed(name: str, n: int, m: int, steps: int, epochs: int) -> Schedule:
    """The schedule called `name` with steps of size m; ArgumentError if it needs other sizes, or
    has other steps."""
    schedule = SCHEDULES.get(name).of_sizes(n, m=m)
    own_steps = epochs * schedule.steps_per_epoch(n)
    if own_steps != steps:
        raise ArgumentError(
            f"{name} must have epochs of n / m steps, got {own_steps} steps, not {steps}, with "
            f"n = {n}, m = {m}, epochs = {epochs}"
        )
    return schedule


def scheme(name: str, n: int, m: int, epochs: int) -> tuple[Plan, int]:
    """Return the sampler or schedule that `scheme_names` calls `name`, for samples of size m, and
    the steps of all epochs, n / m each, rounded up.

    Raises
    ------
    ArgumentError
        If there is no such scheme or schedule, or it is not there for these sizes.
    """
    checks.one_of("scheme", name, scheme_names())
    n, epochs = checks.integer("n", n, at_least=1), checks.integer("epochs", epochs, at_least=1)
    m = checks.integer("m", m, at_least=1, at_most=n, at_most_name="n")
    steps = steps_of(n, m, epochs)
    make = SCHEMES.get(name, _OWN_SIZES.get(name))
    if make is None:
        return _listed(name, n, m, steps, epochs), steps
    if odd := misfit(name, n, m, epochs):
        raise ArgumentError(f"{odd}, got n = {n}, m = {m}, epochs = {epochs}")
    return make(n, m, epochs), steps


def fresh_steps(share: float, epochs: float) -> int:
    """Return the number of batches, each drawn afresh with this share of all records, that make so
    many epochs, rounded up.

    Examples
    --------
    >>> fresh_steps(256 / 60_000, 60)      # of 60,000 records in batches of 256: not 60 times 235
    14063
    """
    wanted = epochs / share
    return round(wanted) if abs(wanted - round(wanted)) <= 1e-12 * wanted else math.ceil(wanted)


def misfit(name: str, n: int, m: int, epochs: int) -> str:
    """Return the rule about sizes that a scheme would break; "" if none."""
    least = _AT_LEAST.get(name, 1)
    if n < least * m:
        return f"{name} needs n of at least {f'{least} ' if least > 1 else ''}m"
    if name in _CYCLIC and steps_of(n, m, epochs) % CYCLE:
        return f"{name} needs a number of steps that {CYCLE} divides"
    return ""
