"""Pictures of answers, with matplotlib: the extra `plot`.

Each shows the band between the attained lower bound and the proved upper bound. As computing it may
take seconds, `check_can_plot` says first whether it can be drawn.
"""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsub import files
from dpsub.accounting.engine import work
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.curve import Curve
from dpsub.accounting.questions.question import Question
from dpsub.accounting.questions.search import Calibration, Goal, least_noise
from dpsub.accounting.questions.words import near
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError, DataError, NumericalError, UnsupportedError, how_to_install
from dpsub.sampling import Schedule
from dpsub.sampling.schemes import fresh_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")
_PROVED, _ATTAINED, _BAND = "#0072B2", "#D55E00", "#56B4E9"
_ABOVE: dict[str, Any] = {"linewidth": 1.3, "zorder": 3}
_BELOW: dict[str, Any] = {"linewidth": 3.0, "linestyle": (0, (2, 1)), "alpha": 0.6, "zorder": 2}
"""Lines of proved and of attained bounds; neither hides the other."""
_POINTS = 13  # numbers of steps, or batch sizes, of a picture
_EFFORT = 1.0  # effort for each of them
_FACTORS = 2.0 ** np.arange(-3, 3)
"""Batch sizes of a picture, over that of the question."""
_WIDE = 20.0  # ratio of noise in one picture, beyond which its axis is logarithmic
_SCHEMES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
"""Colours of schemes that are compared."""
MOST_SCHEMES = len(_SCHEMES)
_MOST_ENTRIES = 24  # entries of a ledger that are drawn


def check_can_plot(path: str | Path | None = None) -> None:
    """Raise UnsupportedError without matplotlib, ArgumentError for another format of a file."""
    try:
        known = find_spec("matplotlib") is not None
    except ValueError:  # a module that was marked as missing
        known = False
    if not known:
        raise UnsupportedError(
            f"a picture needs matplotlib, which is not installed; {how_to_install('plot')}"
        )
    if path is not None and Path(path).suffix not in FORMATS:
        raise ArgumentError(f"a picture must end in .png, .pdf or .svg, got {str(path)!r}")


def load_fonts() -> None:
    """Load matplotlib and its list of fonts, before the time limit of a command starts.

    This takes seconds if no folder keeps the list; DataError if there is no folder for it.
    """
    # it warns of a home that is not writable, which costs time alone
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        import_module("matplotlib.font_manager")
    except OSError as error:
        raise DataError(
            "a picture needs a folder in which matplotlib can keep files, got "
            f"{error.strerror or error}; set MPLCONFIGDIR to one that can be written"
        ) from None


def plot_of(answer: Account | Curve | Calibration, path: str | Path | None) -> Figure:
    """Draw the picture of an answer, and write its file where a path is given; whether it can be
    drawn is checked first."""
    check_can_plot(path)
    if isinstance(answer, Curve):
        figure = curve_figure(answer)
    elif isinstance(answer, Calibration):
        figure = noise_figure(answer)
    else:
        figure = account_figure(answer)
    if path is not None:
        save(figure, path)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a picture; the name only ever stands for a complete file."""
    out = io.BytesIO()
    figure.savefig(out, format=Path(path).suffix.removeprefix("."), dpi=200)
    files.save_file(path, out.getvalue())


def curve_figure(curve: Curve) -> Figure:
    """Draw delta over epsilon, and the trade-off of both errors of a test."""
    figure, (left, right) = _figure(2)
    # small rates are where attacks are compared: a logarithmic grid, and 0 itself
    rates = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 300)])
    _band(left, curve.epsilon, *curve.delta)
    left.set(xlabel="ε (nats)", ylabel="δ", yscale="log", xlim=(0, curve.epsilon[-1] or 1))
    # here the lower bound is the guarantee: no test errs less
    misses = curve.trade_off(rates)
    _band(right, rates, misses.upper, misses.lower)
    right.plot([0, 1], [1, 0], color="0.7", linewidth=0.8, zorder=0)
    right.set(xlabel="false positive rate", ylabel="false negative rate", xlim=(0, 1), ylim=(0, 1))
    left.legend(frameon=False)
    return figure


def account_figure(account: Account) -> Figure:
    """Draw both bounds over the number of steps, up to that of the answer; for releases of several
    kinds, after each of them."""
    releases, given = _one_question(account)
    figure, [axes] = _figure(1)
    if len(releases) == 1:
        steps, accounts = _by_steps(releases[0], account, given)
        _band(axes, steps, *_ends(accounts))
        axes.set(xlabel="steps", xscale="log")
        axes.set_yscale("log" if account.quantity == "delta" else "linear")
    else:
        counts = np.linspace(1, len(releases), _MOST_ENTRIES).round().astype(int)
        stages = [releases[:count] for count in np.unique(counts).tolist()]
        accounts = [_again(stage, account, given) for stage in stages[:-1]]
        steps = np.array([0, *(sum(release.steps for release in stage) for stage in stages)])
        # the last one is drawn a little farther, to be seen
        steps = np.append(steps, 1.05 * steps[-1])
        lower, upper = _ends([*accounts, account, account])
        _band(axes, steps, np.append(0.0, lower), np.append(0.0, upper), steps=True)
        axes.set(xlabel="releases", xlim=(0, steps[-1]))
    if account.quantity == "epsilon":
        axes.set_ylim(0, None)
    axes.set_ylabel(_label(account, given))
    axes.legend(frameon=False, loc="upper left" if len(releases) == 1 else "lower right")
    return figure


def _by_steps(release: Release, account: Account, given: float) -> tuple[np.ndarray, list[Account]]:
    """Return the question for fewer steps, whole epochs of a schedule."""
    if release.strategy is not None and release.strategy.columns is not None:
        raise UnsupportedError(
            "a picture over steps needs a strategy whose columns have one norm, as fewer steps "
            f"have other columns, got norms of {release.strategy.columns}; give one norm"
        )
    epoch = release.steps // release.epochs
    times = np.unique(np.geomspace(1, release.epochs, _POINTS).round().astype(int))
    fewer = [replace(release, steps=count * epoch) for count in times[:-1].tolist()]
    return times * epoch, [*(_again([one], account, given) for one in fewer), account]


def noise_figure(calibration: Calibration) -> Figure:
    """Draw the noise multiplier over the batch size, for as many records in all."""
    account = calibration.account
    releases, delta = _one_question(account)
    release = releases[-1]
    if len(releases) != 1:
        raise UnsupportedError("a picture of the noise is of one kind of releases; calibrate alone")
    if account.quantity != "epsilon":
        raise UnsupportedError(
            "a picture of the noise is for an epsilon, got an advantage; drop it"
        )
    goal = Goal(calibration.target, delta, str(account.adjacency))
    sizes, proved, refuted = [], [], []
    for factor in _FACTORS.tolist():
        resized = _resized(release, factor)
        if resized is None:
            continue
        try:
            # all of one accuracy, also that of the question
            with work.metered(_EFFORT):
                found = calibration if factor == 1 else least_noise(resized, (), goal)
        except (NumericalError, UnsupportedError, ArgumentError):
            continue
        sizes.append(_size(resized))
        proved.append(found.noise_multiplier)
        refuted.append(found.refuted or math.nan)
    figure, [axes] = _figure(1)
    _band(
        axes,
        np.array(sizes),
        np.array(refuted),
        np.array(proved),
        "o",
        ("proved", "refuted by an attack"),
    )
    unit = "batch size" if release.n is not None else "rate"
    axes.set(xlabel=f"{unit}, at equal numbers of epochs", xscale="log", ylim=(0, None))
    axes.set_ylabel(f"noise multiplier for ε = {near(calibration.target)}, δ = {_power(delta)}")
    _label_sizes(axes, sizes)
    axes.legend(frameon=False)
    return figure


def schemes_figure(
    curves: Mapping[str, Sequence[tuple[float, float, float]]], epsilon: float, delta: float
) -> Figure:
    """Draw the noise of several schemes over the batch size: by name, triples of a size, the noise
    that is proved for it, and what an attack refutes (0 if none does)."""
    figure, [axes] = _figure(1)
    for colour, (name, points) in zip(_SCHEMES, curves.items(), strict=False):
        sizes, proved, refuted = np.array(points).T
        refuted = np.where(refuted > 0, refuted, math.nan)
        axes.fill_between(sizes, refuted, proved, color=colour, alpha=0.12, linewidth=0)
        axes.plot(sizes, refuted, color=colour, **_BELOW)
        axes.plot(sizes, proved, color=colour, label=name, marker="o", markersize=3.5, **_ABOVE)
    if any(refuted > 0 for points in curves.values() for _, _, refuted in points):
        axes.plot([], [], color="0.4", label="refuted by an attack", **_BELOW)
    axes.set(xlabel="batch size, at equal numbers of epochs", xscale="log")
    axes.set_ylabel(f"noise multiplier for ε = {near(epsilon)}, δ = {_power(delta)}")
    _label_sizes(axes, sorted({point[0] for points in curves.values() for point in points}))
    noise = [proved for points in curves.values() for _, proved, _ in points]
    if max(noise) > _WIDE * min(noise):
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, None)
    figure.legend(frameon=False, fontsize="small", loc="outside upper center", ncols=2)
    return figure


def _label_sizes(axes: Axes, sizes: Sequence[float]) -> None:
    axes.set_xticks(sizes, [near(size) for size in sizes])
    axes.xaxis.minorticks_off()


def _resized(release: Release, factor: float) -> Release | None:
    """Return the releases with batches of another size and as many records in all; None if there
    are none of this size."""
    sampler: Any = release.sampler
    name = "rate" if hasattr(sampler, "rate") else "m"
    if isinstance(sampler, Schedule) or not hasattr(sampler, name):
        raise UnsupportedError(
            f"the noise over batch sizes is drawn for samplers with a rate or a size m, got "
            f"{sampler.name}; draw the account instead"
        )
    size = getattr(sampler, name) * factor
    size = size if name == "rate" else round(size)
    if size > (1 if name == "rate" else release.n or math.inf) or size <= 0:
        return None
    each = release.releases_per_sample
    steps = fresh_steps(factor, release.steps // each) * each
    return replace(release, sampler=replace(sampler, **{name: size}), steps=steps)


def _size(release: Release) -> float:
    sampler: Any = release.sampler
    if not hasattr(sampler, "rate"):
        return float(sampler.m)
    return float(sampler.rate * (release.n or 1))


def _one_question(account: Account) -> tuple[tuple[Release, ...], float]:
    if account.asked is None or len(account.asked.values) != 1 or account.kind == "paper":
        raise ArgumentError(
            "a picture needs the proved answer to one question, got several values, or variant = "
            "paper; ask for one epsilon or delta"
        )
    return account.asked.releases, account.asked.values[0]


def _again(releases: Sequence[Release], account: Account, given: float) -> Account:
    """Ask the same question about other releases."""
    question = Question(releases, str(account.adjacency), effort=_EFFORT, quick=True)
    epsilon, delta = (None, given) if account.quantity == "epsilon" else (given, None)
    return question.account(epsilon, delta)


def _ends(accounts: Sequence[Account]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.array([account.lower for account in accounts]),
        np.array([account.upper for account in accounts]),
    )


def _label(account: Account, given: float) -> str:
    if account.quantity == "epsilon":
        return f"ε at δ = {_power(given)}"
    return f"δ at ε = {near(given)}"


def _power(value: float) -> str:
    """Write a number as readers of papers expect it: 1e-05 with a raised exponent."""
    mantissa, _, exponent = near(value).partition("e")
    if not exponent:
        return mantissa
    factor = "" if mantissa == "1" else rf"{mantissa} \cdot "
    return f"${factor}10^{{{int(exponent)}}}$"


def _figure(panels: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * panels, 3.4), layout="constrained")
    axes = [figure.add_subplot(1, panels, panel + 1) for panel in range(panels)]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.grid(color="0.92", linewidth=0.8)
        each.set_axisbelow(True)
    return figure, axes


def _band(
    axes: Axes,
    x: Any,
    lower: Any,
    upper: Any,
    marker: str = "",
    names: tuple[str, str] = ("proved", "attained by an attack"),
    steps: bool = False,
) -> None:
    """Draw both bounds, and the band between them."""
    # where both bounds meet each must be seen: a thin line on a wide one
    look: dict[str, Any] = {"marker": marker, "markersize": 4}
    if steps:
        look["drawstyle"] = "steps-post"
    axes.fill_between(
        x, lower, upper, step="post" if steps else None, color=_BAND, alpha=0.4, linewidth=0
    )
    axes.plot(x, upper, color=_PROVED, label=names[0], **look, **_ABOVE)
    axes.plot(x, lower, color=_ATTAINED, label=names[1], **look | {"marker": ""}, **_BELOW)
