"""What a privacy number is: exact, an upper bound, a lower bound, or what a paper's formula gives."""

from __future__ import annotations

KINDS = {
    "exact": "equal to the privacy loss up to rounding",
    "upper": "proved: the privacy loss is at most this",
    "lower": "attained by an attack: the privacy loss is at least this",
    "paper": "what the paper's formula gives, no guarantee",
}
# last word of a quantity's name -> what the number is where it is rigorous
_ENDS = {
    "lower": "lower", "refuted": "lower", "necessary": "lower",
    "upper": "upper", "proved": "upper", "bound": "upper", "multiplier": "upper",
    "exact": "exact", "equal": "exact", "optimum": "exact",
    "pair": "paper",
}  # fmt: skip
_LOSSES = ("epsilon", "delta")
_TEXTS = ("formula",)


def number_kind(column: str, variant: str) -> str:
    """Return what the numbers of a quantity are, by its name: a key of `KINDS`, "" if they are no privacy numbers.

    Privacy numbers are those whose name begins with epsilon or delta, and those whose last word says that they bound
    one ("lower", "noise_refuted"). Only the variant `rigorous` promises anything: the others give what the paper's
    formula gives. A rigorous number that does not say what it is counts as an upper bound.

    Parameters
    ----------
    column : str
        Name of the quantity, such as "delta_c_lower".
    variant : str
        One of `dpsub.reproduce.verdicts.VARIANTS`, or "printed".
    """
    first, last = column.split("_")[0], column.split("_")[-1]
    if last in _TEXTS or (first not in _LOSSES and last not in _ENDS):
        return ""
    return _ENDS.get(last, "upper") if variant == "rigorous" else "paper"
