"""Judgements of tables, figures and lists of claims: is it right? One of four words, how much was
judged, sentences from the verdicts, and a colour. The report, docs/found and docs/verdicts.md take
their words from here."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd

from dpsub.reproduce import published
from dpsub.reproduce.artefact import Artefact
from dpsub.reproduce.report.cells import in_order
from dpsub.reproduce.report.numbers import of_printed
from dpsub.reproduce.verdicts import AS_DONE, CELL, FAILING, NOT_COMPARED, UNJUDGED, Tally, tally

YES, PARTLY, NO, NOT_JUDGED = WORDS = ("yes", "partly", "no", "not judged")
"""Answers to "is it right?", for each table, figure and list of claims, on every page: yes if all
that was judged is confirmed; no if what differs, fails or comes out only as done is at least as
much as what is confirmed; partly in between. Open numbers count for neither."""
NO_FINDING = "This run is too small for the finding of the full one, or lacks its data."
REPORTED = UNJUDGED["timing"]
AS_DONE_ONLY = "only by following what was done, not what the paper says"


@dataclass(frozen=True)
class Judgement:
    """Judgement that stands above an artefact."""

    name: str
    """Its number in the paper ("Table 8"), else its title; "" for a result of this project that
    compares nothing."""
    verdict: str
    """One of `WORDS`."""
    judged: int
    """Printed numbers, and statements about it, that were judged."""
    printed: int
    """All of them but settings, judged or not."""
    text: str
    """Further sentences, in Markdown."""
    colour: str
    """"bad" if something fails, "done" if something comes out only as done or is open, "good" if
    all stands, "plain" if there is nothing to judge. It follows from the verdicts alone."""

    @property
    def share(self) -> str:
        """How much was judged: "all 39", "5 of 40"."""
        return (
            f"all {self.judged}"
            if self.judged == self.printed
            else (f"{self.judged} of {self.printed}")
        )

    @property
    def answer(self) -> str:
        """The first words: "Table 8: no", "Table 1: yes, 5 of 40 judged"."""
        if not self.name:
            return "Result"
        in_part = 0 < self.judged < self.printed
        return f"{self.name}: {self.verdict}" + f", {self.share} judged" * in_part

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
    number = number_of(artefact)
    printed, said = tally(own["verdict"]), tally(statements["verdict"])
    judged = printed.judged + said.judged
    if number:
        generated = (_of_numbers(own), _of_statements(statements), _unjudged(own))
    elif len(statements):
        # "Section S8" is no number to sort by, but says as well what is right or not
        number = artefact.title.partition(". ")[0]
        generated = ("", _of_statements(statements), _unjudged(own))
    else:
        noun = " statements and numbers" if artefact.kind == "claims" else ""
        # an artefact of this project has a result where a printed one has a verdict
        number = artefact.title if len(own) else ""
        generated = (_of_list(own, noun) if judged else "", "", _unjudged(own))
    return Judgement(
        name=number,
        verdict=_word(printed, said),
        judged=judged,
        printed=sum(one.every - one.settings for one in (printed, said)),
        text=words or " ".join(filter(None, generated)) or NO_FINDING,
        colour=_colour(printed, said) if judged else "plain",
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


def _word(*tallies: Tally) -> str:
    """Return the answer to "is it right?", one of `WORDS`."""
    confirmed = sum(one.confirmed for one in tallies)
    against = sum(one.failing + one.as_done for one in tallies)
    if not confirmed + against:
        return NOT_JUDGED
    if confirmed == sum(one.judged for one in tallies):
        return YES
    return PARTLY if confirmed > against else NO


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


def _of_list(own: pd.DataFrame, noun: str) -> str:
    """Return the sentences about a list of statements or numbers; `noun` is what they are called,
    after a space, or ""."""
    counts = tally(own["verdict"])
    every = f"{counts.judged} judged{noun}"
    if counts.confirmed == counts.judged:
        return f"All {every} stand."
    stand = f"{counts.confirmed} of {every} {_verb(counts.confirmed, 'stands', 'stand')}"
    fail = [f"{counts.failing} {_verb(counts.failing, 'fails', 'fail')}"] * bool(counts.failing)
    reasons = in_order(name for names in _failing(own)["erratum"] for name in names.split())
    why = f"Reasons: {', '.join(reasons)}." if reasons else ""
    return " ".join(filter(None, (_listed([stand, *fail, *_others(own, counts)]), why)))


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
    times, lacking, drawn = (
        int((own["verdict"] == name).sum())
        for name in (REPORTED, NOT_COMPARED, UNJUDGED["structure"])
    )
    sentences = []
    if times:
        verb = _verb(times, "clock time is", "clock times are")
        sentences.append(f"{times} {verb} shown next to ours and not judged.")
    if lacking:
        noun = _verb(lacking, "number", "numbers")
        sentences.append(f"{lacking} {noun} cannot be compared in this run.")
    if drawn:
        noun, verb = _verb(drawn, "curve", "curves"), _verb(drawn, "is", "are")
        sentences.append(f"{drawn} {noun} without printed numbers {verb} shown and not judged.")
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
