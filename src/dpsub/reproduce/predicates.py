"""Statements of the papers whose claims are not declared yet; `dpsub.reproduce.claims` takes their place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dpsub.reproduce.claims import EQUAL, Finding, Frames, LackingError, of_variant, per_sampler, pick
from dpsub.reproduce.verdicts import VARIANTS

__all__ = ["Finding", "Frames", "LackingError", "Statement", "by_sampler", "equal", "increasing", "of_variant",
           "per_sampler", "pick"]  # fmt: skip

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
