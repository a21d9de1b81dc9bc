"""Validators of arguments; each returns the canonical value or raises `ArgumentError` in one
sentence."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpsub.errors import ArgumentError

# Everything is computed in doubles, which do not distinguish larger whole numbers.
MOST_WHOLE = 2**53


def integer(
    name: str,
    value: Any,
    *,
    at_least: int | None = None,
    at_most: int | None = MOST_WHOLE,
    at_most_name: str | None = None,
) -> int:
    """Return `value` as an int within the limits.

    `at_most_name` names the upper limit in messages: "n" gives "at most n = 300".
    """
    # True and False are whole numbers for Python, but never an intended size.
    if isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{name} must be a whole number, got {name} = {value!r}")
    try:
        result = operator.index(value)
    except TypeError:
        if not (isinstance(value, (float, np.floating)) and float(value).is_integer()):
            raise ArgumentError(f"{name} must be a whole number, got {name} = {value!r}") from None
        result = int(value)
    if at_least is not None and result < at_least:
        raise ArgumentError(f"{name} must be at least {at_least}, got {name} = {shown(result)}")
    if at_most is not None and result > at_most:
        limit = f"{at_most_name} = {at_most}" if at_most_name else f"{at_most}"
        raise ArgumentError(f"{name} must be at most {limit}, got {name} = {shown(result)}")
    return result


def boolean(name: str, value: Any) -> bool:
    """Return `value`, which must be True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{name} must be True or False, got {name} = {value!r}")
    return bool(value)


def shown(value: int) -> str:
    """A whole number for a message; only the order of magnitude from 20 digits on."""
    if abs(value) < 10**20:
        return str(value)
    return f"about {'-' if value < 0 else ''}1e{int(math.log10(2) * abs(value).bit_length())}"


def real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return `value` as a finite float within the limits (`above` and `below` are strict)."""
    try:
        if isinstance(value, (bool, np.bool_, str)):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a number, got {name} = {value!r}") from None
    except OverflowError:
        # A whole number with hundreds of digits.
        result = math.inf if value > 0 else -math.inf
    if not math.isfinite(result):
        raise ArgumentError(f"{name} must be finite, got {name} = {result}")
    for limit, keeps, rule in (
        (above, operator.gt, "above"),
        (at_least, operator.ge, "at least"),
        (below, operator.lt, "below"),
        (at_most, operator.le, "at most"),
    ):
        if limit is not None and not keeps(result, limit):
            raise ArgumentError(f"{name} must be {rule} {limit:g}, got {name} = {result:g}")
    return result


def rate(name: str, value: Any) -> float:
    """Return `value` as a probability of inclusion, from 0 to 1."""
    result = real(name, value, at_least=0.0)
    if result > 1:
        raise ArgumentError(
            f"{name} must be at most 1, got {name} = {result:g}; it is the batch size over the "
            "number of records"
        )
    return result


def finite_array(name: str, value: Any, *, ndim: int | None = None) -> np.ndarray:
    """Return `value` as a finite float array, of `ndim` dimensions if given."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"{name} must be numbers within the range of a double, got something else"
        ) from None
    if ndim is not None and array.ndim != ndim:
        raise ArgumentError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    bad = int(array.size - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise ArgumentError(
            f"{name} must be finite, got {bad} NaN or infinite among {array.size} "
            "values; remove them"
        )
    return array


def one_of(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`, else raise an error that suggests the nearest."""
    known = sorted(choices)
    if isinstance(value, str) and value in known:
        return value
    raise ArgumentError(f"unknown {name} {value!r}; {nearest(str(value), known)}")


def named(
    name: str, value: Any, choices: Iterable[str], other_names: Mapping[str, str] | None = None
) -> str:
    """Return the one of `choices` that `value` means: capitals and hyphens do not matter, and
    `other_names` are read as what they map to. Errors as of `one_of`."""
    known = sorted(choices)
    if isinstance(value, str):
        plain = plain_word(value)
        meant = (other_names or {}).get(plain, plain)
        if meant in known:
            return str(meant)
    return one_of(name, value, known)


def plain_word(word: str) -> str:
    """The word in small letters, with underscores for hyphens and spaces."""
    return word.strip().lower().replace("-", "_").replace(" ", "_")


_MEANT = {
    **dict.fromkeys(("relation", "neighboring_relation", "neighbouring_relation"), "adjacency"),
    **dict.fromkeys(("noise", "noise_scale", "std", "stddev"), "noise_multiplier"),
    **dict.fromkeys(("num_steps", "iterations", "compositions", "count", "num_iters"), "steps"),
    **dict.fromkeys(("num_epochs", "max_epochs"), "epochs"),
    **dict.fromkeys(("sample_rate", "sampling_rate", "sampling_probability", "q", "p"), "rate"),
    **dict.fromkeys(("batch_size", "batch", "sample_size", "lot_size", "size"), "m"),
    **dict.fromkeys(
        ("num_records", "n_records", "num_examples", "num_samples", "dataset_size", "records"), "n"
    ),
    **dict.fromkeys(("target_epsilon", "eps"), "epsilon"),
    **dict.fromkeys(("claim", "claimed", "stated_epsilon"), "claimed_epsilon"),
    "target_delta": "delta",
    **dict.fromkeys(("max_grad_norm", "clip_norm", "l2_norm_clip"), "clip"),
    **dict.fromkeys(("timeout", "max_time"), "time_limit"),
}
"""Words of other libraries, and what they are called here."""


def nearest(word: str, known: Sequence[str]) -> str:
    """Return a hint: the known word that is meant, or nearest to `word`, or all of them; as options
    of the command line, with hyphens, where `word` is one."""
    meant = _MEANT.get(plain_word(word.removeprefix("--")), "")
    if word.startswith("--"):
        meant = f"--{meant.replace('_', '-')}"
    if meant in known:
        return f"did you mean {meant!r}?"
    # dashes, which all options have, make none alike
    by_name = {name.removeprefix("--"): name for name in known}
    near = difflib.get_close_matches(word.removeprefix("--"), by_name, n=1)
    return f"did you mean {by_name[near[0]]!r}?" if near else f"known: {', '.join(known)}"
