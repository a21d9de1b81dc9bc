"""L2 sensitivities of what the utility experiments release, as each variant sees them (MUST, erratum E4).

`stated` and `as_done` take range / n and C / n, although statistics and gradients are averages over m records.
`consistent` takes what one copy of a substituted record can move; Poisson sampling is there analysed under add_remove
with the fixed divisor m.
"""

from __future__ import annotations

from dpsub import checks


def of_gradient(scheme: str, *, n: int, m: int, clip: float, variant: str) -> float:
    """Return the sensitivity of the mean of clipped gradients: C / n, or consistently 2C / m (C / m for Poisson).

    Parameters
    ----------
    scheme : str
        Identifier of the sampler.
    n, m : int
        Sizes of data and sample.
    clip : float
        Largest norm C of a record's gradient, > 0.
    variant : str

    Raises
    ------
    ArgumentError
        If C is not positive.
    """
    clip = checks.real("clip", clip, above=0)
    if variant != "consistent":
        return clip / n
    return clip * (1 if scheme == "poisson" else 2) / m


def of_statistics(scheme: str, *, n: int, m: int, lower: float, upper: float, variant: str) -> dict[str, float]:
    """Return the sensitivities of the mean and of the variance (divisor m - 1) of data in [lower, upper].

    Range / n and range^2 / n; consistently range / m and range^2 / m, and for Poisson max |x| / m, since one record is
    added to a sum, and range^2 / (m - 1), since a record moves a centred sum of squares by at most range^2.

    Raises
    ------
    ArgumentError
        If the range is not positive or m too small for a variance.
    """
    lower = checks.real("lower", lower)
    upper = checks.real("upper", upper, above=lower)
    m = checks.integer("m", m, at_least=2)
    width = upper - lower
    if variant != "consistent":
        return {"mean": width / n, "variance": width**2 / n}
    if scheme == "poisson":
        return {"mean": max(abs(lower), abs(upper)) / m, "variance": width**2 / (m - 1)}
    return {"mean": width / m, "variance": width**2 / m}
