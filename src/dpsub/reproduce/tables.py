"""Declarations of tables: their records, the statistics of these, and the keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks
from dpsub.errors import ArgumentError, DataError, PlanError
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.statistics import Estimate, estimate_row
from dpsub.reproduce.verdicts import VARIANTS, not_real

Row = dict[str, Any]
Record = Mapping[str, Any]
Note = str | Callable[[pd.DataFrame], str]
Where = Mapping[str, object]
ADDED = ("variant", "data")
"""Columns that every experiment's records have besides those that it declares."""


@dataclass(frozen=True)
class Column:
    """Numbers of one quantity: from each group of records that share their keys, one value."""

    source: str | Callable[[pd.DataFrame], float | Estimate]
    """Record column that is read, or a function of the group."""
    statistic: Callable[[Any], Estimate] | None = None
    """Summary of the column's numbers in the group; by default the number of the group's only
    record."""
    lower: str = ""
    upper: str = ""
    standard_error: str = ""
    replicates: str = ""
    """Record columns of interval, error and repetitions, where the records themselves hold them."""
    note: Note | None = None
    """Format string over the group's first record, or a function of the group; by default the
    part's."""
    keys: Mapping[str, object] = field(default_factory=dict)
    """Constant key fields of this quantity alone ({"statistic": "median"})."""
    drop: bool = False
    """Leave out NaN before the statistic is taken."""
    reference: Mapping[str, object] = field(default_factory=dict)
    """Key fields of the group that this one is paired with by replicate ({"sampler": "poisson"});
    the value is then the mean difference. A group without such a partner, or with less than two
    pairs, gives no row."""
    empty: bool = False
    """Keep rows without a number, whose note says why."""

    @property
    def plain(self) -> bool:
        """Whether the number is the value of one record, unchanged."""
        return isinstance(self.source, str) and self.statistic is None and not self.reference

    @property
    def reads(self) -> tuple[str, ...]:
        """Record columns that the declaration names."""
        named = (self.source, self.lower, self.upper, self.standard_error, self.replicates)
        return tuple(name for name in named if isinstance(name, str) and name)


def mean(source: str, **more: Any) -> Column:
    """Return the column of means over replicates, with standard errors."""
    return Column(source, statistics.mean, **more)


def deviation(source: str, **more: Any) -> Column:
    """Return the column of standard deviations over replicates."""
    return Column(source, statistics.deviation, **more)


def root_mean_square(source: str, **more: Any) -> Column:
    """Return the column of root mean squares over replicates."""
    return Column(source, statistics.root_mean_square, **more)


def shared(source: str, **more: Any) -> Column:
    """Return the column of values that all records of a group have in common, refused where they
    differ."""

    def only(values: Any) -> Estimate:
        if len(set(values)) > 1:
            raise DataError(
                f"records of one row must share their {source}, got {min(values)} and "
                f"{max(values)}; add the key that tells them apart, or take a statistic"
            )
        return Estimate(float(values[0]), math.nan, 0)

    return Column(source, only, **more)


def difference(source: str, reference: Mapping[str, object], **more: Any) -> Column:
    """Return the column of mean differences from the group with the fields `reference`, paired by
    replicate."""
    return Column(source, reference=reference, **more)


@dataclass(frozen=True)
class Part:
    """Rows of a table that come from the records of one experiment.

    Records are filtered, ordered as the table says, and grouped by variant and by those keys of the
    table that are columns of the records; each group gives one value of each quantity.
    """

    experiment: str
    columns: Mapping[str, Any]
    """Quantity -> record column, function of a group, or `Column`; several under one name in a
    tuple. A quantity may be a format string over the group's first record
    ("{quantity}_c_lower")."""
    where: Where = field(default_factory=dict)
    """Record column -> the value that it must have, a tuple of such values, or a predicate of the
    column."""
    variants: tuple[str, ...] = ()
    """Variants of the records; by default all."""
    variant: str = ""
    """Variant of the rows where it is not that of the records."""
    keys: Mapping[str, str | None] = field(default_factory=dict)
    """Key field -> record column of another name; None if the records' column of that name is no
    key here."""
    constants: Mapping[str, object] = field(default_factory=dict)
    """Key field -> its value in all rows."""
    each: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Key field -> {value of the field: record column}: each column in turn stands under the
    field's name."""
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    """Adds columns to the filtered records, or makes others of them, before they are grouped."""
    note: Note = ""
    """Format string over the group's first record, or a function of the group."""

    @property
    def quantities(self) -> tuple[tuple[str, Column], ...]:
        """Names of the quantities and their columns, in order."""
        pairs = list[tuple[str, Column]]()
        for name, given in self.columns.items():
            for source in given if isinstance(given, tuple) else (given,):
                pairs.append((name, source if isinstance(source, Column) else Column(source)))
        return tuple(pairs)

    @property
    def reads(self) -> tuple[str, ...]:
        """Record columns that the declaration names, without those that `prepare` may have made."""
        # Filters act before `prepare`: their columns must be the experiment's own.
        named = [*self.where]
        for columns in self.each.values():
            named += columns.values()
        if self.prepare is None:
            named += [name for name in self.keys.values() if name]
            for _, column in self.quantities:
                named += [name for name in column.reads if name not in self.each]
        return tuple(dict.fromkeys(named))

    def key_columns(self, keys: Iterable[str], columns: Iterable[str]) -> dict[str, str]:
        """Return key field -> record column, for the fields that the records give."""
        named = {
            key: self.keys.get(key, key)
            for key in keys
            if key not in self.constants and key not in self.each
        }
        return {
            key: source
            for key, source in named.items()
            if source is not None and source in set(columns)
        }


class Table(Artefact):
    """A table, declared: its parts, one after another."""

    kind = "table"
    parts: ClassVar[tuple[Part, ...]] = ()
    order: ClassVar[tuple[str, ...]] = ()
    """Record columns by which records are ordered: `variant` and ranked ones by rank, others
    ascending; ties stay."""
    together: ClassVar[tuple[str, ...]] = ()
    """Key fields whose rows are brought together at the end: ranked fields by rank, others as they
    first appear."""
    absent: ClassVar[Mapping[str, object]] = {}
    """Key field -> the value that says that a row has no such field ({"b": 0}); "" and NaN always
    say so."""
    genuine_labels: ClassVar[tuple[str, ...]] = ("", "real", "simulated")
    """Labels of data, of a record or else of its file, that do not stand in for the paper's."""
    words: ClassVar[Mapping[str, Mapping[object, object]]] = {}
    """Key field -> {value in the records: value in the rows}."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "experiments" not in cls.__dict__:
            cls.experiments = tuple(dict.fromkeys(part.experiment for part in cls.parts))

    def ranks(self) -> Mapping[str, Sequence[object]]:
        """Return the order of the values of columns and key fields that have one of their own."""
        return {}

    def rows(self, records: Records) -> list[Row]:
        rows = [row for part in self.parts for row in self.rows_of(part, records)]
        return gathered(rows, self.together, self.ranks()) if self.together else rows

    def rows_of(self, part: Part, records: Records) -> Iterator[Row]:
        """Yield the rows of one part."""
        frame = chosen(self.needed(records, part.experiment, variants=part.variants), part.where)
        if part.prepare is not None:
            frame = part.prepare(frame)
        frame = ordered(frame, self.order, self.ranks())
        sources = part.key_columns(self.keys, frame.columns)
        # Two key fields may read one column: pandas groups by it once.
        by = list(dict.fromkeys(["variant", *sources.values()]))
        groups: dict[Any, pd.DataFrame] = dict(iter(frame.groupby(by, sort=False, dropna=False)))
        for name, group in groups.items():
            values = dict(zip(by, name, strict=True))
            fields = {
                key: self.words.get(key, {}).get(values[source], values[source])
                for key, source in sources.items()
            }
            # Columns that stand side by side in the records stand one below the other in the table.
            for more, columns in _each(part.each):
                rows = group.assign(**{field: group[source] for field, source in columns.items()})
                for quantity, column in part.quantities:
                    partner = None
                    if column.reference:
                        other = {
                            sources.get(key, key): value for key, value in column.reference.items()
                        }
                        partner = groups.get(tuple({**values, **other}.values()))
                        # the reference itself has no difference from itself
                        if partner is None or partner is group:
                            continue
                    # A difference is paired by replicate with the group that differs in the
                    # reference fields alone.
                    estimate = _estimate(column, rows, partner)
                    if estimate is None or (math.isnan(estimate.value) and not column.empty):
                        continue
                    key = self._present({**fields, **part.constants, **more, **column.keys})
                    variant = part.variant or str(values["variant"])
                    yield self._row(part, key, quantity, column, variant, estimate, rows)

    def _row(
        self,
        part: Part,
        key: Row,
        quantity: str,
        column: Column,
        variant: str,
        estimate: Estimate,
        records: pd.DataFrame,
    ) -> Row:
        """Return the row of one quantity of one group of records."""
        # a number that is taken as it stands must be the only one: of two, one would be dropped
        if column.plain and len(records) > 1:
            key_text = "; ".join(f"{field}={value}" for field, value in key.items())
            raise DataError(
                f"each value of an artefact comes once, got {key_text!r}, {quantity!r} "
                f"{len(records)} times; look for records of two runs in one folder, or "
                f"add the key of {self.identifier} that tells them apart"
            )
        first = {str(name): value for name, value in records.iloc[0].items()}
        note = part.note if column.note is None else column.note
        text = note.format_map(first) if isinstance(note, str) else note(records)
        # The label of the data goes first: it decides whether the number is compared at all.
        other_data = not_real(_labels(records) - {*self.genuine_labels})
        text = "; ".join(filter(None, (other_data, text)))
        row = estimate_row(key, quantity.format_map(first), variant, estimate, text)
        # A number that stands in a record has no repetitions: 0 would look like a lack of them.
        row["replicates"] = estimate.replicates or math.nan
        for name in ("lower", "upper", "standard_error", "replicates"):
            source = getattr(column, name)
            if source:
                row[name] = first[source]
        return row

    def _present(self, fields: Row) -> Row:
        """Return the fields that are there, in the order of `keys`."""
        there = {
            name: value
            for name, value in fields.items()
            if not _missing(value, self.absent.get(name))
        }
        return {name: there[name] for name in self.keys if name in there}

    def check(self, columns: Mapping[str, Iterable[str]]) -> None:
        """Refuse a declaration that the experiments, whose record `columns` are given by name,
        cannot fill."""
        given = set()
        for part in self.parts:
            try:
                known = {*columns[checks.one_of("experiment", part.experiment, columns)], *ADDED}
                for name in part.reads:
                    checks.one_of(f"column of {part.experiment}", name, known)
            except ArgumentError as problem:
                raise PlanError(f"{self.identifier}: {problem}") from None
            given |= {
                *part.constants,
                *part.each,
                *(key for _, column in part.quantities for key in column.keys),
            }
            given |= set(self.keys) if part.prepare else set(part.key_columns(self.keys, known))
        for key in self.keys:
            if self.parts and key not in given:
                raise PlanError(
                    f"{self.identifier}: no part gives the key {key!r}; name its "
                    "record column in `keys`"
                )


def chosen(frame: pd.DataFrame, where: Where) -> pd.DataFrame:
    """Return the rows whose columns have the given value, one of a tuple of values, or fulfil a
    predicate."""
    for name, wanted in where.items():
        values = frame[name]
        if callable(wanted):
            frame = frame[wanted(values)]
        else:
            frame = frame[values.isin(wanted if isinstance(wanted, tuple) else (wanted,))]
    return frame


def ordered(
    frame: pd.DataFrame, by: Sequence[str], ranks: Mapping[str, Sequence[object]]
) -> pd.DataFrame:
    """Return `frame` in the order of the columns `by`; values without a rank stand behind, ties
    stay as they are."""
    by = [name for name in by if name in frame.columns]
    if not by:
        return frame
    known = {"variant": VARIANTS, **ranks}
    keys = {}
    for name in by:
        keys[name] = frame[name]
        if name in known:
            # Unranked values become NaN, which pandas sorts last.
            ranks_of_values = {value: rank for rank, value in enumerate(known[name])}
            keys[name] = frame[name].map(ranks_of_values)
    return frame.loc[pd.DataFrame(keys).sort_values(by, kind="stable").index]


def gathered(
    rows: list[Row], together: Sequence[str], ranks: Mapping[str, Sequence[object]]
) -> list[Row]:
    """Return the rows with those of equal fields `together` next to each other, ranked fields by
    rank."""
    ranked = {
        name: {value: rank for rank, value in enumerate(ranks[name])}
        for name in together
        if name in ranks
    }
    others = [name for name in together if name not in ranked]
    seen: dict[tuple[object, ...], int] = {}

    def place(row: Row) -> tuple[int, ...]:
        first = seen.setdefault(tuple(row.get(name) for name in others), len(seen))
        return (*(known.get(row.get(name), len(known)) for name, known in ranked.items()), first)

    return sorted(rows, key=place)


def _each(each: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Yield key fields and the record column that stands for each of them."""
    if not each:
        yield {}, {}
    for name, columns in each.items():
        for value, source in columns.items():
            yield {name: value}, {name: source}


def _estimate(column: Column, group: pd.DataFrame, partner: pd.DataFrame | None) -> Estimate | None:
    """Return the number of a group, None if too few replicates of the partner pair with its
    own."""
    if not isinstance(column.source, str):
        number = column.source(group)
        return number if isinstance(number, Estimate) else Estimate(float(number), math.nan, 0)
    if partner is not None:
        both = [frame.set_index("replicate")[column.source] for frame in (group, partner)]
        # Only replicates that both have: an unpaired one would bring its whole spread in.
        pairs = pd.concat(both, axis=1, join="inner").dropna()
        if len(pairs) < 2:
            return None
        own, reference = pairs.iloc[:, 0].to_numpy(), pairs.iloc[:, 1].to_numpy()
        return statistics.paired_difference(own, reference)
    values = group[column.source]
    if column.drop:
        values = values.dropna()
    if column.statistic is not None:
        if not len(values):
            return Estimate(math.nan, math.nan, 0)
        return column.statistic(values.to_numpy())
    return Estimate(float(values.iloc[0]), math.nan, 0)


def _labels(records: pd.DataFrame) -> set[str]:
    """Return the labels of data: each record's, or else its file's."""
    named = [name for name in ("data_label", "data") if name in records]
    return set(records[named[0]]) if named else set()


def _missing(value: object, absent: object) -> bool:
    return (
        value == ""
        or (isinstance(value, float) and math.isnan(value))
        or (absent is not None and value == absent)
    )
