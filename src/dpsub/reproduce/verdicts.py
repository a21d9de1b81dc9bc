"""The comparison of printed numbers with ours: the rule of each kind of number, the verdicts, the
expected verdicts."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from dpsub import checks
from dpsub.errors import ArgumentError, DataError
from dpsub.reproduce.published import STATEMENTS, Printed, parse_printed, read_csv, row_texts

VARIANTS = ("stated", "as_done", "consistent", "rigorous")
JUDGED = ("stated", "as_done")
LEVEL = 0.01  # of the family of one artefact, by Holm's procedure
COLUMNS = (
    "paper",
    "artefact",
    "row",
    "column",
    "printed",
    "kind",
    "variant",
    "value",
    "lower",
    "upper",
    "verdict",
    "erratum",
    "note",
)
KEY = ("paper", "artefact", "row", "column", "variant")
CELL = KEY[:-1]
VALUE_COLUMNS = (
    "column",
    "variant",
    "value",
    "standard_error",
    "replicates",
    "lower",
    "upper",
    "note",
)
EXPECTED = "expected_verdicts.csv"  # in the folder of each paper
AS_EXPECTED = "no verdict changed"
AS_DONE = "_as_done"

# kind -> (verdict if it agrees, verdict if only `as_done` agrees, verdict if it does not agree)
WORDS = {
    "exact": ("reproduced", "reproduced_as_done", "differs"),
    "monte_carlo": ("within_error", "within_error_as_done", "differs"),
    "real_data": ("within_error", "within_error_as_done", "differs"),
    "extreme": ("within_error", "within_error_as_done", "differs"),
    "claim": ("holds", "reproduced_as_done", "fails"),
    "privacy": ("holds", "reproduced_as_done", "fails"),  # by the paper's formula; see TRUTH
}
# of a statement about privacy, by its rigorous value; else it is open
TRUTH = {1.0: "proved", 0.0: "refuted"}
OPEN = "open"
AGREEING = ("reproduced", "within_error", "holds", "proved")
FAILING = ("differs", "fails", "refuted")
"""Verdicts that contradict the paper; all others neither confirm nor contradict what it prints."""
NOT_COMPARED = "not_compared"
UNJUDGED = {"timing": "reported", "structure": "structure_only"}
# begins the note of a number that is not compared because a stand-in was used
NOT_REAL = "not the real data"
TIMINGS = "clock times are in the run's folder of timings"
REDUCED = "no value in this run, which may be of reduced size"
ONLY_SHOWN = "computed only as {}, and only what is stated or as_done is judged"
NO_SETTING = "this run has no setting of ours for it: the number shown is the printed one"


def spoken(verdict: str) -> str:
    """Return a verdict as readers see it: "within_error_as_done" is "within error only as done"."""
    return verdict.replace(AS_DONE, " only as done").replace("_", " ")


def not_real(labels: Collection[str]) -> str:
    """Return the note of a number that is made from other data than the paper's, "" if its labels
    do not say so."""
    return f"{NOT_REAL} but {', '.join(sorted(labels))}" if labels else ""


def stand_in(note: str) -> str:
    """Return the label of the data that such a note names, "" if there is none."""
    label = re.search(rf"(?:^|; ){NOT_REAL}(?: but|:.*? is) ([^;]+)", note)
    return label[1] if label else ""


def rounds_into(value: float, printed: Printed, zero: float = 0.0) -> bool:
    """Return whether `value` lies in the half-unit interval of a printed number, both ends
    included.

    The shortest decimal that gives `value` back is compared in decimal arithmetic: a tie such as
    0.0645 agrees with both 0.064 and 0.065, and nothing beyond a tie agrees. `zero` is the
    half-width of a bare "0", which has no last place: the resolution below which the paper's method
    cannot tell a number from zero, or 0.
    """
    if not math.isfinite(value):
        return False
    # in binary arithmetic a tie would fall to either side by the last bit of `value`
    half = printed.half_unit or Decimal(repr(float(zero)))
    return abs(Decimal(repr(float(value))) - printed.value) <= half


def two_sided_p(
    value: float, printed: Printed, standard_error: float, paper_error: float
) -> tuple[float, float]:
    """Return z and its two-sided normal p-value for a printed Monte Carlo number.

    z = max(0, |value - printed| - half unit) / sqrt(standard_error² + paper_error²): only what
    rounding cannot explain counts, so the test is conservative. If both errors are 0, z is 0 or
    infinite.
    """
    if rounds_into(value, printed):
        return 0.0, 1.0
    # the printed number may stand for anything in its half-unit interval: its nearest end counts
    gap = float(abs(Decimal(repr(float(value))) - printed.value) - printed.half_unit)
    error = math.hypot(standard_error, paper_error)
    z = gap / error if error > 0 else math.inf
    return z, float(2 * special.ndtr(-z))


def spread_error(spread: float, replicates: float) -> float:
    """Return the normal-theory standard error of a standard deviation, s / sqrt(2 (R - 1))."""
    return abs(spread) / math.sqrt(2 * (replicates - 1))


def paper_error(
    standard_error: float, replicates: float, paper_replicates: float, paper_spread: float
) -> float:
    """Return the standard error of a printed estimate.

    That is s_paper / sqrt(R_paper) where the paper prints the standard deviation behind a mean
    (else NaN); elsewhere ours, rescaled: standard_error sqrt(R / R_paper). With R_paper = 1 this is
    our standard deviation over replicates.
    """
    if math.isfinite(paper_spread):
        return paper_spread / math.sqrt(paper_replicates)
    if standard_error == 0:
        return 0.0
    if not replicates >= 1:
        raise ArgumentError(
            f"an estimate must come with its number of replicates, got {replicates}"
        )
    return standard_error * math.sqrt(replicates / paper_replicates)


def holm(p_values: Sequence[float], level: float = LEVEL) -> np.ndarray:
    """Return a mask of the hypotheses that Holm's step-down procedure rejects at family-wise
    `level`.

    The i-th smallest p-value (i = 0, 1, ...) is rejected while p <= level / (count - i).
    """
    p = checks.finite_array("p_values", p_values, ndim=1)
    order = np.argsort(p, kind="stable")
    bounds = level / np.arange(p.size, 0, -1)
    rejected = np.zeros(p.size, dtype=bool)
    # step-down: the first p-value that is not rejected keeps all larger ones
    rejected[order] = np.logical_and.accumulate(p[order] <= bounds)
    return rejected


def compare(
    published: pd.DataFrame,
    values: pd.DataFrame,
    keys: Sequence[str],
    data_labels: Collection[str] = (),
) -> pd.DataFrame:
    """Compare the printed numbers of one artefact with ours.

    Rules (docs/verdicts.md): an exact number must round into the printed one's half-unit
    interval; a Monte Carlo number, or one on real data, must lie within both standard errors and
    the rounding of it, judged by Holm's procedure at 1 % over the artefact; an extreme must lie in
    the interval that our row gives from the exact law; a claim must have the value 1; a setting
    must be the one that we use. `stated` and `as_done` are judged, others are shown.

    A statement about privacy is judged by what is true of the mechanism, in its `rigorous` row:
    proved (value 1), refuted (0) or open (NaN, or no such row). The rows of the paper's formula get
    that verdict as well; the formula's own answer stays in the value and, where the two disagree,
    in the note. An open statement that fails by the formula fails.

    Parameters
    ----------
    published, keys : DataFrame, sequence of str
        Printed numbers as `dpsub.reproduce.published.load` returns them, and their key columns as
        `row` names them.
    values : DataFrame
        `keys` and `VALUE_COLUMNS`; a row without value says in its note why. Rows that the paper
        does not print are ignored. The column `configured`, if there, says which values are
        settings of the configuration.
    data_labels : collection of str
        Labels of the data behind `values`; empty where all data are simulated. Numbers on real data
        are compared only if every label is "real".

    Returns
    -------
    DataFrame
        Columns `COLUMNS`, then `keys`, in the order of `published`, variants in the order of
        `VARIANTS`.

    Raises
    ------
    DataError
        If values come twice, or name an unknown variant.
    """
    cell_columns = [*keys, "column"]
    # A misspelt variant would be neither judged nor shown.
    for variant in set(values["variant"]) - set(VARIANTS):
        raise DataError(f"a variant must be one of {', '.join(VARIANTS)}, got {variant!r}")
    for _, row in values[values.duplicated([*cell_columns, "variant"])].head(1).iterrows():
        raise DataError(
            f"each value must come once, got {', '.join(row[[*cell_columns, 'variant']])} "
            "twice; remove one"
        )
    # An artefact of ours prints nothing that could be compared.
    if published.empty:
        return pd.DataFrame(columns=list(dict.fromkeys([*COLUMNS, *keys])))
    not_the_papers = not_real({*data_labels} - {"", "real"})
    printed = published.assign(row=row_texts(published, keys), number=range(len(published)))
    ours = values.rename(columns={"note": "our_note", "replicates": "our_replicates"})
    ours = ours.assign(configured=values.get("configured", False))
    matched = printed.merge(ours, on=cell_columns, validate="one_to_many")
    matched = matched.assign(computed=True, lacks=REDUCED)
    # a printed number without an answer is not dropped: it gets a row that says that it has none
    judged = matched.loc[matched["variant"].isin(JUDGED), "number"]
    lacking = printed[~printed["number"].isin(judged)].assign(variant="stated", computed=False)
    lacking = lacking.assign(lacks=_why_lacking(lacking, matched))
    table = pd.concat([lacking, matched], ignore_index=True).reindex(columns=matched.columns)
    table["rank"] = table["variant"].map(VARIANTS.index)
    table = table.sort_values(["number", "rank"], ignore_index=True)
    # each number by itself first; Holm's procedure and the other variants come after
    rows = ({str(name): value for name, value in row.items()} for row in table.to_dict("records"))
    cells = [_judge(row, not_the_papers) for row in rows]
    answers = pd.DataFrame(
        cells, columns=["value", "lower", "upper", "verdict", "agrees", "p_value", "words"]
    )
    # Three values: agrees, does not, and nothing was judged.
    answers = answers.astype({"verdict": object, "agrees": object})
    # The family of Holm's procedure is one variant of one artefact: the chance that any of its
    # numbers is wrongly said to differ is at most `LEVEL`.
    for variant in JUDGED:
        family = (table["variant"] == variant) & answers["p_value"].notna()
        answers.loc[family, "agrees"] = ~holm(answers.loc[family, "p_value"].tolist())
    agrees = answers.pop("agrees")
    # a number that agrees as stated needs no other reading of the paper
    stated = set(table.loc[(table["variant"] == "stated") & agrees.eq(True), "number"])
    alone = (table["variant"] == "as_done") & ~table["number"].isin(stated)
    answers["verdict"] = [
        verdict if pd.isna(agree) else WORDS[kind][int(only) if agree else 2]
        for verdict, agree, kind, only in zip(
            answers["verdict"], agrees, table["kind"], alone, strict=True
        )
    ]
    _put_truth_first(table, answers)
    # where a number is not compared, the reason comes before what the transcription notes
    reason_first = answers["verdict"] == NOT_COMPARED
    first = table["note"].where(~reason_first, answers["words"])
    second = answers["words"].where(~reason_first, table["note"])
    answers["note"] = ["; ".join(filter(None, pair)) for pair in zip(first, second, strict=True)]
    transcribed = table[[name for name in (*COLUMNS, *keys) if name not in answers]]
    return pd.concat([transcribed, answers], axis=1)[list(dict.fromkeys([*COLUMNS, *keys]))]


def _why_lacking(lacking: pd.DataFrame, matched: pd.DataFrame) -> list[str]:
    """Return the reason why each number without a judged value is not compared; the artefact may
    compute it in other variants alone."""
    others = matched.groupby("number")["variant"].agg(" and ".join).to_dict()
    known = (others.get(number) for number in lacking["number"])
    return [ONLY_SHOWN.format(variants) if variants else REDUCED for variants in known]


def _put_truth_first(table: pd.DataFrame, answers: pd.DataFrame) -> None:
    """Replace the verdict on a formula of the paper about privacy by the verdict of the rigorous
    row."""
    privacy, rigorous = table["kind"] == "privacy", table["variant"] == "rigorous"
    proved = privacy & rigorous
    numbers, words = table.loc[proved, "number"], answers.loc[proved, "verdict"]
    truth = dict(zip(numbers, words, strict=True))
    by_formula = privacy & table["variant"].isin(JUDGED) & (answers["verdict"] != NOT_COMPARED)
    for position in table.index[by_formula]:
        verdict = truth.get(table.loc[position, "number"], OPEN)
        holds = answers.loc[position, "value"] == 1
        # the paper's own formula contradicts the statement, which says more than "open"
        if verdict == OPEN and not holds:
            continue
        answers.loc[position, "verdict"] = verdict
        if verdict != TRUTH[float(holds)]:
            both = f"{'holds' if holds else 'fails'} by the paper's formula, {verdict}"
            notes = (both, answers.loc[position, "words"])
            answers.loc[position, "words"] = "; ".join(filter(None, notes))


def _judge(row: Mapping[str, Any], not_the_papers: str) -> dict[str, Any]:
    """Return the columns that follow from a printed number and ours alone: Monte Carlo numbers get
    a p-value, others a verdict."""
    kind, note = row["kind"], "" if pd.isna(row["our_note"]) else str(row["our_note"])
    value, lower, upper = (float(row[name]) for name in ("value", "lower", "upper"))
    answer: dict[str, Any] = {"value": value, "lower": lower, "upper": upper, "words": note}
    # Clock times are not even recorded here: a comparison must not change from run to run.
    if kind == "timing":
        return {"verdict": UNJUDGED[kind], "words": note or TIMINGS}
    if kind == "real_data" and not_the_papers and not stand_in(note):
        answer["words"] = "; ".join(filter(None, (not_the_papers, note)))
    if kind == "structure":
        return {**answer, "verdict": UNJUDGED[kind]}
    if kind == "privacy" and row["variant"] == "rigorous":
        return {**answer, "verdict": TRUTH.get(value, OPEN)}
    if math.isnan(value):
        if kind == "setting" and not row["computed"]:
            printed = float(parse_printed(row["printed"]).value)
            return {**answer, "value": printed, "verdict": "used", "words": NO_SETTING}
        return {**answer, "verdict": NOT_COMPARED, "words": answer["words"] or row["lacks"]}
    if kind == "setting":
        if rounds_into(value, parse_printed(row["printed"])):
            return {**answer, "verdict": "used"}
        # a setting of the configuration must be the paper's; one that is read off records may be
        # that of a run of reduced size
        verdict = "differs" if row["configured"] is True else NOT_COMPARED
        return {**answer, "verdict": verdict, "words": f"this run uses {value:g}"}
    if kind in ("monte_carlo", "real_data"):
        return _weigh(row, answer)
    if row["variant"] not in JUDGED:
        return {**answer, "verdict": "shown"}
    if kind in STATEMENTS:
        return {**answer, "agrees": value == 1}
    number = parse_printed(row["printed"])
    if kind == "extreme":
        return {**answer, "agrees": lower <= float(number.value) <= upper}
    # for a printed "0" the column `spread` holds the resolution of the paper's method
    zero = 0.0 if math.isnan(row["spread"]) else row["spread"]
    return {**answer, "agrees": rounds_into(value, number, zero)}


def _weigh(row: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Give a Monte Carlo number its interval and, where it is judged, its p-value."""
    column, value, words = row["column"], answer["value"], answer["words"]
    error, replicates = float(row["standard_error"]), float(row["our_replicates"])
    # a standard deviation has no estimate of its own error among our records
    # By the normal theory, for want of the replicates themselves.
    if math.isnan(error) and (column == "sd" or column.endswith("_sd")) and replicates >= 2:
        error = spread_error(value, replicates)
    if math.isnan(answer["lower"]) and math.isnan(answer["upper"]):
        answer |= {"lower": value - 1.96 * error, "upper": value + 1.96 * error}
    if row["variant"] not in JUDGED:
        return {**answer, "verdict": "shown"}
    if words.startswith(NOT_REAL):
        return {**answer, "verdict": NOT_COMPARED}
    if math.isnan(error):
        reason = "no standard error: this run has too few replicates"
        return {**answer, "verdict": NOT_COMPARED, "words": reason}
    # a paper that does not say how often it repeated is taken to have run once: its error is then
    # largest, and the judgement mildest
    theirs = 1.0 if math.isnan(row["replicates"]) else row["replicates"]
    their_error = paper_error(error, replicates, theirs, row["spread"])
    z, p_value = two_sided_p(value, parse_printed(row["printed"]), error, their_error)
    if z > 0:
        words = "; ".join(filter(None, (words, f"z = {z:.2g}")))
    return {**answer, "p_value": p_value, "words": words}


def overall(by_variant: Mapping[str, str]) -> str:
    """Return the verdict of a cell from those of its variants: `stated`, or as done where only that
    agrees."""
    # As done counts only where stated does not agree: then its verdict says so itself.
    if by_variant.get("as_done", "").endswith(AS_DONE):
        return by_variant["as_done"]
    return by_variant.get("stated") or by_variant.get("as_done", "")


def overall_by_cell(table: pd.DataFrame, cell: Sequence[str] = CELL) -> dict[tuple[str, ...], str]:
    """Return the verdict of each cell of a comparison, or of expected verdicts, by the columns
    `cell`."""
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    rows = table[[*cell, "variant", "verdict"]].itertuples(index=False, name=None)
    for *key, variant, verdict in rows:
        cells.setdefault(tuple(key), {})[variant] = verdict
    return {key: overall(by_variant) for key, by_variant in cells.items()}


@dataclass(frozen=True)
class Tally:
    """Counts of printed numbers and statements by verdict, each counted once."""

    confirmed: int
    as_done: int
    """Numbers that come out only as done, not as stated."""
    failing: int
    open: int
    shown: int
    """Clock times, numbers of data that are not compared, properties of figures: shown, not
    judged."""
    settings: int
    not_compared: int

    @property
    def judged(self) -> int:
        """Number of those that were put to a computation that could contradict them."""
        return self.confirmed + self.as_done + self.failing + self.open

    @property
    def every(self) -> int:
        return self.judged + self.shown + self.settings + self.not_compared


def tally(verdicts: Iterable[str]) -> Tally:
    """Count verdicts, one per printed number; this is how every page counts."""
    names = list(verdicts)
    return Tally(
        confirmed=sum(name in AGREEING for name in names),
        as_done=sum(name.endswith(AS_DONE) for name in names),
        failing=sum(name in FAILING for name in names),
        open=names.count(OPEN),
        shown=sum(name in (*UNJUDGED.values(), "shown") for name in names),
        settings=names.count("used"),
        not_compared=names.count(NOT_COMPARED),
    )


def reconciled(papers: Tally, beyond: int) -> str:
    """Return one line that adds up the numbers of the papers, and those `beyond` them, to all that
    are compared."""
    return (
        f"{papers.judged} judged ({papers.confirmed} confirmed, {papers.as_done} only as done, "
        f"{papers.failing} differ or fail, {papers.open} open) + {papers.shown} shown + "
        f"{papers.settings} settings + {papers.not_compared} not compared + {beyond} answers of "
        f"other accountants = {papers.every + beyond}"
    )


def read(path: Path) -> pd.DataFrame:
    """Return a comparison: columns `COLUMNS`, three of them numbers."""
    frame = _read(path, COLUMNS)
    numbers = ("value", "lower", "upper")
    return frame.assign(**{name: pd.to_numeric(frame[name]).astype(float) for name in numbers})


def read_expected(papers: Path) -> pd.DataFrame:
    """Return the verdict that each printed number is known to get, from the folders of the papers.

    Returns
    -------
    DataFrame
        Columns `KEY` and `verdict`, as text.

    Raises
    ------
    DataError
        If a file has other columns.
    """
    frames = []
    for path in sorted(papers.glob(f"*/{EXPECTED}")):
        frames.append(_read(path, (*KEY[1:], "verdict")))
        frames[-1].insert(0, "paper", path.parent.name)
    if not frames:
        return pd.DataFrame(columns=[*KEY, "verdict"], dtype=str)
    return pd.concat(frames, ignore_index=True)


def write_expected(accepted: pd.DataFrame, papers: Path) -> list[Path]:
    """Write expected verdicts into the folder of each paper that `accepted` has rows of; return the
    files."""
    files = []
    for paper, rows in accepted.groupby("paper", sort=False):
        files.append(papers / str(paper) / EXPECTED)
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        rows.drop(columns="paper").to_csv(files[-1], index=False, lineterminator="\n")
    return files


def _read(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    frame = read_csv(path, "verdicts must be in a file, got no {path}; run the comparison first")
    if tuple(frame.columns) != columns:
        raise DataError(
            f"{path.name} must have the columns {', '.join(columns)}, got "
            f"{', '.join(frame.columns)}"
        )
    return frame


def _excused(found: pd.DataFrame) -> pd.Series:
    """Return the rows that could not be compared because a stand-in replaced the real data."""
    return (found["verdict"] == NOT_COMPARED) & found["note"].str.startswith(NOT_REAL)


def expected_changes(found: pd.DataFrame, expected: pd.DataFrame) -> pd.DataFrame:
    """Return the verdicts of a comparison that differ from the expected ones.

    A number that could not be compared because a stand-in replaced the real data is accepted in
    place of any verdict.

    Parameters
    ----------
    found : DataFrame
        A comparison.
    expected : DataFrame
        As `read_expected` returns it.

    Returns
    -------
    DataFrame
        For each change the columns `KEY`, `expected`, `found` ("" where a side has no such row) and
        `note`.
    """
    # whoever cannot obtain a data set must still be able to check all other verdicts
    excused = found.loc[_excused(found), list(CELL)].drop_duplicates().assign(excused=True)
    both = found[[*KEY, "verdict", "note"]].merge(
        expected, "outer", list(KEY), suffixes=("_found", "_expected")
    )
    both = both.merge(excused, "left", list(CELL))
    missing = both["verdict_found"].isna()
    stand_in = both["excused"].notna() & (missing | (both["verdict_found"] == NOT_COMPARED))
    both["note"] = both["note"].mask(missing, "the comparison has no such row")
    both = both.rename(columns={"verdict_found": "found", "verdict_expected": "expected"})
    both = both.fillna({"found": "", "expected": ""})
    changed = (both["found"] != both["expected"]) & ~stand_in
    return both.loc[changed, [*KEY, "expected", "found", "note"]]


def accepted(found: pd.DataFrame, present: pd.DataFrame) -> pd.DataFrame:
    """Return the verdicts of a comparison as the expected ones.

    Numbers that a stand-in kept from being compared have none: some data sets cannot be obtained by
    everybody.

    Parameters
    ----------
    found : DataFrame
        A comparison.
    present : DataFrame
        The verdicts expected so far.

    Raises
    ------
    DataError
        If a stand-in replaced data on which a number was judged before: it would never be judged
        again.
    """
    excused = _excused(found)
    judged = set(present[list(CELL)].itertuples(index=False, name=None))
    not_compared = found.loc[excused, list(CELL)].itertuples(index=False, name=None)
    lost = sum(cell in judged for cell in not_compared)
    if lost:
        raise DataError(
            f"expected verdicts must come from a run on the real data, got {lost} numbers not "
            "compared; provide the data and run again"
        )
    return found.loc[~excused, [*KEY, "verdict"]].astype(str)


def check(found: pd.DataFrame, expected: pd.DataFrame, published: Sequence[str]) -> str:
    """Return in plain text the verdicts of a comparison that are not the expected ones.

    Parameters
    ----------
    found, expected : DataFrame
        As `read` and `read_expected` return them.
    published : sequence of str
        Artefacts ("demo/table1") that are made at published settings; of the others nothing is
        expected.
    """

    def of_published(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[(frame["paper"] + "/" + frame["artefact"]).isin(published)]

    judged = of_published(found)
    changes = expected_changes(judged, of_published(expected))
    return as_text(changes, of=len(judged))


def as_text(changes: pd.DataFrame, of: int) -> str:
    """Return changes `of` so many verdicts, "not compared" among them, as a table in plain text:
    one line each, under a line with their number."""
    if changes.empty:
        return f"{AS_EXPECTED} of {of} at published settings"
    lines = [tuple(changes.columns), *changes.replace("", "-").itertuples(index=False, name=None)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = []
    for line in lines:
        cells = [text.ljust(width) for text, width in zip(line, widths, strict=True)]
        table.append("  ".join(cells).rstrip())
    head = (
        f"{len(changes)} of {of} verdicts changed at published settings; if they are right, run "
        "accept_verdicts.py"
    )
    return "\n".join([head, *table])
