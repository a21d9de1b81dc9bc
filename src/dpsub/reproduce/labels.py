"""How names and numbers are shown: plain, in Markdown and in LaTeX; digits; kinds of privacy numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

from dpsub.errors import ArgumentError
from dpsub.sampling import REGISTRY

NONPRIVATE_LABEL = "non-private"
VARIANT_LABELS = {"stated": "as stated", "as_done": "as done", "consistent": "consistent", "rigorous": "rigorous"}
QUANTITIES = {
    "epsilon": "ε", "delta": "δ", "epsilon_amplified": "ε′", "delta_amplified": "δ′", "epsilon0": "ε₀", "delta0": "δ₀",
    "eta": "η", "rate": "γ", "sampling_rate": "γ", "beta0": "β₀", "beta1": "β₁", "beta2": "β₂",
    "eta_formula": "η, formula", "delta_amplified_formula": "δ′, formula",
    "sigma": "σ", "sigma_mean": "σ of the mean", "sigma_variance": "σ of the variance", "sigma_times_m": "σ m",
    "delta_c_lower": "δ, lower", "delta_c_upper": "δ, upper", "delta_c_pair": "δ of the paper's pair, no guarantee",
    "epsilon_c_lower": "ε at δ = 1/n, attack (lower)", "epsilon_c_upper": "ε at δ = 1/n, proved (upper)",
    "epsilon_c_pair": "ε of the paper's pair, no guarantee", "target_epsilon": "target ε",
    "noise_proved": "proved", "noise_refuted": "refuted by attack", "noise_pair": "the paper's pair, no guarantee",
    "noise_over_wor": "proved noise over that of WOR", "ratio": "sensitivity / scale",
    "rmse_mean": "RMSE, mean", "rmse_sd": "RMSE, SD", "rmse": "RMSE", "sd": "SD",
    "ppv": "PPV", "npv": "NPV", "f1": "F1", "time_increase_percent": "time increase, %",
}  # fmt: skip
WORDS = {
    "laplace": "Laplace", "gaussian": "Gaussian", "none": "base mechanism",
    "poisson": "Poisson", "wor": "WOR", "wr": "WR", "sparse": "sparse draw",
    "scikit_learn": "scikit-learn", "converged": "solver run to convergence",
    "sd_over_seeds": "standard deviation over seeds", "difference_to_poisson": "paired difference from Poisson",
    "delta_of_the_consistent_noise": "composed privacy of the consistent noise",
    "epsilon_of_the_consistent_noise": "composed privacy of the consistent noise, both sides",
    "delta_at_the_printed_scale": "composed privacy at the scale that the printed bounds use",
    "delta_with_a_fixed_denominator": "composed privacy with Poisson sums divided by the fixed m",
    "white_box": "white-box groups", "black_box": "black-box groups",
    "add_remove": "add or remove one record", "substitute": "substitute one record",
}  # fmt: skip
# In these fields the value says it all; elsewhere "name = value".
SELF_EXPLAINING = (
    "accountant", "adjacency", "base_relation", "case", "claim", "coefficient", "column", "design", "draw", "groups",
    "kind", "mechanism", "method", "other", "parameter", "relation", "sampler", "solver", "statement", "statistic",
    "task", "theorem", "tool", "topic",
)  # fmt: skip
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}",
}  # fmt: skip
_FORMULAS = re.compile("[βγδεησ]([₀₁₂′]| m| = 1/n)?")
_SYMBOLS = str.maketrans({
    "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\epsilon", "η": r"\eta", "σ": r"\sigma", "′": "'",
    "₀": "_0", "₁": "_1", "₂": "_2",
})  # fmt: skip


def sampler_label(sampler: str) -> str:
    """Return the display name of a sampler, "non-private" for the baseline."""
    return NONPRIVATE_LABEL if sampler == "nonprivate" else REGISTRY.get(sampler).label


def escape_markdown(text: str) -> str:
    """Return `text` such that Markdown shows it as it is, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$&])", r"\\\1", " ".join(text.split()))


def escape_latex(text: str) -> str:
    """Return `text` such that LaTeX prints it as it is, on one line."""
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))


def display(field: str, value: str, *, latex: bool = False, plain: bool = False) -> str:
    """Return how the value of a field of a row key is shown: escaped for Markdown or LaTeX, or as plain text."""
    escape = str if plain else escape_latex if latex else escape_markdown
    if value == "":
        return ""
    if field in ("sampler", "other") and value not in WORDS:
        return escape(_sampler(value))
    if value in QUANTITIES and field in SELF_EXPLAINING:
        return _quantity(value, latex)
    shown = escape(WORDS.get(value, value.replace("_", " ") if field in SELF_EXPLAINING else value))
    if field in SELF_EXPLAINING:
        return shown
    name = _quantity(field, latex) if field in QUANTITIES else escape(field.replace("_", " "))
    return f"{name} {shown}" if field == "experiment" else f"{name} = {shown}"


def _quantity(name: str, latex: bool) -> str:
    shown = QUANTITIES[name]
    return _FORMULAS.sub(lambda found: f"${found[0].translate(_SYMBOLS)}$", escape_latex(shown)) if latex else shown


def _sampler(name: str) -> str:
    try:
        return sampler_label(name)
    except ArgumentError:
        return name.replace("_", " ")


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
        return f"{value:.4g}"
    decimals = len(found[1] or "") + more
    if found[2]:
        return f"{value:.{decimals}e}"
    return f"{value:.2e}" if abs(value) < 10.0**-decimals else f"{value:.{decimals}f}"


def usual(templates: Iterable[str]) -> str:
    """Return the printed text whose number of decimals is the most frequent, "" if there is none."""
    plain = [text for text in templates if re.fullmatch(r"[+-]?\d+\.\d+([eE][+-]?\d+)?", text)]
    shapes = [(_decimals(text), "e" in text) for text in plain]
    return plain[shapes.index(Counter(shapes).most_common(1)[0][0])] if plain else ""


def with_error(value: float, error: float, lower: float, upper: float, template: str) -> str:
    """Return "value ± standard error [lower, upper]", leaving out what is not given.

    With an error, the value gets one digit more than the template, or, where the template has no decimals, as many as
    two significant digits of the error need.
    """
    if math.isnan(value):
        return ""
    known = math.isfinite(error) and error > 0
    more = int(known and "." in template)
    text = like(value, template)
    if more:
        small = error < 10.0 ** -(_decimals(template) + 1)
        text = f"{like(value, template, more=1)} ± {f'{error:.1e}' if small else like(error, template, more=1)}"
    elif known:
        decimals = max(0, 1 - math.floor(math.log10(error)))
        text = f"{value:.{decimals}f} ± {error:.{decimals}f}" if decimals < 8 else f"{value:.4g} ± {error:.2g}"
    if math.isfinite(lower) and math.isfinite(upper):
        text += f" [{like(lower, template, more=more)}, {like(upper, template, more=more)}]"
    return text


def _decimals(text: str) -> int:
    return len(text.partition("e")[0].partition(".")[2])


KINDS = {
    "exact": "equal to the privacy loss up to rounding",
    "upper": "proved: the privacy loss is at most this",
    "lower": "attained by an attack: the privacy loss is at least this",
    "paper": "what the paper's formula gives, no guarantee",
}
"""What a privacy number is."""
# last word of a quantity's name -> what the number is where it is rigorous
_ENDS = {
    "lower": "lower", "refuted": "lower", "necessary": "lower",
    "upper": "upper", "proved": "upper", "bound": "upper", "multiplier": "upper",
    "exact": "exact", "equal": "exact", "optimum": "exact",
    "pair": "paper",
}  # fmt: skip


def number_kind(column: str, variant: str) -> str:
    """Return what the numbers of a quantity are, by its name: a key of `KINDS`, "" if they are no privacy numbers.

    Privacy numbers are those whose name begins with epsilon or delta, and those whose last word says that they bound
    one ("lower", "noise_refuted"). Only the variant `rigorous` promises anything: the others, and what is printed, give
    what the paper's formula gives. A rigorous number that does not say what it is counts as an upper bound.
    """
    first, last = column.split("_")[0], column.split("_")[-1]
    if last == "formula" or (first not in ("epsilon", "delta") and last not in _ENDS):
        return ""
    return _ENDS.get(last, "upper") if variant == "rigorous" else "paper"
