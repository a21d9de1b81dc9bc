"""Display names of fields and quantities, in Markdown and in LaTeX, and the escaping of any other text."""

from __future__ import annotations

import re

from dpsub.errors import ArgumentError
from dpsub.reproduce.labels import VARIANT_LABELS, sampler_label

# name -> (plain text with Greek letters, LaTeX)
QUANTITIES = {
    "epsilon": ("ε", r"$\epsilon$"),
    "delta": ("δ", r"$\delta$"),
    "epsilon_amplified": ("ε′", r"$\epsilon'$"),
    "delta_amplified": ("δ′", r"$\delta'$"),
    "eta": ("η", r"$\eta$"),
    "eta_formula": ("η, formula", r"$\eta$, formula"),
    "delta_amplified_formula": ("δ′, formula", r"$\delta'$, formula"),
    "sigma": ("σ", r"$\sigma$"),
    "sigma_mean": ("σ of the mean", r"$\sigma$ of the mean"),
    "sigma_variance": ("σ of the variance", r"$\sigma$ of the variance"),
    "sigma_times_m": ("σ m", r"$\sigma m$"),
    "delta_c_lower": ("δ, lower", r"$\delta$, lower"),
    "delta_c_upper": ("δ, upper", r"$\delta$, upper"),
    "delta_c_pair": ("δ of the paper's pair, no guarantee", r"$\delta$ of the paper's pair, no guarantee"),
    "epsilon_c_lower": ("ε at δ = 1/n, attack (lower)", r"$\epsilon$ at $\delta = 1/n$, attack (lower)"),
    "epsilon_c_upper": ("ε at δ = 1/n, proved (upper)", r"$\epsilon$ at $\delta = 1/n$, proved (upper)"),
    "epsilon_c_pair": ("ε of the paper's pair, no guarantee", r"$\epsilon$ of the paper's pair, no guarantee"),
    "target_epsilon": ("target ε", r"target $\epsilon$"),
    "noise_proved": ("proved", "proved"),
    "noise_refuted": ("refuted by attack", "refuted by attack"),
    "noise_pair": ("the paper's pair, no guarantee", "the paper's pair, no guarantee"),
    "noise_over_wor": ("proved noise over that of WOR", "proved noise over that of WOR"),
    "rmse_mean": ("RMSE, mean", "RMSE, mean"),
    "rmse_sd": ("RMSE, SD", "RMSE, SD"),
    "rmse": ("RMSE", "RMSE"),
    "sd": ("SD", "SD"),
    "ppv": ("PPV", "PPV"),
    "npv": ("NPV", "NPV"),
    "f1": ("F1", "F1"),
    "ratio": ("sensitivity / scale", "sensitivity / scale"),
    "beta0": ("β₀", r"$\beta_0$"),
    "beta1": ("β₁", r"$\beta_1$"),
    "beta2": ("β₂", r"$\beta_2$"),
    "rate": ("γ", r"$\gamma$"),
    "sampling_rate": ("γ", r"$\gamma$"),
    "epsilon0": ("ε₀", r"$\epsilon_0$"),
    "delta0": ("δ₀", r"$\delta_0$"),
    "time_increase_percent": ("time increase, %", r"time increase, \%"),
}
WORDS = {
    "laplace": "Laplace",
    "gaussian": "Gaussian",
    "none": "base mechanism",
    "scikit_learn": "scikit-learn",
    "converged": "solver run to convergence",
    "sd_over_seeds": "standard deviation over seeds",
    "difference_to_poisson": "paired difference from Poisson",
    "delta_of_the_consistent_noise": "composed privacy of the consistent noise",
    "sparse": "sparse draw",
    "epsilon_of_the_consistent_noise": "composed privacy of the consistent noise, both sides",
    "delta_at_the_printed_scale": "composed privacy at the scale that the printed bounds use",
    "delta_with_a_fixed_denominator": "composed privacy with Poisson sums divided by the fixed m",
    "white_box": "white-box groups",
    "black_box": "black-box groups",
    "add_remove": "add or remove one record",
    "substitute": "substitute one record",
    "poisson": "Poisson",
    "wor": "WOR",
    "wr": "WR",
}
# In these fields the value says it all; elsewhere "name = value".
SELF_EXPLAINING = ("other", "column", "mechanism", "solver", "statistic", "coefficient", "kind", "claim",
                   "parameter", "draw", "adjacency", "tool", "theorem", "sampler", "base_relation", "relation",
                   "groups", "statement", "case", "topic", "design", "method", "accountant", "task")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}",
}  # fmt: skip


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
        return QUANTITIES[value][1] if latex else QUANTITIES[value][0]
    shown = escape(WORDS.get(value, value.replace("_", " ") if field in SELF_EXPLAINING else value))
    if field in SELF_EXPLAINING:
        return shown
    name = QUANTITIES[field][latex] if field in QUANTITIES else escape(field.replace("_", " "))
    return f"{name} {shown}" if field == "experiment" else f"{name} = {shown}"


def variant_name(variant: str) -> str:
    """Return the display name of a variant."""
    return VARIANT_LABELS.get(variant, variant.replace("_", " "))


def _sampler(name: str) -> str:
    try:
        return sampler_label(name)
    except ArgumentError:
        return name.replace("_", " ")
