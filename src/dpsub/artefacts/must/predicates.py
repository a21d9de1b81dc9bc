"""What a statement of the paper's text is in code: a question to the records of one variant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsub.artefacts.must.labels import VARIANTS

Frames = Mapping[str, pd.DataFrame]
EQUAL = 1e-9  # relative: two formulas of one number, evaluated along different roads


class Lacking(Exception):
    """The records of this run lack what a statement is about; the message is the reason."""


@dataclass(frozen=True)
class Answer:
    """Whether a statement holds, the numbers that say so, and the range of what was looked at where there is one."""

    holds: bool
    note: str = ""
    lower: float = float("nan")
    upper: float = float("nan")


@dataclass(frozen=True)
class Statement:
    """A statement: the experiments that it needs, and the question to their records of one variant.

    `column` names the quantity where the paper prints a number with the statement.
    """

    row: str
    needs: tuple[str, ...]
    ask: Callable[[Frames], Answer]
    column: str = "holds"

    def answers(self, records: Frames) -> Iterator[dict[str, Any]]:
        """Yield a row of a values frame for each variant that all needed experiments have.

        Without any, or where records are lacking, the row of `stated` has no value and says why.
        """
        base = {"row": self.row, "column": self.column}
        missing = [name for name in self.needs if name not in records or records[name].empty]
        if missing:
            yield {**base, "variant": "stated", "note": f"this run has no records of {', '.join(missing)}"}
            return
        for variant in VARIANTS:
            frames = {name: records[name][records[name]["variant"] == variant] for name in self.needs}
            try:
                absent = [name for name, frame in frames.items() if frame.empty]
                if absent:
                    raise Lacking(f"this run has no {variant} records of {', '.join(absent)}")
                answer = self.ask(frames)
            except Lacking as reason:
                if variant == "stated":
                    yield {**base, "variant": variant, "note": str(reason)}
                continue
            yield {
                **base, "variant": variant, "value": float(answer.holds), "lower": answer.lower, "upper": answer.upper,
                "note": answer.note,
            }  # fmt: skip


def pick(frame: pd.DataFrame, **fields: object) -> pd.DataFrame:
    """Return the rows in which every field has the given value, or is one of the values of a tuple.

    Raises
    ------
    Lacking
        If there is none, or not every value of a tuple is found.
    """
    for name, wanted in fields.items():
        values = wanted if isinstance(wanted, tuple) else (wanted,)
        frame = frame[frame[name].isin(values)]
        absent = [value for value in values if not (frame[name] == value).any()]
        if absent:
            raise Lacking(f"this run has no records of {name} {', '.join(str(value) for value in absent)}")
    return frame


def by_scheme(frame: pd.DataFrame, value: str, index: Sequence[str], schemes: Sequence[str]) -> pd.DataFrame:
    """Return `value` with one row for each combination of `index` and one column a scheme, complete.

    Raises
    ------
    Lacking
        If a scheme is absent at some combination.
    """
    chosen = pick(frame, scheme=tuple(schemes))
    wide = chosen.pivot_table(index=list(index), columns="scheme", values=value, aggfunc="first")[list(schemes)]
    if wide.isna().to_numpy().any():
        raise Lacking(f"this run lacks {value} of a sampler at some {', '.join(index)}")
    return wide


def increasing(columns: Sequence[np.ndarray | pd.Series]) -> bool:
    """Return whether each array lies strictly below the next one, everywhere."""
    return all(bool(np.all(np.asarray(a) < np.asarray(b))) for a, b in zip(columns, columns[1:], strict=False))


def equal(a: np.ndarray | pd.Series, b: np.ndarray | pd.Series) -> bool:
    """Return whether two arrays agree up to the rounding of their formulas."""
    return bool(np.allclose(np.asarray(a), np.asarray(b), rtol=EQUAL, atol=0))
