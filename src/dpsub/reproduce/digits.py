"""Numbers as text: as many digits as their error allows, one form a column, powers of ten as powers
of ten."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

PLAIN = range(-3, 5)
"""Numbers whose first digit has one of these places are written without a power of ten."""
DIGITS = 4
"""Significant digits where neither an error nor a printed number says how many there are."""
WHOLE = "1"
"""The form of a count."""
FEW = "1.00e+00"
"""The form of a number that the paper only calls small."""
_EXACT = 1e-12  # what is relatively smaller than this is rounding of floating-point numbers
_WIDE = Context(prec=100)
_ROUNDING = {"upper": ROUND_CEILING, "lower": ROUND_FLOOR}
_NUMBER = re.compile(r"([+-]?)(\d+(?:\.(\d+))?)(?:[eE]([+-]?\d+))?")
RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
_UP = str.maketrans("-0123456789", RAISED)


def written(
    value: float,
    form: str = "",
    *,
    error: float = math.nan,
    lower: float = math.nan,
    upper: float = math.nan,
    side: str = "",
) -> str:
    """Return a number as text, "value ± error [lower, upper]" without the parts that are not given;
    "" for NaN.

    The standard error has two significant digits and the value ends where it ends. With an interval
    alone, the last digit is between a thirtieth and a third of its width. Otherwise the value has
    the digits of `form`, a printed number such as "0.976" or "4.17e-06", and three significant
    digits where these show nothing of it.

    Parameters
    ----------
    side : str
        "upper" or "lower" for a bound, which is rounded to the side on which it stays one, as ends
        of intervals are.
    """
    if math.isnan(value):
        return ""
    # A loss can be infinite; it has no digits.
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    # An error in the last binary digits is no statistical error: the number counts as exact.
    small, rounding = _EXACT * abs(value), _ROUNDING.get(side, ROUND_HALF_EVEN)
    known = small < error < math.inf
    interval = math.isfinite(lower) and small < upper - lower < math.inf
    # place of the last digit: where the error, or the interval, leaves nothing to say
    if known:
        # Two digits of the error, as is customary in measurements.
        last_digit = _first(error, 2) - 1
    elif interval and not (form.isdigit() and value == round(value)):
        last_digit = math.floor(math.log10((upper - lower) / 3))
    else:
        text = _in_form(value, form, rounding)
        return f"{text} [{math.floor(lower)}, {math.ceil(upper)}]" if interval else text
    # one power of ten for all of them: that of the largest
    sizes = [abs(value)]
    if known:
        sizes.append(error)
    if interval:
        sizes += [abs(lower), abs(upper)]
    first = _first(max(sizes), 2)
    power = 0 if first in PLAIN else first

    def at_place(number: float, rounding: str = ROUND_HALF_EVEN) -> str:
        return _fixed(_rounded(number * 10.0**-power, last_digit - power, rounding))

    text = f"{at_place(value)} ± {at_place(error)}" if known else at_place(value, rounding)
    text = (f"({text})" if known and power else text) + _power(power)
    if interval:
        # ends are rounded outwards, so that what the interval covers stays covered
        low, high = at_place(lower, ROUND_FLOOR), at_place(upper, ROUND_CEILING)
        text += f" [{low}, {high}]{_power(power)}"
    return text


def as_printed(text: str) -> str:
    """Return a printed number with its own digits, its power of ten written as one; any other text
    as it is."""
    number = _NUMBER.fullmatch(text)
    if not number:
        return text
    sign, digits, _, exponent = number.groups()
    sign = sign.replace("-", "−")
    if exponent is None:
        return sign + digits
    power = f"10{str(int(exponent)).translate(_UP)}"
    return sign + (power if digits == "1" else f"{digits} × {power}")


def form_of(templates: Iterable[str], values: Iterable[float]) -> str:
    """Return the form of a column: that of most numbers printed in it, else of a count where all
    values are whole, else three digits where nothing but 0 is printed."""
    templates = list(templates)
    shapes = Counter[tuple[int, bool]]()
    for text in templates:
        number = _NUMBER.fullmatch(text)
        if number and number[3]:
            # Only numbers with decimals say how many digits a column has.
            shapes[len(number[3]), number[4] is None] += 1
    if not shapes:
        all_whole = all(value == round(value) for value in values if math.isfinite(value))
        if all_whole:
            return WHOLE
        # bounds are printed as 0 next to others of three digits
        return FEW if "0" in templates else ""
    (decimals, fixed), _ = shapes.most_common(1)[0]
    return f"{1:.{decimals}f}" if fixed else f"{1:.{decimals}e}"


def _first(value: float, digits: int) -> int:
    """Return the place of the first digit of a number that is rounded to so many digits."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _rounded(value: float, place: int, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    # Twelve digits: a binary fraction such as 0.30000000000000004 must not be rounded up by a whole
    # unit.
    return Decimal(f"{value:.12g}").quantize(Decimal((0, (1,), min(place, 0))), rounding, _WIDE)


def _fixed(number: Decimal) -> str:
    return f"{abs(number) if number == 0 else number:f}".replace("-", "−")


def _power(place: int) -> str:
    return f" × 10{str(place).translate(_UP)}" if place else ""


def _in_form(value: float, form: str, rounding: str) -> str:
    if value == 0:
        return "0"
    template = _NUMBER.fullmatch(form)
    digits = len(template[3] or "") + 1 if template else DIGITS
    if template and template[4] is None:
        # Zero after rounding would hide that the number is there.
        if number := _rounded(value, 1 - digits, rounding):
            return _fixed(number)
        # the form shows nothing of so small a number
        digits = 3
    first = _first(value, digits)
    power = 0 if first in PLAIN else first
    number = _rounded(value * 10.0**-power, first - power - digits + 1, rounding)
    return _fixed(number) + _power(power)
