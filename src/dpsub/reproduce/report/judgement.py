"""Judgements of tables, figures and lists of claims: sentences from their verdicts, and a
colour."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd

from dpsub.reproduce import published
from dpsub.reproduce.artefact import Artefact
from dpsub.reproduce.report.cells import in_order
from dpsub.reproduce.report.numbers import of_printed
from dpsub.reproduce.verdicts import AS_DONE, CELL, FAILING, NOT_COMPARED, UNJUDGED, Tally, tally

NO_FINDING = "This run is too small for the finding of the full one, or lacks its data."
REPORTED = UNJUDGED["timing"]
AS_DONE_ONLY = "only by following what was done, not what the paper says"


@dataclass(frozen=True)
class Judgement:
    """Judgement that stands above an artefact."""

    answer: str
    """The first words: "Table 8: no", "12 of 65 fail"."""
    text: str
    """Further sentences, in Markdown."""
    colour: str
    """"bad" if something fails, "done" if something comes out only as done or is open, "good" if
    all stands, "plain" if there is nothing to judge. It follows from the verdicts alone."""

    @property
    def sentence(self) -> str:
        """The whole judgement, in Markdown."""
        return f"**{self.answer}.** {self.text}".strip()


def judge(artefact: Artefact, verdicts: pd.DataFrame, words: str = "") -> Judgement:
    """Return the judgement of an artefact.

    Parameters
    ----------
    artefact : Artefact
        The table, figure or list of claims.
    verdicts : DataFrame
        A row for each number and statement that the paper prints, with its verdict, as
        `dpsub.reproduce.report.numbers.cell_verdicts` and `expected` return them.
    words : str
        Markdown that replaces the generated sentences. The first words and the colour stay: they
        are those of the verdicts. Without verdicts these words are the finding.
    """
    own = verdicts[verdicts["artefact"] == artefact.name]
    statements = about(artefact, verdicts)
    # "Section S8" is no number to sort by, but says as well what is right or not
    number = number_of(artefact) or (artefact.title.partition(". ")[0] if len(statements) else "")
    printed, said = tally(own["verdict"]), tally(statements["verdict"])
    if not printed.judged + said.judged:
        unjudged = _unjudged(own)
        printed_answer = f"{number}: not judged" if number else "Not judged"
        return Judgement(
            # an artefact of this project has a result where a printed one has a verdict
            answer=printed_answer if number or unjudged else "Result",
            text=words or unjudged or NO_FINDING,
            colour="plain",
        )
    if number:
        answer, first = f"{number}: {_right(printed, said)}", _of_numbers(own)
    else:
        answer, first = _of_list(own, "statements and numbers" if artefact.kind == "claims" else "")
    generated = (first, _of_statements(statements), _unjudged(own))
    return Judgement(
        answer=answer,
        text=words or " ".join(filter(None, generated)),
        colour=_colour(printed, said),
    )


def expected(paper: str, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the printed numbers of a paper with the verdicts that are expected, in the form of
    `cell_verdicts`."""
    judged = of_printed([paper], verdicts)
    frames = []
    for name in published.artefacts(paper):
        cells = published.load(paper, name)
        cells["row"] = published.row_texts(cells, published.key_names(cells))
        frames.append(cells[[*CELL, "erratum"]])
    cells = pd.concat([pd.DataFrame(columns=[*CELL, "erratum"]), *frames], ignore_index=True)
    places = cells[list(CELL)].itertuples(index=False, name=None)
    return cells.assign(verdict=[judged.get(place, "") for place in places])


def about(artefact: Artefact, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the statements of the paper's text about an artefact."""
    of_others = verdicts["artefact"] != artefact.name
    return verdicts[of_others & verdicts["row"].str.startswith(artefact.statements)]


def number_of(artefact: Artefact) -> str:
    """Return the number under which the paper prints an artefact ("Table 8"), "" if it prints
    none."""
    printed_number = re.match(r"((?:Table|Figure) \w+)\. ", artefact.title)
    return printed_number[1] if printed_number else ""


def place(artefact: Artefact) -> tuple[object, ...]:
    """Return the sort key of the artefacts of a paper: as printed, then the others by name."""
    # Padded, so that "Table 10" comes after "Table 9".
    title = re.sub(r"\d+", lambda found: found[0].zfill(3), artefact.title)
    return not number_of(artefact), title if number_of(artefact) else artefact.name


def _colour(*tallies: Tally) -> str:
    if any(one.failing for one in tallies):
        return "bad"
    return "done" if any(one.as_done or one.open for one in tallies) else "good"


def _right(*tallies: Tally) -> str:
    """Return the answer to "is it right?"."""
    judged = sum(one.judged for one in tallies)
    confirmed = sum(one.confirmed for one in tallies)
    if confirmed == judged:
        # numbers that could not be compared may be wrong
        part = any(one.not_compared or one.shown for one in tallies)
        return "yes, as far as it can be judged" if part else "yes"
    if 2 * confirmed > judged:
        return "mostly"
    return "no" if any(one.failing for one in tallies) else "only as done"


def _of_numbers(own: pd.DataFrame) -> str:
    counts = tally(own["verdict"])
    if not counts.judged:
        return ""
    # numbers that are not judged are counted in a sentence of their own
    kind = "judged" if counts.not_compared or counts.shown else "printed"
    every = f"All {counts.judged} {kind} numbers" if counts.judged > 1 else f"Its {kind} number"
    if counts.confirmed == counts.judged:
        return f"{every} {_verb(counts.judged, 'is', 'are')} reproduced."
    if counts.as_done == counts.judged:
        verb = _verb(counts.judged, "comes", "come")
        return f"{every} {verb} out {AS_DONE_ONLY}{_errata(_as_done(own))}."
    verb = _verb(counts.confirmed, "is", "are")
    parts = [f"{counts.confirmed} of {counts.judged} {kind} numbers {verb} reproduced"]
    return _listed([*parts, *_others(own, counts, ("differs", "differ"))])


def _of_list(own: pd.DataFrame, noun: str) -> tuple[str, str]:
    """Return the first words, and the other sentences, of a list of statements or numbers."""
    counts = tally(own["verdict"])
    every = f"{counts.judged} {noun}".strip()
    others = _others(own, counts)
    if counts.failing:
        answer = f"{counts.failing} of {every} {_verb(counts.failing, 'fails', 'fail')}"
        others.insert(0, f"{counts.confirmed} {_verb(counts.confirmed, 'stands', 'stand')}")
    elif counts.confirmed == counts.judged:
        answer = f"All {every} stand"
    else:
        answer = f"{counts.confirmed} of {every} {_verb(counts.confirmed, 'stands', 'stand')}"
    reasons = in_order(name for names in _failing(own)["erratum"] for name in names.split())
    why = f"Reasons: {', '.join(reasons)}." if reasons else ""
    return answer, " ".join(filter(None, (_listed(others), why)))


def _of_statements(statements: pd.DataFrame) -> str:
    counts = tally(statements["verdict"])
    if not counts.judged:
        return ""
    if counts.confirmed == counts.judged:
        if counts.judged == 1:
            return "The statement about it holds."
        every = "Both" if counts.judged == 2 else f"All {counts.judged}"
        return f"{every} statements about it hold."
    if counts.judged == 1:
        fate = "fails" if counts.failing else "is open"
        return f"The statement about it {fate}{_errata(statements)}."
    verb = _verb(counts.confirmed, "holds", "hold")
    parts = [f"{counts.confirmed} of {counts.judged} statements about it {verb}"]
    return _listed([*parts, *_others(statements, counts, ("fails", "fail"))])


def _others(
    cells: pd.DataFrame, counts: Tally, failing: tuple[str, str] | None = None
) -> list[str]:
    """Return phrases about the numbers that are not confirmed."""
    parts = []
    if counts.as_done:
        verb = _verb(counts.as_done, "comes", "come")
        parts.append(f"{counts.as_done} {verb} out {AS_DONE_ONLY}{_errata(_as_done(cells))}")
    if counts.failing and failing:
        parts.append(
            f"{counts.failing} {_verb(counts.failing, *failing)}{_errata(_failing(cells))}"
        )
    if counts.open:
        parts.append(f"{counts.open} {_verb(counts.open, 'is', 'are')} open")
    return parts


def _unjudged(own: pd.DataFrame) -> str:
    """Return sentences about the printed numbers that are not judged."""
    times, lacking = (int((own["verdict"] == name).sum()) for name in (REPORTED, NOT_COMPARED))
    sentences = []
    if times:
        verb = _verb(times, "clock time is", "clock times are")
        sentences.append(f"{times} {verb} shown next to ours and not judged.")
    if lacking:
        noun = _verb(lacking, "number", "numbers")
        sentences.append(f"{lacking} {noun} cannot be compared in this run.")
    return " ".join(sentences)


def _failing(cells: pd.DataFrame) -> pd.DataFrame:
    return cells[cells["verdict"].isin(FAILING)]


def _as_done(cells: pd.DataFrame) -> pd.DataFrame:
    return cells[cells["verdict"].str.endswith(AS_DONE)]


def _errata(cells: pd.DataFrame) -> str:
    names = in_order(name for names in cells["erratum"] for name in names.split())
    return f" ({', '.join(names)})" if names else ""


def _verb(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


def _listed(parts: list[str]) -> str:
    return f"{'; '.join(parts)}." if parts else ""
