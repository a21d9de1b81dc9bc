"""What a numbered table or figure is: records in, values and drawings out; nothing heavy is computed here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from dpsub.artefacts.layout import Layout
from dpsub.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Records = Mapping[str, pd.DataFrame]
KINDS = ("table", "figure", "claims")
VALUE_COLUMNS = ("row", "column", "variant", "value", "standard_error", "replicates", "lower", "upper", "note")
NUMERIC = ("value", "standard_error", "replicates", "lower", "upper")


def values_frame(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """Return the values of an artefact in their fixed columns; what a row does not give is NaN, or "" for the note.

    Parameters
    ----------
    rows : iterable of mappings
        Each with `row`, `column`, `variant`, `value` and any of the other `VALUE_COLUMNS`.

    Returns
    -------
    DataFrame
        Columns `VALUE_COLUMNS`, in the order of `rows`.

    Raises
    ------
    DataError
        If one (row, column, variant) comes twice.
    """
    frame = pd.DataFrame(list(rows), columns=list(VALUE_COLUMNS))
    frame = frame.astype(dict.fromkeys(NUMERIC, "float64")).fillna({"note": ""})
    key = ["row", "column", "variant"]
    twice = frame[frame.duplicated(key)]
    if len(twice):
        row, column, variant = twice.iloc[0][key]
        raise DataError(f"each value of an artefact comes once, got {row!r}, {column!r}, {variant!r} twice; "
                        "look for records of two runs in one folder")
    return frame


class Artefact(ABC):
    """One numbered table or figure, or the claims of a paper's text.

    Class attributes
    ----------------
    paper : str
        Key of the paper ("must").
    name : str
        Name within the paper ("table8"); the registry knows it as "must/table8".
    kind : {"table", "figure", "claims"}
        What `build` writes.
    caption : str
        One or two sentences: what is shown, units, what intervals are.
    experiments : tuple of str
        Experiments whose records it reads.
    timed : bool
        True if its values are clock times, which differ from run to run and are kept apart.
    layout : Layout
        Where each value stands in the printed table.
    """

    paper: ClassVar[str] = "must"
    name: ClassVar[str]
    kind: ClassVar[str]
    caption: ClassVar[str]
    experiments: ClassVar[tuple[str, ...]] = ()
    timed: ClassVar[bool] = False
    layout: ClassVar[Layout] = Layout()

    @property
    def identifier(self) -> str:
        """Name in the registry, "paper/name"."""
        return f"{self.paper}/{self.name}"

    @abstractmethod
    def values(self, records: Records) -> pd.DataFrame:
        """Return the numbers that can be compared with printed ones, in the columns `VALUE_COLUMNS`."""

    def formulas(self) -> Mapping[tuple[str, str], str]:
        """Return formulas in LaTeX that stand in the table like printed values, by (row, column)."""
        return {}

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        """Return the figure and the numbers plotted in it (figures only).

        Raises
        ------
        DataError
            If the artefact is not a figure, or records are missing.
        """
        raise DataError(f"only a figure is drawn, got {self.identifier!r} of kind {self.kind!r}; use its values")

    def needed(self, records: Records, experiment: str, *, variants: Iterable[str] = ()) -> pd.DataFrame:
        """Return the records of `experiment`, of `variants` where given.

        Raises
        ------
        DataError
            If there are none.
        """
        if experiment not in records or records[experiment].empty:
            have = ", ".join(sorted(records)) or "none"
            raise DataError(f"{self.identifier} needs the records of {experiment!r}, got {have}; run that experiment")
        frame = records[experiment]
        wanted = tuple(variants)
        if wanted:
            frame = frame[frame["variant"].isin(wanted)]
            if frame.empty:
                have = ", ".join(sorted(records[experiment]["variant"].unique()))
                raise DataError(f"{self.identifier} needs {experiment!r} in the variant {' or '.join(wanted)}, "
                                f"got {have}; run that variant")
        return frame

    def labels(self, records: Records) -> tuple[str, ...]:
        """Return the data labels ("real", "synthetic", ...) of the records it reads; empty for simulated data."""
        found: set[str] = set()
        for experiment in self.experiments:
            if experiment in records:
                found |= set(records[experiment]["data"].dropna().astype(str))
        return tuple(sorted(found - {""}))
