"""What a statement of the paper's text is in code: a question to the records of one variant."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dpsub.reproduce.verdicts import VARIANTS

Frames = Mapping[str, pd.DataFrame]
EQUAL = 1e-9  # relative: two formulas of one number, evaluated in different ways


class LackingError(Exception):
    """The records of this run lack what a statement is about; the message is the reason."""


@dataclass(frozen=True)
class Finding:
    """Whether a statement holds, the numbers that say so, and the range of what was looked at where there is one."""

    holds: bool
    note: str = ""
    lower: float = float("nan")
    upper: float = float("nan")


@dataclass(frozen=True)
class Statement:
    """A statement of the text.

    Parameters
    ----------
    row : str
        Its identifier among the published claims.
    needs : tuple of str
        Experiments whose records it is put to, one variant at a time.
    ask : callable
        Answers for the frames of one variant, by experiment; raises :class:`LackingError` where they do not suffice.
    column : str
        Name of the quantity where the paper prints a number with the statement.
    shared : mapping
        Further frames for `ask`, always of the same variant: name -> (experiment, variant).
    variants : tuple of str
        The variants that it is about.
    """

    row: str
    needs: tuple[str, ...]
    ask: Callable[[Frames], Finding]
    column: str = "holds"
    shared: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    variants: tuple[str, ...] = VARIANTS

    def answers(self, records: Frames) -> Iterator[dict[str, Any]]:
        """Yield a row of a values frame for each variant; where `stated` lacks records, its row says why."""
        for variant in self.variants:
            base = {"claim": self.row, "column": self.column, "variant": variant}
            try:
                frames = {name: of_variant(records, name, variant) for name in self.needs}
                frames |= {name: of_variant(records, *place) for name, place in self.shared.items()}
                answer = self.ask(frames)
            except LackingError as reason:
                if variant == "stated":
                    yield {**base, "note": str(reason)}
                continue
            bounds = {"lower": answer.lower, "upper": answer.upper}
            yield {**base, "value": float(answer.holds), **bounds, "note": answer.note}


def of_variant(records: Frames, experiment: str, variant: str) -> pd.DataFrame:
    """Return the records of an experiment in one variant.

    Raises
    ------
    LackingError
        If there are none.
    """
    frame = records.get(experiment, pd.DataFrame({"variant": []}))
    frame = frame[frame["variant"] == variant]
    if frame.empty:
        raise LackingError(f"this run has no {variant} records of {experiment}")
    return frame


def pick(frame: pd.DataFrame, **fields: object) -> pd.DataFrame:
    """Return the rows in which every field has the given value, or is one of the values of a tuple.

    Raises
    ------
    LackingError
        If there is none, or not every value of a tuple is found.
    """
    for name, wanted in fields.items():
        values = wanted if isinstance(wanted, tuple) else (wanted,)
        frame = frame[frame[name].isin(values)]
        absent = [value for value in values if not (frame[name] == value).any()]
        if absent:
            raise LackingError(f"this run has no records of {name} {', '.join(str(value) for value in absent)}")
    return frame


def by_sampler(frame: pd.DataFrame, value: str, index: Sequence[str], samplers: Sequence[str]) -> pd.DataFrame:
    """Return `value` with one row for each combination of `index` and one column a sampler, complete.

    Raises
    ------
    LackingError
        If a sampler is absent at some combination.
    """
    chosen = pick(frame, sampler=tuple(samplers))
    wide = chosen.pivot_table(index=list(index), columns="sampler", values=value, aggfunc="first")[list(samplers)]
    if wide.isna().to_numpy().any():
        raise LackingError(f"this run lacks {value} of a sampler at some {', '.join(index)}")
    return wide


def increasing(columns: Sequence[np.ndarray | pd.Series]) -> bool:
    """Return whether each array lies strictly below the next one, everywhere."""
    return all(bool(np.all(np.asarray(a) < np.asarray(b))) for a, b in itertools.pairwise(columns))


def equal(a: np.ndarray | pd.Series, b: np.ndarray | pd.Series) -> bool:
    """Return whether two arrays agree up to the rounding of their formulas."""
    return bool(np.allclose(np.asarray(a), np.asarray(b), rtol=EQUAL, atol=0))


def per_sampler(values: pd.Series, form: str = "g") -> str:
    """Return "name value, name value", without NaN."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items() if not math.isnan(value))
