"""Numbered tables and figures: each makes values and drawings from records; nothing heavy is
computed here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpsub.errors import DataError
from dpsub.files import replace_file
from dpsub.reproduce import published
from dpsub.reproduce.labels import number_kind
from dpsub.reproduce.layout import Layout, latex, markdown, table_cells
from dpsub.reproduce.papers import of_module
from dpsub.reproduce.published import key_text
from dpsub.reproduce.verdicts import COLUMNS, VALUE_COLUMNS, VARIANTS, compare, stand_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Records = Mapping[str, pd.DataFrame]
FIGURE_FORMATS = ("pdf", "png")
NUMERIC = ("value", "standard_error", "replicates", "lower", "upper")


def values_frame(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """Return the values of an artefact: key fields as they come up, each as `key_text` writes it,
    then `VALUE_COLUMNS`.

    Columns that a row does not give are NaN, or "" for a text.
    """
    rows = list(rows)
    keys = list(dict.fromkeys(name for row in rows for name in row if name not in VALUE_COLUMNS))
    complete = []
    for given in rows:
        texts = {name: key_text(given[name]) if name in given else "" for name in keys}
        complete.append({"note": "", **given, **texts})
    frame = pd.DataFrame(complete, columns=[*keys, *VALUE_COLUMNS])
    # An empty or partly empty column would be of objects, and its CSV of another form.
    frame = frame.astype(dict.fromkeys(NUMERIC, "float64"))
    # Two values of one key would be averaged or drawn twice without a word.
    for _, row in frame[frame.duplicated([*keys, "column", "variant"])].head(1).iterrows():
        key = ", ".join(row[[*keys, "column", "variant"]])
        raise DataError(
            f"each value of an artefact comes once, got {key} twice; look for records of two "
            "runs in one folder"
        )
    return frame


@dataclass(frozen=True)
class Quote:
    """A printed number of another artefact of the paper that stands in this table too: key fields
    and `column` here, the other artefact's name, key fields and `column` there."""

    place: Mapping[str, str]
    artefact: str
    source: Mapping[str, str]


class Artefact:
    """One numbered table or figure, or the claims of a paper's text."""

    paper: ClassVar[str]
    """Key of the paper ("demo"): the folder in which the class stands."""
    name: ClassVar[str]
    """Name within the paper ("table1"); the registry knows it as "demo/table1"."""
    kind: ClassVar[str]
    """Kind of the files that `build` writes: "table", "figure" or "claims"."""
    title: ClassVar[str]
    """Its heading in the report, as the paper numbers it: "Table 8. Experiment 3: logistic
    regression on Adult"."""
    caption: ClassVar[str]
    """One or two sentences: contents, units, the meaning of intervals."""
    experiments: ClassVar[tuple[str, ...]] = ()
    """Experiments whose records it reads."""
    timed: ClassVar[bool] = False
    """True if its values are clock times, which differ from run to run and are kept apart."""
    keys: ClassVar[tuple[str, ...]] = ()
    """Names of the key fields that tell its values apart, as they follow each other in its
    tables."""
    settings: ClassVar[Mapping[tuple[str, ...], str]] = {}
    """Settings that the paper fixes and prints: (value of each key, then the column) -> place in
    the configuration, such as "composition.table8.n_compositions"; compared with the configured
    setting itself."""
    setting_variants: ClassVar[Mapping[tuple[str, ...], tuple[str, ...]]] = {}
    """Variants under which such a setting stands, where that is not `stated` alone."""
    layout: ClassVar[Layout] = Layout()
    """Placement of the values in the printed table."""
    statements: ClassVar[tuple[str, ...]] = ()
    """Beginnings of the identifiers of the paper's statements about it (`"table8_"`), which are
    judged with it."""
    attacks: ClassVar[Mapping[str, str]] = {}
    """Quantity printed as an upper bound -> the quantity whose rigorous number an attack
    attains."""

    def __init_subclass__(cls) -> None:
        # An artefact belongs to the folder in which it stands: no class says it twice.
        if paper := of_module(cls.__module__):
            cls.paper = paper

    @property
    def identifier(self) -> str:
        """Name in the registry, "paper/name"."""
        return f"{self.paper}/{self.name}"

    def rows(self, records: Records) -> list[dict[str, Any]]:
        """Return rows of key fields, `column`, `variant`, `value` and other columns of
        `VALUE_COLUMNS`."""
        return []

    def values(self, records: Records) -> pd.DataFrame:
        """Return the numbers that can be compared with printed ones, as `values_frame` makes
        them."""
        return values_frame(self.rows(records))

    def formulas(self) -> Sequence[Mapping[str, str]]:
        """Return formulas in LaTeX that stand in the table like printed values: key fields,
        `column`, `printed`."""
        return ()

    def quotes(self) -> Sequence[Quote]:
        """Return the printed numbers of other artefacts that stand in this table."""
        return ()

    def declared(self) -> Iterable[tuple[str, ...]]:
        """Return the places at which a number must be printed, as (value of each key, column): by
        default the settings."""
        return self.settings

    def number_kind(self, column: str, variant: str) -> str:
        """Return the kind of a quantity's numbers, a key of `dpsub.reproduce.labels.KINDS`; "" if
        it is no privacy number.

        By default the names of quantities decide; an artefact overrides this where they say less,
        or something else.
        """
        return number_kind(column, variant)

    def stand_in(self, cell: Mapping[str, str], variant: str) -> str:
        """Return the label of the data behind a number where they are not the paper's, as its note
        says; else ""."""
        return stand_in(cell["note"])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        """Return the figure and the numbers plotted in it (figures only); call it within
        `figures.styled`."""
        raise DataError(
            f"only a figure is drawn, got {self.identifier!r} of kind {self.kind!r}; use its values"
        )

    def needed(
        self, records: Records, experiment: str, *, variants: Iterable[str] = ()
    ) -> pd.DataFrame:
        """Return the records of `experiment`, of `variants` where given; an error if there are
        none."""
        if experiment not in records or records[experiment].empty:
            have = ", ".join(sorted(records)) or "none"
            raise DataError(
                f"{self.identifier} needs the records of {experiment!r}, got {have}; "
                "run that experiment"
            )
        frame = records[experiment]
        if wanted := tuple(variants):
            frame = frame[frame["variant"].isin(wanted)]
            if frame.empty:
                have = ", ".join(sorted(records[experiment]["variant"].unique()))
                raise DataError(
                    f"{self.identifier} needs {experiment!r} in the variant {' or '.join(wanted)}, "
                    f"got {have}; run that variant"
                )
        return frame

    def labels(self, records: Records) -> tuple[str, ...]:
        """Return the data labels ("real", "synthetic", ...) of the records it reads; empty for
        simulated data."""
        labels = set[str]()
        for name in self.experiments:
            if name in records:
                labels.update(records[name]["data"].dropna().astype(str))
        return tuple(sorted(labels - {""}))


@dataclass(frozen=True)
class OutputDirs:
    """Output folders: tables, figures, comparisons, and files that depend on the clock, by
    paper."""

    tables: Path
    figures: Path
    comparison: Path
    timings: Path

    @classmethod
    def under(cls, results: Path) -> OutputDirs:
        """Return the folders of a results tree."""
        return cls(
            tables=results / "tables",
            figures=results / "figures",
            comparison=results / "comparison",
            timings=results / "run/timings/tables",
        )

    def files(self, artefact: Artefact) -> dict[str, Path]:
        """Return the files that `build` writes for `artefact`, by role."""
        forms = FIGURE_FORMATS if artefact.kind == "figure" else ("md", "tex")
        folder = self.figures if artefact.kind == "figure" else self.tables
        if artefact.timed:
            folder = self.timings
        files = dict[str, Path]()
        for form in ("csv", *forms):
            files[form] = folder / artefact.paper / f"{artefact.name}.{form}"
        files["comparison"] = self.comparison / artefact.paper / f"{artefact.name}.csv"
        return files


def printed_rows(artefact: Artefact, folder: Path | None = None) -> pd.DataFrame:
    """Return the printed numbers of `artefact` in the columns paper, artefact, its keys,
    `published.FIELDS`.

    Raises
    ------
    DataError
        If the file has a key that the artefact does not declare, or lacks a number that it does.
    """
    name = f"{artefact.paper}/published/{artefact.name}.csv"
    # All artefacts have the same columns, with or without printed numbers, so that they can be
    # compared in one way.
    columns = list(dict.fromkeys(["paper", "artefact", *artefact.keys, *published.FIELDS]))
    if artefact.name in published.artefacts(artefact.paper, folder):
        numbers = published.load(artefact.paper, artefact.name, folder)
        keys = published.key_names(numbers)
        # The keys of the file may be fewer, but in the order of the artefact: rows are matched by
        # them.
        if keys != [key for key in artefact.keys if key in keys]:
            raise DataError(
                f"the keys of {name} must be of {', '.join(artefact.keys) or 'none'}, in that "
                f"order, got {', '.join(keys)}; mend them, or declare them in "
                f"{artefact.identifier}"
            )
        frame = numbers.reindex(columns=columns, fill_value="")
    else:
        frame = pd.DataFrame(columns=columns)
    # A declared number that is not printed would never be compared, and nobody would notice.
    known = set(frame[[*artefact.keys, "column"]].itertuples(index=False, name=None))
    for declared_cell in artefact.declared():
        if declared_cell not in known:
            raise DataError(
                f"what {artefact.identifier} declares must be printed, got no row "
                f"{', '.join(declared_cell)} in {name}; add the row, or correct the declaration"
            )
    return frame


def quoted_rows(artefact: Artefact, folder: Path | None = None) -> pd.DataFrame:
    """Return the printed numbers that stand elsewhere in the paper, under the keys of
    `artefact`."""
    rows = []
    for quote in artefact.quotes():
        theirs = published.load(artefact.paper, quote.artefact, folder)
        # A number that the paper prints twice stands once in `published`.
        is_quoted = (theirs[list(quote.source)] == pd.Series(quote.source)).all(axis=1)
        numbers = theirs.loc[is_quoted, ["printed", "erratum"]].to_dict("records")
        rows += [{**quote.place, **row} for row in numbers]
    return pd.DataFrame(rows)


def setting_values(artefact: Artefact, settings: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return the configured settings that `artefact` compares with printed ones, as values."""
    rows = []
    for key, path in artefact.settings.items():
        value: Any = settings
        for name in path.split("."):
            if value is settings and name not in value:
                break  # this run is without the experiment
            try:
                value = value[int(name) if isinstance(value, list | tuple) else name]
            except IndexError:
                break  # lists of a run of reduced size are shorter
            except (KeyError, ValueError, TypeError):
                raise DataError(
                    f"{artefact.identifier} must name a setting that is there, got {path!r}"
                ) from None
        else:
            fields = dict(zip((*artefact.keys, "column"), key, strict=True))
            variants = artefact.setting_variants.get(key, ("stated",))
            rows += [{**fields, "variant": variant, "value": value} for variant in variants]
    return values_frame(rows).assign(configured=True)


def build(
    artefact: Artefact,
    records: Records,
    printed: pd.DataFrame,
    dirs: OutputDirs,
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    quoted: pd.DataFrame | None = None,
) -> dict[str, Path]:
    """Make an artefact and write its files, each under a temporary name first; the same input gives
    the same bytes.

    It takes the rows of each experiment, with `variant` and `data`, printed numbers as
    `printed_rows` and `quoted_rows` return them, and the settings of experiments by name. If
    records are missing or contradict each other, nothing is written.
    """
    # All content is made before the first file is written: a failure leaves the old files as they
    # are.
    values, labels = all_values(artefact, records, settings or {}), artefact.labels(records)
    # Notes of clock times hold clock times; the comparison itself leaves their values out.
    judged = values.assign(note="") if artefact.timed else values
    # Made for figures too: their values are few, but they are compared like those of a table.
    comparison = compare(printed, judged, artefact.keys, labels)
    content: dict[str, bytes] = {"comparison": csv_bytes(comparison[list(COLUMNS)])}
    if artefact.kind == "figure":
        # a table does without matplotlib, slow to load
        from dpsub.reproduce.figures import figure_bytes, styled

        with styled():
            figure, numbers = artefact.draw(records)
        content |= {form: figure_bytes(figure, form) for form in FIGURE_FORMATS}
        content["csv"] = csv_bytes(numbers)
    else:
        beside = [pd.DataFrame(artefact.formulas()), pd.DataFrame() if quoted is None else quoted]
        cells = table_cells(artefact.keys, printed, values, comparison, *beside)
        content["csv"] = csv_bytes(cells)
        # Claims are long sentences: they are listed and not laid out in a grid.
        layout = None if artefact.kind == "claims" else artefact.layout
        shown = annotated(artefact, cells, printed)
        content["md"] = markdown(artefact.caption, layout, shown).encode()
        content["tex"] = latex(artefact.caption, layout, shown).encode()
    files = dirs.files(artefact)
    for role, path in files.items():
        replace_file(path, content[role])
    return files


def annotated(artefact: Artefact, cells: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of a table with the columns that decide how they are shown.

    Added are the `printed_kind`, whether an attack has `refuted` the printed bound, and for each
    variant `<variant>_side`, the side on which a number bounds the privacy loss, and
    `<variant>_data`, the label of data that stand in for the paper's.
    """
    cell_columns = [name for name in [*artefact.keys, "column"] if name in cells]
    cells = cells.assign(refuted=refuted(artefact, cells))
    if len(printed):
        kinds = printed[[*cell_columns, "kind"]].rename(columns={"kind": "printed_kind"})
        cells = cells.merge(kinds, "left", cell_columns)
    rows = [{str(name): value for name, value in row.items()} for row in cells.to_dict("records")]
    more = {}
    for name in (name for name in VARIANTS if name in cells):
        # Bounds are rounded to their side when they are shown: the kind of a number says to which.
        more[f"{name}_side"] = [artefact.number_kind(row["column"], name) for row in rows]
        more[f"{name}_data"] = [artefact.stand_in(row, name) for row in rows]
    return cells.assign(**more)


def refuted(artefact: Artefact, cells: pd.DataFrame) -> list[bool]:
    """Return for each cell whether an attack exceeds its printed upper bound."""
    if "rigorous" not in cells:
        return [False] * len(cells)
    keys = [name for name in artefact.keys if name in cells]
    rows = list(cells[[*keys, "column"]].itertuples(index=False, name=None))
    attained = dict(zip(rows, cells["rigorous"], strict=True))
    return [
        bool(printed)
        and column in artefact.attacks
        and float(printed) < attained.get((*key, artefact.attacks[column]), math.nan)
        for (*key, column), printed in zip(rows, cells["printed"], strict=True)
    ]


def all_values(
    artefact: Artefact, records: Records, settings: Mapping[str, Mapping[str, Any]] | None = None
) -> pd.DataFrame:
    """Return the values of `artefact` and its settings, with all its keys."""
    computed = artefact.values(records).assign(configured=False)
    configured = setting_values(artefact, settings or {})
    # pandas would take the types of an empty frame for those of its columns
    frames = [frame for frame in (computed, configured) if len(frame)] or [computed]
    values = pd.concat(frames, ignore_index=True)
    for key in published.key_names(values):
        if key not in artefact.keys:
            raise DataError(
                f"{artefact.identifier} must declare its key {key!r}, got "
                f"{', '.join(artefact.keys)}"
            )
    # A key that no row has is there all the same: printed numbers are matched by all keys.
    values = values.assign(**{key: "" for key in artefact.keys if key not in values.columns})
    values = values.fillna(dict.fromkeys(artefact.keys, ""))
    return values[[*artefact.keys, *VALUE_COLUMNS, "configured"]]


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Return `frame` as CSV with shortest round-trip floats."""
    return frame.to_csv(index=False, lineterminator="\n").encode()
