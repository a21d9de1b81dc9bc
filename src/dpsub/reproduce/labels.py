"""How names are shown: plain, in Markdown and in LaTeX; kinds of privacy numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dpsub.errors import ArgumentError
from dpsub.reproduce.digits import RAISED, as_printed
from dpsub.sampling import kind_of

LABELS = {
    "nonprivate": "non-private",
    "three_stage": "three stages",
    "k_of_t": "k of t",
    "importance": "importance",
}
"""Of what stands next to samplers in records and is no sampler or schedule of one kind."""
VARIANT_LABELS = {
    "stated": "as stated",
    "as_done": "as done",
    "consistent": "consistent",
    "rigorous": "rigorous",
}
QUANTITIES = {
    "epsilon": "ε",
    "delta": "δ",
    "epsilon_amplified": "ε′",
    "delta_amplified": "δ′",
    "epsilon0": "ε₀",
    "delta0": "δ₀",
    "eta": "η",
    "delta_prime": "δ′",
    "delta_x": "grid step",
    "order_of_bias_mu": "order of magnitude",
    "order_of_bias_tau2": "order of magnitude",
    "pct_inside_bounds_lower_limit": "more than this share inside, %",
    "mean_over_n": "mean / n",
    "variance_times_epsilon_squared": "variance × ε²",
    "n_compositions": "compositions",
    "theorem3": "Theorem 3",
    "t_calibration": "time of calibration",
    "epsilon_y": "ε_y",
    "sigma_x": "σ_x",
    "n_individuals": "individuals",
    "n_subsets": "subsets",
    "n_repeats": "repetitions",
    "n_samples": "draws",
    "adult_records": "records of Adult",
    "adult_attributes": "columns of Adult",
    "gowalla_checkins": "check-ins of Gowalla",
    "box_mass_pct": "share in the box, %",
    "whisker_mass_pct": "share between the whiskers, %",
    "rate": "γ",
    "sampling_rate": "γ",
    "beta0": "β₀",
    "beta1": "β₁",
    "beta2": "β₂",
    "eta_formula": "η, formula",
    "delta_amplified_formula": "δ′, formula",
    "sigma": "σ",
    "sigma_mean": "σ of the mean",
    "sigma_variance": "σ of the variance",
    "sigma_times_m": "σ m",
    "delta_c_lower": "δ, lower",
    "delta_c_upper": "δ, upper",
    "delta_c_pair": "δ of the paper's pair, no guarantee",
    "epsilon_c_lower": "ε at δ = 1/n, attack (lower)",
    "epsilon_c_upper": "ε at δ = 1/n, proved (upper)",
    "epsilon_c_pair": "ε of the paper's pair, no guarantee",
    "target_epsilon": "target ε",
    "epsilon_poisson": "ε of Poisson sampling",
    "noise_proved": "proved",
    "noise_refuted": "refuted by attack",
    "noise_pair": "the paper's pair, no guarantee",
    "noise_over_wor": "proved noise over that of WOR",
    "ratio": "sensitivity / scale",
    "law_mean": "exact expectation",
    "delta_threshold": "threshold of δ",
    "pct_efficiency_increase": "increase in efficiency, %",
    "iterations_k": "steps",
    "parameters_p": "parameters",
    "pct_time_increase_vs_WOR": "time increase over WOR, %",
    "one_over_n": "1/n",
    "max_sigma_ratio_Poisson_over_MUST.OW": "largest σ of Poisson over that of MUST.OW",
    "gradients_computed": "gradients",
    "training_rows": "training records",
    "test_rows": "test records",
    "rmse_mean": "RMSE, mean",
    "rmse_sd": "RMSE, SD",
    "rmse": "RMSE",
    "sd": "SD",
    "ppv": "PPV",
    "npv": "NPV",
    "f1": "F1",
    "time_increase_percent": "time increase, %",
    "of_the_scheme": "shown by an attack",
    "of_the_proof": "open",
    "told_apart": "significant",
    "noise_used": "noise multiplier",
}
_CLAIMS = {
    "s8_crossover_laplace_delta": "Section S8, Laplace, crossover",
    "s8_crossover_laplace_delta_prime": "Section S8, Laplace, crossover",
    "s8_crossover_gaussian_delta": "Section S8, Gaussian, crossover",
    "s8_crossover_gaussian_delta_prime": "Section S8, Gaussian, crossover",
    "fa_r_WR": "Section 4.2.3, WR",
    "fa_r_other": "Section 4.2.3, all other schemes",
    "exp1_cover": "Section 4.2.1, bounds of the data",
    "exp1_bias_mu": "Section 4.2.1, bias of the mean",
    "exp1_bias_tau2": "Section 4.2.1, bias of the variance",
    **dict.fromkeys(
        ("s2_n", "s2_m", "s2_b", "s2_sigma", "s2_L", "s2_r", "s2_dx", "s2_eps"), "Figure S2"
    ),
    **{f"s2_k{k}": "Figure S2" for k in range(200, 1200, 200)},
    **dict.fromkeys(("fig4_n", "fig4_m", "fig4_b", "fig4_eps_max"), "Figure 4"),
    **dict.fromkeys(("fig5_m_lo", "fig5_m_hi", "fig5_b_lo", "fig5_b_hi"), "Figures 5 and S1"),
    "B006": "Theorem 3, ε ≥ θ",
    "U004": "Section 2.4, target 0.01",
    "U005": "Section 2.4, target 1",
    "c04": "Section 3.3, records",
    "c09": "Section 3.3, weights",
    "c18": "Section 5, smaller one",
    "c19": "Section 5, larger one",
    "c26": "Section 5, share of full data",
    "c27": "Section 5, share of full data",
    "c28": "Section 5, weights",
    "c35": "Section 5, machine",
    **{
        f"T1.{method}.runtime": f"Table I, {method}"
        for method in ("Lap-DP", "Gau-DP", "Lap-BRDP", "Gau-BRDP", "SMP-Lap-BRDP", "SMP-Gau-BRDP")
    },
    "T1.ratio.BRDP/DP.lap": "Table I, Laplace, BRDP over DP",
    "T1.ratio.BRDP/DP.gau": "Table I, Gaussian, BRDP over DP",
    "T1.ratio.SMP/BRDP.lap": "Table I, Laplace, SMP over BRDP",
    "T1.ratio.SMP/BRDP.gau": "Table I, Gaussian, SMP over BRDP",
}
"""Claims that print no sentence, where their place in the paper alone does not tell them apart."""
WORDS = {
    "laplace": "Laplace",
    "gaussian": "Gaussian",
    "lap": "Laplace",
    "gau": "Gaussian",
    "none": "base mechanism",
    "adult": "Adult",
    "breast_cancer": "breast cancer",
    "digits": "digits, odd or even",
    "ijcnn1": "Ijcnn1",
    "linear": "linear model",
    "bootstrap_mean": "bootstrap mean",
    "song": "Song",
    "ten_digits": "ten digits",
    "cover": "simulated covertype",
    "mixture": "k-means on a mixture",
    "million": "a million records",
    "ten_digits_perceptron": "ten digits, perceptron",
    "cover_perceptron": "simulated covertype, perceptron",
    "poisson": "Poisson",
    "wor": "WOR",
    "wr": "WR",
    "sparse": "sparse draw",
    "scikit_learn": "scikit-learn",
    "converged": "solver run to convergence",
    "sd_over_seeds": "standard deviation over seeds",
    "difference_to_poisson": "paired difference from Poisson",
    "delta_of_the_consistent_noise": "composed privacy of the consistent noise",
    "epsilon_of_the_consistent_noise": "composed privacy of the consistent noise, both sides",
    "delta_at_the_printed_scale": "composed privacy at the scale that the printed bounds use",
    "delta_with_a_fixed_denominator": "composed privacy with Poisson sums divided by the fixed m",
    "Theorem 2 on triples": "our bound from an add/remove profile",
    "Theorem 2 given the size": "our bound by sample size",
    "s8_threshold_laplace_WR": "Section S8, Laplace, WR",
    "s8_threshold_laplace_MUST.OW": "Section S8, Laplace, MUST.OW",
    "s8_threshold_laplace_MUST.WW": "Section S8, Laplace, MUST.WW",
    "s8_threshold_gaussian_WR": "Section S8, Gaussian, WR",
    "s8_threshold_gaussian_MUST.OW": "Section S8, Gaussian, MUST.OW",
    "s8_threshold_gaussian_MUST.WW": "Section S8, Gaussian, MUST.WW",
    "efficiency_ww": "MUST.WW compared with WOR",
    "sgd_k": "experiment 3, Section 4.3",
    "sgd_p": "experiment 3",
    "poisson_time_exp2": "Poisson, experiment 2",
    "poisson_time_exp3": "Poisson, experiment 3",
    "adult_records": "Adult",
    "adult_features": "Adult, columns",
    "adult_train": "Adult, training part",
    "adult_test": "Adult, test part",
    "adult_T": "experiment 3",
    "adult_inv_n": "Adult",
    "exp1_sigma_ratio": "experiment 1",
    "sec31_ow_distinct": "MUST.OW(100, 10, 20)",
    "white_box": "white-box groups",
    "black_box": "black-box groups",
    "add_remove": "add/remove",
    "substitute": "substitution",
    "zero_out": "zero-out",
    "paper_pair": "the paper's pair",
    "balle2020": "bounds of Balle et al. 2020",
    "lap_dp": "Laplace, DP",
    "lap_best": "Laplace, best rate",
    "gau_dp": "Gaussian, DP",
    "gau_best": "Gaussian, best rate",
    "log_uniform": "log-uniform",
    "unif_nonpriv": "uniform, no noise",
    "core_nonpriv": "coreset, no noise",
    "fixed_eps": "fixed ε",
    **_CLAIMS,
}
"""Of values in keys and records, and of the names of claims that print no sentence."""
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
_NAMED = {**VARIANT_LABELS, **WORDS, **LABELS, **QUANTITIES}
# Parts of one letter are symbols with an index, such as max_i and f_Z.
_IDENTIFIERS = re.compile(r"\b[A-Za-z0-9]{2,}(?:_[A-Za-z0-9]{2,})+\b")
_PLACE = {
    "T": "Theorem",
    "P": "Proposition",
    "A": "Algorithm",
    "R": "Remark",
    "(": "Equation",
}
"""Where a statement stands in its paper, as keys abbreviate it."""
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


def sampler_label(sampler: str) -> str:
    """Return the display name of a sampler, schedule or scheme, "non-private" for the baseline."""
    return LABELS.get(sampler) or kind_of(sampler).label


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
    if text in _NAMED:
        return _NAMED[text]
    return _IDENTIFIERS.sub(lambda name: _named(name[0]), text)


def _named(name: str) -> str:
    if name in _NAMED:
        return _NAMED[name]
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
    """Return how the value of a field of a row key is shown: escaped for Markdown or LaTeX, or as
    plain text."""
    escape = str if plain else escape_latex if latex else escape_markdown
    if value == "":
        return ""
    if field in ("sampler", "other") and value not in WORDS:
        return escape(_sampler(value))
    if field == "statement":
        value = _PLACES.sub(lambda place: f"{_PLACE[place[1]]} {place[2]}", value)
    if field == "case":
        # "lap: D 5, bound 1" begins with the kernel.
        kernel, colon, rest = value.partition(": ")
        value = f"{WORDS.get(kernel, kernel)}{colon}{rest}"
    if field in SELF_EXPLAINING:
        known = QUANTITIES if value in QUANTITIES else WORDS
        words = value.replace("_", " ")
        return escape(known.get(value, words if field == "claim" else in_symbols(words)))
    name = QUANTITIES.get(field, field.replace("_", " "))
    shown = WORDS.get(value, as_printed(_shortened(value)))
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
"""What a privacy number is."""
# last word of a quantity's name -> what the number is where it is rigorous
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
    """Return what the numbers of a quantity are, by its name: a key of `KINDS`, "" if they are no
    privacy numbers.

    Privacy numbers are those whose name begins with epsilon or delta, and those whose last word
    says that they bound one ("lower", "noise_refuted"). Only the variant `rigorous` promises
    anything: the others, and what is printed, give what the paper's formula gives. A rigorous
    number that does not say what it is counts as an upper bound.
    """
    first, last = column.split("_")[0], column.split("_")[-1]
    # A formula is no number, whatever its name begins with.
    if last == "formula" or (first not in ("epsilon", "delta") and last not in _ENDS):
        return ""
    # The side of more privacy loss is the safe one where a name does not say.
    return _ENDS.get(last, "upper") if variant == "rigorous" else "paper"
