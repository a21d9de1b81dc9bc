"""How often one fixed record occurs in a sample: the law P(L = l), the inclusion probability eta,
and the expected number of distinct records.

JSON: eta, law (P(L = 0), P(L = 1), ...), expected_distinct (null if the number of records is not
given).
"""

from __future__ import annotations

from argparse import Namespace

import numpy as np

import dpsub
from dpsub.accounting.questions.words import Line, near
from dpsub.accounting.release import described
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser
from dpsub.cli.samplers import add_sampler, sampler_of
from dpsub.sampling import Sampler

_IN_A_ROW = 5  # counts of a short answer


def add_arguments(parser: Parser) -> None:
    add_sampler(parser)
    parser.add_time_limit()


def run(arguments: Namespace) -> Answer:
    sampler = sampler_of(arguments)
    law = dpsub.law(sampler, arguments.n)
    assert isinstance(sampler, Sampler)  # of a schedule there was no law
    distinct = None if arguments.n is None else sampler.expected_distinct(arguments.n)
    records = (
        "unknown without --n"
        if distinct is None
        else (f"{near(distinct)}  (expected number of distinct records)")
    )
    explained: list[Line] = [
        ("eta", f"{near(law.eta)}  (probability that a record is in the sample)"),
        ("copies", f"{near(law.mean)}  (expected number of copies of one record)"),
        ("distinct", records),
        ("P(L = l)", _rows(law.pmf)),
    ]
    values = {"eta": law.eta, "law": law.pmf, "expected_distinct": distinct}
    lines: list[Line] = [*explained[:3], ("P(L = l)", _row(law.pmf))]
    title = f"Copies of one record in a sample from {described(sampler, arguments.n)}"
    return Answer(values, title, lines, explained)


def _row(pmf: np.ndarray) -> str:
    """The likeliest of the first counts."""
    shown = np.flatnonzero(pmf >= 1e-9)[:_IN_A_ROW].tolist()
    more = ", ..." if np.count_nonzero(pmf) > len(shown) else ""
    return ", ".join(f"{near(float(pmf[count]))} for {count}" for count in shown) + more


def _rows(pmf: np.ndarray) -> list[str]:
    """The first dozen counts with a probability of at least 1e-9, and the rest together."""
    # A law over m counts has a handful that matter.
    shown = np.flatnonzero(pmf >= 1e-9)[:12]
    rows = [f"{count:>6}  {near(float(pmf[count]))}" for count in shown]
    rest = float(np.delete(pmf, shown).sum())
    return [*rows, f"others  {near(rest)}"] if rest > 0 else rows
