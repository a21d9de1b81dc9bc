"""Real numbers with a bound of their error, and the few functions of them that all parts need.

A number is a ball of ``flint.arb``: every operation encloses the true result, and ``a <= b`` is
True only where it holds for all members. Doubles of a certificate are exact.
"""

from flint import arb, ctx

HALF = arb(0.5)
ONE = arb(1)
ZERO = arb(0)


class Unreadable(Exception):  # noqa: N818 - an outcome
    """The file is no certificate, as its content does not have the one form that is read."""


class Refuted(Exception):  # noqa: N818 - an outcome
    """The certificate's claim does not follow from its content."""


class NotCovered(Exception):  # noqa: N818 - an outcome
    """The certificate rests on something that this program does not know."""


def set_precision(delta: float) -> None:
    """Enough bits for differences of probabilities that are far below delta."""
    digits_below = max(0.0, float(-arb(delta).log().mid()) / 0.693) if delta > 0 else 1100
    ctx.prec = 112 + int(1.5 * digits_below)


def positive_part(x: arb) -> arb:
    """max(x, 0)."""
    if x >= 0:
        return x
    return ZERO if x <= 0 else ZERO.union(x.upper())


def larger(x: arb, y: arb) -> arb:
    """A number that is at least x and y: an upper end of both; infinity where one is no number."""
    one, other = x.upper(), y.upper()
    if one.is_nan() or other.is_nan():
        return arb("+inf")
    return one if one >= other else other


def smaller(x: arb, y: arb) -> arb:
    """Of two upper bounds, the one whose upper end is smaller; a value that is no number bounds
    nothing."""
    if y.is_nan():
        return x
    return x if x.upper() <= y.upper() else y


def normal_tail(t: arb) -> arb:
    """P(Z > t)."""
    return (t / arb(2).sqrt()).erfc() * HALF


def normal_density(t: arb) -> arb:
    return (-t * t * HALF).exp() / (2 * arb.pi()).sqrt()
