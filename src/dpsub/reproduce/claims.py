"""Claims as declarations: a statement or number of a paper's text is one row, with the criterion
that decides it.

Kinds of criterion: `ordered`, `increasing`, `below`, `near`, `agree`, `everywhere`, `number`,
`every` (several at once), and any function of the records.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.errors import ArgumentError, PlanError
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.labels import display
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.statistics import Estimate
from dpsub.reproduce.tables import ADDED, chosen

Frames = Mapping[str, pd.DataFrame]
STATED = ("stated",)
PAPERS = ("stated", "as_done", "consistent")
RIGOROUS = ("rigorous",)
EQUAL = 1e-9  # relative: two formulas of one number, evaluated in different ways


class MissingRecordsError(Exception):
    """The records that a claim is about are missing from this run; the message is the reason."""


@dataclass(frozen=True)
class Finding:
    """Answer of a criterion: whether the statement holds (or the number asked for), a note of the
    evidence, and the range of the numbers."""

    holds: bool | float
    note: str = ""
    lower: float = math.nan
    upper: float = math.nan


def truth(proved: Iterable[bool], refuted: Iterable[bool], note: str) -> Finding:
    """Return the truth of a statement about privacy: 1 proved, 0 refuted, NaN open.

    Parameters
    ----------
    proved : iterable of bool
        Of each case, whether certified ends give the statement: where it is a guarantee, an upper
        bound of the loss.
    refuted : iterable of bool
        Of each case, whether a certified bound contradicts it: where it is a guarantee, a lower
        bound, an attack. One case suffices.
    note : str
        What decides.
    """
    # One refuted case decides, whatever else is open; without it every case must be proved.
    if any(refuted):
        return Finding(0.0, note)
    return Finding(1.0 if all(proved) else math.nan, note)


Answer = Finding | Estimate | float
Ask = Callable[[Frames], Answer]


def of_variant(records: Frames, experiment: str, variant: str) -> pd.DataFrame:
    """Return the records of an experiment in one variant; MissingRecordsError if there are none."""
    frame = records.get(experiment, pd.DataFrame({"variant": []}))
    frame = frame[frame["variant"] == variant]
    if frame.empty:
        raise MissingRecordsError(f"this run has no {variant} records of {experiment}")
    return frame


def pick(frame: pd.DataFrame, **fields: object) -> pd.DataFrame:
    """Return the rows in which every field has the given value, is one of a tuple, or fulfils a
    predicate.

    No such row, or a value of a tuple that none has, is a `MissingRecordsError`.
    """
    for name, wanted in fields.items():
        frame = chosen(frame, {name: wanted})
        # A predicate asks for whatever there is; a value that is named must be there.
        if callable(wanted):
            if frame.empty:
                raise MissingRecordsError(f"this run has no records of the {name} asked for")
            continue
        values = wanted if isinstance(wanted, tuple) else (wanted,)
        if absent := [str(value) for value in values if not (frame[name] == value).any()]:
            raise MissingRecordsError(f"this run has no records of {name} {', '.join(absent)}")
    return frame


def per_sampler(values: pd.Series, form: str = "g") -> str:
    """Return "label value, label value", without NaN."""
    known = values[values.notna()]
    return ", ".join(
        f"{display('sampler', str(name), plain=True)} {value:{form}}"
        for name, value in known.items()
    )


@dataclass(frozen=True)
class Numbers:
    """The numbers that a criterion is about: a column of one experiment's records, filtered and
    summarised."""

    experiment: str
    """Its records, or the name under which a claim's `shared` records stand."""
    value: str | Callable[[pd.DataFrame], pd.Series]
    """Record column, or a function of the filtered records that gives one number for each
    record."""
    by: tuple[str, ...] = ()
    """Record columns, besides the sampler where samplers are compared, that tell the numbers
    apart."""
    where: Mapping[str, object] = field(default_factory=dict)
    """Record column -> the value that it must have, a tuple of values that must all be there, or a
    predicate."""
    statistic: str = "first"
    """Summary of what `by` does not tell apart, a name that pandas' groupby knows ("first", "mean",
    "std", "max")."""
    then: Callable[[pd.Series], pd.Series] | None = None
    """Makes other numbers of the summaries, indexed by `by`."""
    samplers: tuple[str, ...] = ()
    """Columns of the table of samplers; by default those that the criterion names."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Record columns that the declaration names."""
        return (*self.by, *self.where, *((self.value,) if isinstance(self.value, str) else ()))

    def records(self, frames: Frames) -> pd.DataFrame:
        """Return the filtered records, the numbers in the column `number`."""
        frame = pick(frames[self.experiment], **self.where)
        numbers = frame[self.value] if isinstance(self.value, str) else self.value(frame)
        return frame.assign(number=numbers)

    def series(self, frames: Frames) -> pd.Series:
        """Return the numbers by `by`, or one per record without it."""
        frame = self.records(frames)
        if self.by:
            return self._summary(frame, self.by)
        return frame.set_index("sampler")["number"] if "sampler" in frame else frame["number"]

    def table(self, frames: Frames, samplers: Sequence[str]) -> pd.DataFrame:
        """Return the numbers with one row for each combination of `by` and one column for each
        sampler, complete."""
        # A sampler that the run lacks is an error, not a missing column of the comparison.
        columns = list(self.samplers or samplers)
        of_samplers = pick(self.records(frames), sampler=tuple(columns))
        numbers = self._summary(of_samplers, (*self.by, "sampler"))
        wide = numbers.unstack("sampler") if numbers.index.nlevels > 1 else numbers.to_frame().T
        wide = wide[columns]
        # a comparison with NaN is false without a word: it must not decide a claim
        if wide.isna().to_numpy().any():
            raise MissingRecordsError(
                f"this run lacks {self.value} of a sampler at some {', '.join(self.by)}"
            )
        return wide

    def _summary(self, frame: pd.DataFrame, by: tuple[str, ...]) -> pd.Series:
        numbers = frame.groupby(list(by))["number"].agg(self.statistic)
        # One replicate has no spread: NaN would pass as "no violation".
        if self.statistic in ("std", "sem") and bool(numbers.isna().any()):
            raise MissingRecordsError("this run has one replicate only")
        return numbers if self.then is None else self.then(numbers)


class Listed(pd.Series):
    """Numbers that a format string writes as "name value, name value"."""

    def __format__(self, form: str) -> str:
        return per_sampler(self, form)


@dataclass(frozen=True)
class Criterion:
    """Decision of a claim by the records of one variant, with the numbers that it reads."""

    ask: Ask
    numbers: tuple[Numbers, ...]

    def __call__(self, frames: Frames) -> Answer:
        return self.ask(frames)


P = ParamSpec("P")


def _criterion(ask: Callable[Concatenate[Frames, P], Answer]) -> Callable[P, Criterion]:
    """Turn a function of records and declarations into a function of the declarations alone, which
    returns the criterion."""

    @wraps(ask)
    def declared(*args: P.args, **named: P.kwargs) -> Criterion:
        given = (*args, *named.values())
        # the columns of a criterion are known without records, so that a plan can check them
        numbers = [value for value in given if isinstance(value, Numbers)]
        for criterion in given:
            if isinstance(criterion, Criterion):
                numbers += criterion.numbers
        return Criterion(lambda frames: ask(frames, *args, **named), tuple(numbers))

    return declared


@_criterion
def ordered(
    frames: Frames,
    numbers: Numbers,
    chain: str,
    note: str = "{n} points",
    *,
    anywhere: bool = False,
) -> Finding:
    """Ask whether samplers are in the order of `chain`, everywhere, or `anywhere`.

    Its groups stand between "<" and "=": "must_ow < must_wo = wr < wor poisson"; every member of a
    group is compared with every member of the next one. "=" is equality up to the rounding of two
    formulas. The note's fields: `n` rows, `holding` and `failing` ones, `percent` of them that
    hold, `first` and `last` row by sampler ("{first:.4f}"), `at_first` and `at_last` their keys.
    """
    groups = [group.split() for group in re.split("[<=]", chain)]
    wide = numbers.table(frames, [name for group in groups for name in group])
    holds = pd.Series(True, wide.index)
    signs = re.findall("[<=]", chain)
    for (left, right), sign in zip(itertools.pairwise(groups), signs, strict=True):
        for lower, higher in itertools.product(left, right):
            if sign == "=":
                # Two formulas of one number, evaluated in different ways: equal up to their
                # rounding.
                holds &= np.isclose(wide[lower], wide[higher], rtol=EQUAL, atol=0)
            else:
                holds &= wide[lower] < wide[higher]
    text = note.format(
        **_counts(holds),
        first=Listed(wide.iloc[0]),
        last=Listed(wide.iloc[-1]),
        at_first=wide.index[0],
        at_last=wide.index[-1],
    )
    return Finding(bool(holds.any() if anywhere else holds.all()), text)


@_criterion
def increasing(
    frames: Frames, numbers: Numbers, along: str, note: str, *, falling: bool = False
) -> Finding:
    """Ask whether the numbers rise (or fall) strictly along one of their `by` columns, all others
    fixed.

    The note's fields: `least`, `largest` change from one value to the next, `first` and `last`
    number.
    """
    # Sorted by the key: records stand in the order in which they were computed.
    values = numbers.series(frames).sort_index()
    others = [name for name in numbers.by if name != along]
    groups = values.groupby(level=others) if others else values.groupby(lambda _: 0)
    # the first value of a group has no change; a NaN elsewhere must count as a failure
    changes = groups.diff()[groups.cumcount() > 0]
    if changes.empty:
        raise MissingRecordsError(f"this run has one value of {along} only")
    text = note.format(
        least=changes.min(), largest=changes.max(), first=values.iloc[0], last=values.iloc[-1]
    )
    steps = -changes if falling else changes
    return Finding(bool(steps.gt(0).all()), text)


@_criterion
def below(
    frames: Frames, numbers: Numbers, limit: float | Numbers, note: str, *, strict: bool = True
) -> Finding:
    """Ask whether all numbers lie below a limit, which may itself be a number of the records.

    The note's fields: `n`, `holding`, `failing`, `least`, `largest`, `at_largest` (its key),
    `limit`.
    """
    values = numbers.series(frames)
    level = float(limit.series(frames).iloc[0]) if isinstance(limit, Numbers) else limit
    holds = values < level if strict else values <= level
    at_largest = values.idxmax() if values.notna().any() else ""
    if values.index.name == "sampler":
        at_largest = display("sampler", str(at_largest), plain=True)
    text = note.format(
        **_counts(holds),
        least=values.min(),
        largest=values.max(),
        at_largest=at_largest,
        limit=level,
    )
    return Finding(bool(holds.all()), text)


@_criterion
def near(
    frames: Frames,
    numbers: Numbers,
    printed: float | Callable[[], float],
    note: str,
    *,
    tolerance: float = 0.0,
    relative: float = 0.0,
    factor: float = 1.0,
    bounds: bool = False,
) -> Finding:
    """Ask whether the range of the numbers meets a printed one, give or take a tolerance or up to a
    factor.

    The note's fields: `n`, `least`, `largest`, `first`, `printed`, `ratio` (first to printed). With
    `bounds` the finding has the range as its bounds.
    """
    values = numbers.series(frames)
    target = float(printed() if callable(printed) else printed)
    width = tolerance + relative * abs(target)
    low, high = float(values.min()), float(values.max())
    # the range of the numbers and that of what is printed must have a point in common
    # Tolerance and factor both widen: the more generous one decides.
    smallest, largest = min(target - width, target / factor), max(target + width, target * factor)
    holds = low <= largest and smallest <= high
    first = float(values.iloc[0])
    text = note.format(
        n=len(values), least=low, largest=high, first=first, printed=target, ratio=first / target
    )
    return Finding(holds, text, low, high) if bounds else Finding(holds, text)


def agree(
    one: Numbers,
    other: str,
    note: str,
    *,
    tolerance: float = 0.0,
    relative: bool = False,
    at_most: bool = False,
) -> Criterion:
    """Ask whether two columns of the same records agree, or the first is at most the second, up to
    a tolerance.

    The tolerance is of the deviation, with `relative` of the deviation over max(1, |other|). The
    note's fields: `n`, `failing`, `holding`, `largest` deviation, and those of the worst record
    (`worst`).
    """

    def ask(frames: Frames) -> Finding:
        frame = one.records(frames)
        deviations = frame["number"] - frame[other]
        if not at_most:
            deviations = deviations.abs()
        if relative:
            # Relative above 1, absolute below: near 0 a quotient says nothing.
            deviations = deviations / frame[other].abs().clip(lower=1.0)
        holds = deviations <= tolerance
        worst = frame.iloc[int(np.argmax(deviations.to_numpy()))].to_dict()
        text = note.format(**_counts(holds), largest=deviations.max(), worst=worst)
        return Finding(bool(holds.all()), text)

    return Criterion(ask, (replace(one, by=(*one.by, other)),))  # the second column is read, too


@_criterion
def everywhere(frames: Frames, numbers: Numbers, note: str = "{holding} of {n}") -> Finding:
    """Ask whether the numbers, read as yes or no, are all yes; the note's fields: `n`, `holding`,
    `failing`."""
    holds = numbers.series(frames).astype(bool)
    return Finding(bool(holds.all()), note.format(**_counts(holds)))


@_criterion
def every(frames: Frames, *criteria: Criterion) -> Finding:
    """Ask whether several criteria all hold; their notes follow each other."""
    answers = [criterion(frames) for criterion in criteria]
    findings = [answer for answer in answers if isinstance(answer, Finding)]
    notes = [finding.note for finding in findings if finding.note]
    return Finding(all(finding.holds for finding in findings), ", ".join(notes))


@_criterion
def number(frames: Frames, numbers: Numbers, statistic: str = "first") -> float:
    """Ask for one number: the first record's, or a summary of all ("min", "max")."""
    values = numbers.records(frames)["number"]
    return float(values.iloc[0] if statistic == "first" else values.agg(statistic))


def _counts(holds: pd.Series) -> dict[str, float]:
    n, good = len(holds), int(holds.sum())
    return {"n": n, "holding": good, "failing": n - good, "percent": 100 * good / n}


@dataclass(frozen=True)
class Claim:
    """A statement or a number of the text."""

    claim: str
    """Its identifier among the printed claims."""
    place: str
    """Place in the paper ("Section 4.2.1")."""
    ask: Ask
    """Its criterion, a `Criterion` or a function; it returns a `Finding`, or the number that the
    text prints."""
    experiments: tuple[str, ...] = ()
    """Experiments whose records a plain function takes, one variant at a time; a `Criterion` knows
    its own."""
    column: str = "holds"
    """Name of the quantity where the paper prints a number."""
    shared: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Further records, always of the same variant: name -> (experiment, variant)."""
    variants: tuple[str, ...] = PAPERS
    """Variants for which it is decided, where the records have them."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Experiments whose records of the given variant are read."""
        if self.experiments or not isinstance(self.ask, Criterion):
            return self.experiments
        return tuple(
            dict.fromkeys(
                numbers.experiment
                for numbers in self.ask.numbers
                if numbers.experiment not in self.shared
            )
        )

    @property
    def reads(self) -> tuple[tuple[str, str], ...]:
        """Experiments and record columns that the declaration names; "" for the experiment
        itself."""
        experiments = [*self.needs, *(name for name, _ in self.shared.values())]
        numbers = self.ask.numbers if isinstance(self.ask, Criterion) else ()
        # A criterion names shared records by the claim's name for them; the plan knows experiments.
        of = {name: place[0] for name, place in self.shared.items()}
        named = [
            (of.get(declared.experiment, declared.experiment), column)
            for declared in numbers
            for column in declared.reads
        ]
        return (*((name, "") for name in experiments), *named)

    def answers(self, records: Records) -> Iterator[dict[str, Any]]:
        """Yield a row for each variant; where `stated` lacks records, its row has no value and says
        why."""
        for variant in self.variants:
            base = {"claim": self.claim, "column": self.column, "variant": variant}
            try:
                frames = {name: of_variant(records, name, variant) for name in self.needs}
                frames |= {name: of_variant(records, *place) for name, place in self.shared.items()}
                answer = self.ask(frames)
            except MissingRecordsError as reason:
                # The printed claim is about this variant: that it cannot be judged is shown with
                # the reason. Others are simply not there.
                if variant == "stated":
                    yield {**base, "note": str(reason)}
                continue
            if isinstance(answer, Finding):
                ends = {"lower": answer.lower, "upper": answer.upper}
                yield {**base, "value": float(answer.holds), **ends, "note": answer.note}
            elif isinstance(answer, Estimate):
                yield {**base, **asdict(answer)}
            else:
                yield {**base, "value": float(answer)}


def about_privacy(
    claim: str, place: str, ask: Callable[[Frames], Finding], *experiments: str
) -> tuple[Claim, ...]:
    """Return a claim about privacy in two variants, judged by the same records: as stated, where
    nothing contradicts it, and rigorous, where it is proved, refuted or open."""

    def stated(frames: Frames) -> Finding:
        found = ask(frames)
        return replace(found, holds=found.holds != 0)

    shared = {name: (name, "stated") for name in experiments}
    return (
        Claim(claim, place, stated, experiments, variants=STATED),
        Claim(claim, place, ask, variants=RIGOROUS, shared=shared),
    )


def with_truth(*claims: Claim) -> tuple[Claim, ...]:
    """Return statements about privacy, judged by exact losses, each with its rigorous side.

    The criterion is the same: where the printed formula keeps to the exact losses it is proved,
    else refuted. So its tolerance must exceed what is unknown of them.
    """
    exact = [
        replace(
            claim,
            experiments=(),
            variants=RIGOROUS,
            # The same records answer both criteria: what is stated, put to the exact losses within
            # them.
            shared={**{name: (name, "stated") for name in claim.needs}, **claim.shared},
        )
        for claim in claims
    ]
    return (*claims, *exact)


@dataclass(frozen=True)
class Setting:
    """A setting that the paper fixes, next to the setting of this run.

    `path` is the experiment, then names of nested settings or positions in lists:
    "composition.figure_s2.n_compositions.0".
    """

    claim: str
    column: str
    path: str
    variants: tuple[str, ...] = STATED

    @property
    def reads(self) -> tuple[tuple[str, str], ...]:
        """The experiment, without columns."""
        return ((self.path.partition(".")[0], ""),)


class Claims(Artefact):
    """The claims of a paper, declared, one row each."""

    name = "claims"
    kind = "claims"
    title = "Statements and numbers of the text"
    keys: ClassVar[tuple[str, ...]] = ("claim",)
    layout = Layout(stub=("claim",), heads=("column",))
    claims: ClassVar[tuple[Claim | Setting, ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        statements = [claim for claim in cls.claims if isinstance(claim, Claim)]
        fixed = [claim for claim in cls.claims if isinstance(claim, Setting)]
        # Settings are compared like printed numbers; claims are asked.
        cls.settings = {(setting.claim, setting.column): setting.path for setting in fixed}
        cls.setting_variants = {
            (setting.claim, setting.column): setting.variants for setting in fixed
        }
        # Declared by the criteria themselves, so that no list of experiments can lag behind them.
        if "experiments" not in cls.__dict__:
            cls.experiments = tuple(
                dict.fromkeys(name for claim in statements for name, _ in claim.reads)
            )

    def rows(self, records: Records) -> list[dict[str, Any]]:
        return [
            row
            for claim in self.claims
            if isinstance(claim, Claim)
            for row in claim.answers(records)
        ]

    def declared(self) -> Iterable[tuple[str, ...]]:
        return [(claim.claim, claim.column) for claim in self.claims]

    def check(self, columns: Mapping[str, Iterable[str]]) -> None:
        """Refuse claims that the experiments, whose record `columns` are given by name, cannot
        answer."""
        seen = set()
        for claim in self.claims:
            try:
                for experiment, column in claim.reads:
                    # Misspelt columns are found when the plan is made, and not after hours of
                    # computing.
                    known = columns[checks.one_of("experiment", experiment, columns)]
                    if column:
                        checks.one_of(f"column of {experiment}", column, {*known, *ADDED})
            except ArgumentError as problem:
                raise PlanError(f"{self.identifier}, claim {claim.claim}: {problem}") from None
            for variant in claim.variants:
                key = (claim.claim, claim.column, variant)
                if key in seen:
                    raise PlanError(
                        f"{self.identifier}: each claim comes once, got "
                        f"{claim.claim!r} twice; remove one"
                    )
                seen.add(key)
