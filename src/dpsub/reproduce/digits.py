"""Numbers as text: with the digits of the printed number next to them, so that they can be compared by eye."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable


def like(value: float, template: str, *, more: int = 0) -> str:
    """Return `value` in the form of `template` ("0.976", "4.17e-06"), with `more` digits; "" for NaN.

    A value that the template's decimals would show as zero, or as a bare integer where it is not one, gets three
    significant digits instead.
    """
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    found = re.fullmatch(r"[+-]?\d+(?:\.(\d+))?([eE][+-]?\d+)?", template)
    if not found or (template.strip("+-") == "0" and not more):
        return significant(value)
    decimals = len(found[1] or "") + more
    if found[2]:
        return f"{value:.{decimals}e}"
    if abs(value) < 10.0**-decimals:
        return f"{value:.2e}"
    return f"{value:.{decimals}f}"


def significant(value: float, digits: int = 4) -> str:
    """Return `value` with that many significant digits, without trailing zeros."""
    return "" if math.isnan(value) else f"{value:.{digits}g}"


def usual(templates: Iterable[str]) -> str:
    """Return the printed text whose number of decimals is the most frequent, "" if there is none."""
    plain = [text for text in templates if re.fullmatch(r"[+-]?\d+\.\d+([eE][+-]?\d+)?", text)]
    if not plain:
        return ""
    shapes = Counter((len(text.split("e")[0].split(".")[1]), "e" in text) for text in plain)
    best = shapes.most_common(1)[0][0]
    return next(text for text in plain if (len(text.split("e")[0].split(".")[1]), "e" in text) == best)


def with_error(value: float, error: float, lower: float, upper: float, template: str) -> str:
    """Return "value ± standard error [lower, upper]", leaving out what is not given.

    With an error, the value gets one digit more than the template, or, where the template has no decimals, as many as
    two significant digits of the error need.
    """
    if math.isnan(value):
        return ""
    known = math.isfinite(error) and error > 0
    text = like(value, template)
    if known and "." in template:
        small = error < 10.0 ** -(len(template.split("e")[0].split(".")[1]) + 1)
        text = f"{like(value, template, more=1)} ± {f'{error:.1e}' if small else like(error, template, more=1)}"
    elif known:
        decimals = max(0, 1 - math.floor(math.log10(error)))
        text = f"{value:.{decimals}f} ± {error:.{decimals}f}" if decimals < 8 else f"{value:.4g} ± {error:.2g}"
    if math.isfinite(lower) and math.isfinite(upper):
        more = 1 if known and "." in template else 0
        text += f" [{like(lower, template, more=more)}, {like(upper, template, more=more)}]"
    return text
