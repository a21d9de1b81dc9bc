"""Display names: plain, in Markdown and in LaTeX; kinds of privacy numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, ClassVar

from dpsub.errors import ArgumentError, PlanError
from dpsub.registry import Registry
from dpsub.reproduce.digits import RAISED, as_printed
from dpsub.sampling import kind_of

VARIANT_LABELS = {
    "stated": "as stated",
    "as_done": "as done",
    "consistent": "consistent",
    "rigorous": "rigorous",
}
LOOKS = {
    "nonprivate": {"label": "non-private", "color": "black", "marker": "*", "linestyle": "-"},
    "three_stage": {"label": "three stages", "color": "#999999", "marker": "P", "linestyle": "-"},
    "k_of_t": {
        "label": "k of t",
        "color": "#56B4E9",
        "marker": "p",
        "linestyle": (0, (2, 1, 2, 1, 5, 1)),
    },
}
"""Styles of the baseline and of schemes that are no sampler or schedule of one kind, as keyword
arguments of ``Axes.plot``."""
QUANTITIES = {
    "epsilon": "ε",
    "delta": "δ",
    "epsilon_amplified": "ε′",
    "delta_amplified": "δ′",
    "eta": "η",
    "n_compositions": "compositions",
    "adult_records": "records of Adult",
    "rate": "γ",
    "sampling_rate": "γ",
    "eta_formula": "η, formula",
    "delta_amplified_formula": "δ′, formula",
    "sigma": "σ",
    "target_epsilon": "target ε",
    "noise_proved": "proved",
    "ratio": "sensitivity / scale",
    "sd": "SD",
}
WORDS = {
    "laplace": "Laplace",
    "gaussian": "Gaussian",
    "none": "base mechanism",
    "adult": "Adult",
    "breast_cancer": "breast cancer",
    "digits": "digits, odd or even",
    "ijcnn1": "Ijcnn1",
    "linear": "linear model",
    "song": "Song",
    "ten_digits": "ten digits",
    "poisson": "Poisson",
    "wor": "WOR",
    "wr": "WR",
    "difference_to_poisson": "paired difference from Poisson",
    "adult_records": "Adult",
    "add_remove": "add/remove",
    "substitute": "substitution",
    "zero_out": "zero-out",
}


class Labels:
    """Display names that only one paper uses: a paper has a subclass in its `labels.py`, under its
    key. Names that two papers or the library use stand in `QUANTITIES`, `WORDS` and `LOOKS`."""

    name: ClassVar[str]
    quantities: ClassVar[Mapping[str, str]] = {}
    """Names of columns."""
    words: ClassVar[Mapping[str, str]] = {}
    """Names of values in keys and records, and of claims that print no sentence, where their place
    in the paper alone does not tell them apart."""
    samplers: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Label, colour, marker and dashes, as in `LOOKS`, of names that stand next to samplers in
    records."""


REGISTRY: Registry[Labels] = Registry("dpsub.papers", Labels, "set of labels", inside="labels")
# In these fields the value says it all; elsewhere "name = value".
SELF_EXPLAINING = (
    "accountant",
    "adjacency",
    "attack",
    "base_relation",
    "batches",
    "case",
    "claim",
    "coefficient",
    "column",
    "dataset",
    "design",
    "draw",
    "groups",
    "kind",
    "mechanism",
    "method",
    "other",
    "parameter",
    "regime",
    "relation",
    "sampler",
    "solver",
    "statement",
    "statistic",
    "task",
    "theorem",
    "tool",
    "topic",
)
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
# Parts of one letter are symbols with an index, such as max_i and f_Z.
_IDENTIFIERS = re.compile(r"\b[A-Za-z0-9]{2,}(?:_[A-Za-z0-9]{2,})+\b")
_PLACE = {
    "T": "Theorem",
    "P": "Proposition",
    "A": "Algorithm",
    "R": "Remark",
    "(": "Equation",
}
"""Abbreviated place of a statement in its paper -> the word for it."""
_PLACES = re.compile(r"^([TPAR(])(\d+(?:\.\d+)?)\)?")
# Words of prose and of claims, which are written without symbols.
_GREEK = {
    "epsilon": "ε",
    "eps": "ε",
    **{
        name: sign
        for sign, name in zip(
            "αβγδηθμσψ",
            ("alpha", "beta", "gamma", "delta", "eta", "theta", "mu", "sigma", "psi"),
            strict=True,
        )
    },
}
# not in names such as T1.eps, must_eta, eta-trick
_NAMES = re.compile(rf"(?<![\w.\-])({'|'.join(_GREEK)})(?![A-Za-z\-])('?)")
_POWERS = re.compile(r"(?<![\w.])\d+(?:\.\d+)?e[+-]?\d+(?!\w|\.\d)")
_MINUS = re.compile(r"(?<![\w.)\]`-])-(?=\d)")
_SIGNS = {
    **{sign: rf"\{name}" for name, sign in _GREEK.items()},
    "ε": r"\epsilon",
    "′": "'",
    "−": "-",
    "±": r"\pm ",
    "×": r"\times ",
    "✗": r"\times ",
    "≠": r"\neq ",
    "≈": r"\approx ",
    "≤": r"\leq ",
    "≥": r"\geq ",
    "∞": r"\infty ",
    "†": r"\dagger ",
    "√": r"\surd ",
}
_LOW = "₀₁₂"
_MOST_DIGITS = 7  # of a number in a key
_DOWN = str.maketrans(RAISED, "-0123456789")
_POWER = rf"10[{RAISED}]+"
_FORMULAS = re.compile(
    rf"−?\d[\d.]* × {_POWER}| × {_POWER}|−?{_POWER}|−\d[\d.]*|"
    rf"[{''.join(_SIGNS)}][′{_LOW}]*(?: m\b| = 1/n\b)?"
)


@cache
def quantities() -> dict[str, str]:
    """Return the display names of the quantities of all papers."""
    return _of_all(QUANTITIES, "quantities")


@cache
def words() -> dict[str, str]:
    """Return the display names of values and claims of all papers."""
    return _of_all(WORDS, "words")


@cache
def looks() -> dict[str, dict[str, Any]]:
    """Return the styles of names that stand next to samplers in the records of all papers."""
    return _of_all(LOOKS, "samplers")


@cache
def _named() -> dict[str, str]:
    labels = {name: look["label"] for name, look in looks().items()}
    return {**VARIANT_LABELS, **words(), **labels, **quantities()}


def _of_all(shared: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the shared names with those of all papers; PlanError if a name is shown in two
    ways."""
    shown = dict(shared)
    for paper, labels in REGISTRY.members().items():
        for name, label in getattr(labels, kind).items():
            if shown.setdefault(name, label) != label:
                raise PlanError(
                    f"a name must be shown in one way in all papers, got {label!r} and "
                    f"{shown[name]!r} for {name!r} in papers/{paper}/labels.py; rename one"
                )
    return shown


def sampler_label(sampler: str) -> str:
    """Return the display name of a sampler, schedule or scheme, "non-private" for the baseline."""
    return looks()[sampler]["label"] if sampler in looks() else kind_of(sampler).label


def in_symbols(text: str) -> str:
    """Return prose with the symbols of the field: delta' as δ′, 1e-05 as 10⁻⁵, <= as ≤, -0.5 as
    −0.5."""
    text = _NAMES.sub(lambda name: _GREEK[name[1]] + "′" * len(name[2]), text)
    text = text.replace("<=", "≤").replace(">=", "≥")
    # Powers before signs: the minus of 1e-05 belongs to its exponent.
    return _MINUS.sub("−", _POWERS.sub(lambda power: as_printed(power[0]), text))


def in_words(text: str) -> str:
    """Return prose or one value with the names of keys and records in plain words: "must_ow" as
    MUST.OW; symbols with an index ("x_u") stay."""
    # A word alone is a value: it is known without an underscore as well.
    if text in _named():
        return _named()[text]
    return _IDENTIFIERS.sub(lambda name: _in_words(name[0]), text)


def _in_words(name: str) -> str:
    if name in _named():
        return _named()[name]
    try:
        return sampler_label(name)
    except ArgumentError:
        return name.replace("_", " ")


def listed(names: Iterable[str]) -> str:
    """Return "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def escape_markdown(text: str) -> str:
    """Return `text` such that Markdown shows it as it is, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$&])", r"\\\1", " ".join(text.split()))


def escape_latex(text: str) -> str:
    """Return `text` such that LaTeX prints it as it is, on one line."""
    # Escaped first: signs of the field are letters of their own and not among what is escaped.
    plain = "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))
    return _FORMULAS.sub(lambda formula: _math(formula[0]), plain)


def _math(text: str) -> str:
    """Return signs, and powers of ten with their factor, as a formula in LaTeX."""
    text = re.sub(f"[{_LOW}]", lambda sign: f"_{_LOW.index(sign[0])}", text)
    text = re.sub(f"[{RAISED}]+", lambda signs: f"^{{{signs[0].translate(_DOWN)}}}", text)
    shown = re.sub(f"[{''.join(_SIGNS)}]", lambda sign: _SIGNS[sign[0]], text).replace("  ", " ")
    return f"${'{}' if shown.startswith(' ') else ''}{shown.strip()}$"


def display(field: str, value: str, *, latex: bool = False, plain: bool = False) -> str:
    """Return the value of a field of a row key as it is shown: escaped for Markdown or LaTeX, or as
    plain text."""
    escape = str if plain else escape_latex if latex else escape_markdown
    if value == "":
        return ""
    if field in ("sampler", "other") and value not in words():
        return escape(_sampler(value))
    if field == "statement":
        value = _PLACES.sub(lambda place: f"{_PLACE[place[1]]} {place[2]}", value)
    if field == "case":
        # "lap: D 5, bound 1" begins with the kernel.
        kernel, colon, rest = value.partition(": ")
        value = f"{words().get(kernel, kernel)}{colon}{rest}"
    if field in SELF_EXPLAINING:
        known = quantities() if value in quantities() else words()
        spelt = value.replace("_", " ")
        return escape(known.get(value, spelt if field == "claim" else in_symbols(spelt)))
    name = quantities().get(field, field.replace("_", " "))
    shown = words().get(value, as_printed(_shortened(value)))
    return escape(f"{name} {shown}" if field == "experiment" else f"{name} = {shown}")


def _shortened(value: str) -> str:
    """Return a number of too many digits, such as a quotient in a key, with five of them."""
    if "." not in value or sum(map(str.isdigit, value.partition("e")[0])) <= _MOST_DIGITS:
        return value
    try:
        return f"{float(value):.5g}"
    except ValueError:
        return value


def _sampler(name: str) -> str:
    try:
        return sampler_label(name)
    except ArgumentError:
        return name.replace("_", " ")


KINDS = {
    "exact": "equal to the privacy loss up to rounding",
    "upper": "proved: the privacy loss is at most this",
    "lower": "attained by an attack: the privacy loss is at least this",
    "paper": "what the paper's formula gives, no guarantee",
}
"""Kinds of privacy numbers, with their meanings."""
# last word of a quantity's name -> the kind of its number where it is rigorous
_ENDS = {
    "lower": "lower",
    "refuted": "lower",
    "necessary": "lower",
    "upper": "upper",
    "proved": "upper",
    "bound": "upper",
    "multiplier": "upper",
    "exact": "exact",
    "equal": "exact",
    "optimum": "exact",
    "pair": "paper",
}


def number_kind(column: str, variant: str) -> str:
    """Return the kind of a quantity's numbers by its name: a key of `KINDS`, "" if they are no
    privacy numbers.

    Privacy numbers are those whose name begins with epsilon or delta, and those whose last word
    says that they bound one ("lower", "refuted"). Only the variant `rigorous` promises
    anything: the others, and what is printed, give what the paper's formula gives. A rigorous
    number that does not say what it is counts as an upper bound.
    """
    first, last = column.split("_")[0], column.split("_")[-1]
    # A formula is no number, whatever its name begins with.
    if last == "formula" or (first not in ("epsilon", "delta") and last not in _ENDS):
        return ""
    # The side of more privacy loss is the safe one where a name does not say.
    return _ENDS.get(last, "upper") if variant == "rigorous" else "paper"
