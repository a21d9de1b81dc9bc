"""What a numbered table or figure is: records in, values and drawings out; nothing heavy is computed here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from dpsub.errors import DataError
from dpsub.reproduce import published as printed_numbers
from dpsub.reproduce.cells import table_cells
from dpsub.reproduce.comparison import VALUE_COLUMNS, compare
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.papers import of_module
from dpsub.reproduce.privacy import number_kind
from dpsub.reproduce.records import replace_file
from dpsub.reproduce.rendering import latex, markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Records = Mapping[str, pd.DataFrame]
KINDS = ("table", "figure", "claims")
FIGURE_FORMATS = ("pdf", "png")
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
    frame = pd.DataFrame([{"note": "", **row} for row in rows], columns=list(VALUE_COLUMNS))
    frame = frame.astype(dict.fromkeys(NUMERIC, "float64"))
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
        Key of the paper ("must"): the folder in which the class stands.
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

    paper: ClassVar[str]
    name: ClassVar[str]
    kind: ClassVar[str]
    caption: ClassVar[str]
    experiments: ClassVar[tuple[str, ...]] = ()
    timed: ClassVar[bool] = False
    layout: ClassVar[Layout] = Layout()

    def __init_subclass__(cls) -> None:
        if paper := of_module(cls.__module__):
            cls.paper = paper

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

    def quotes(self) -> Mapping[tuple[str, str], tuple[str, str, str]]:
        """Return which printed numbers of other artefacts stand in this table: (row, column) -> their full key."""
        return {}

    def number_kind(self, column: str, variant: str) -> str:
        """Return what the numbers of a quantity are, a key of `dpsub.reproduce.privacy.KINDS`, "" if not of privacy.

        By default their names decide; an artefact whose names say less, or something else, says it here.
        """
        return number_kind(column, variant)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        """Return the figure and the numbers plotted in it (figures only); call it within `figures.styled`.

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


@dataclass(frozen=True)
class OutputDirs:
    """Where files go: tables, figures, comparisons, and what depends on the clock.

    Parameters
    ----------
    tables, figures, comparison, timings : Path
        Folders; each paper gets a folder of its own inside.
    """

    tables: Path
    figures: Path
    comparison: Path
    timings: Path

    @classmethod
    def under(cls, results: Path) -> OutputDirs:
        """Return the folders of a results tree."""
        return cls(
            results / "tables", results / "figures", results / "comparison", results / "run" / "timings" / "tables"
        )

    def files(self, artefact: Artefact) -> dict[str, Path]:
        """Return the files that `build` writes for `artefact`, by role."""
        forms = FIGURE_FORMATS if artefact.kind == "figure" else ("md", "tex")
        place = self.timings if artefact.timed else self.figures if artefact.kind == "figure" else self.tables
        found = {form: place / artefact.paper / f"{artefact.name}.{form}" for form in ("csv", *forms)}
        return {**found, "comparison": self.comparison / artefact.paper / f"{artefact.name}.csv"}


def printed_rows(artefact: Artefact, folder: Path | None = None) -> pd.DataFrame:
    """Return the printed numbers of `artefact`, and of others that it quotes; empty if the paper prints none."""
    names = [artefact.name, *sorted({name for name, _, _ in artefact.quotes().values()})]
    known = printed_numbers.artefacts(artefact.paper, folder)
    frames = [printed_numbers.load(artefact.paper, name, folder) for name in dict.fromkeys(names) if name in known]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(printed_numbers.COLUMNS))


def build(artefact: Artefact, records: Records, published: pd.DataFrame, dirs: OutputDirs) -> dict[str, Path]:
    """Make an artefact and write its files, each under a temporary name first; the same input gives the same bytes.

    Parameters
    ----------
    artefact : Artefact
        What to make.
    records : mapping of str to DataFrame
        Rows of each experiment, with `variant` and `data`.
    published : DataFrame
        Printed numbers, as `printed_rows` returns them; rows of other artefacts are used only where quoted.
    dirs : OutputDirs
        Where to write.

    Returns
    -------
    dict of str to Path
        The files written, by role ("csv", "md", "tex", "pdf", "png", "comparison").

    Raises
    ------
    DataError
        If records are missing or contradict each other; nothing is written then.
    """
    values, labels = artefact.values(records), artefact.labels(records)
    own = published[published["artefact"] == artefact.name]
    # Notes of clock times hold clock times; the comparison itself leaves their values out.
    comparison = compare(own, values.assign(note="") if artefact.timed else values, labels)
    content: dict[str, bytes] = {"comparison": csv_bytes(comparison)}
    if artefact.kind == "figure":
        from dpsub.reproduce.figures import (  # a table does without matplotlib, which takes long to load
            figure_bytes,
            styled,
        )

        with styled():
            figure, numbers = artefact.draw(records)
        content |= {form: figure_bytes(figure, form) for form in FIGURE_FORMATS} | {"csv": csv_bytes(numbers)}
    else:
        cells = table_cells(pd.concat([own, _quoted(artefact, published)]), values, comparison, artefact.formulas())
        shown = ", ".join(label for label in labels if label != "real")
        content["csv"] = csv_bytes(cells)
        layout = None if artefact.kind == "claims" else artefact.layout
        content["md"] = markdown(artefact.caption, layout, cells, shown).encode()
        content["tex"] = latex(artefact.caption, layout, cells, shown).encode()
    files = dirs.files(artefact)
    for role, path in files.items():
        replace_file(path, content[role])
    return files


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Return `frame` as CSV with shortest round-trip floats."""
    return frame.to_csv(index=False, lineterminator="\n").encode()


def _quoted(artefact: Artefact, published: pd.DataFrame) -> pd.DataFrame:
    """Return the printed numbers that stand elsewhere in the paper, under the keys of `artefact`."""
    found = {tuple(row[name] for name in ("artefact", "row", "column")): row for row in published.to_dict("records")}
    rows = [
        {**found[source], "row": row, "column": column}
        for (row, column), source in artefact.quotes().items()
        if source in found
    ]
    return pd.DataFrame(rows, columns=published.columns)
