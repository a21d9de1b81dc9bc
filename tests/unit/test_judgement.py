"""The sentence above a table, figure or list of claims, and its colour, from planted verdicts."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd
import pytest

from dpsub.reproduce.artefact import Artefact, annotated
from dpsub.reproduce.labels import display
from dpsub.reproduce.layout import Layout, blocks, mark
from dpsub.reproduce.report.judgement import judge


class Eighth(Artefact):
    """A table of accuracies and bounds."""

    paper = "paper"
    name = "table8"
    kind = "table"
    title = "Table 8. Accuracy and privacy"
    caption = "Accuracy and privacy of two samplers. Means over seeds."
    keys = ("sampler",)
    statements = ("table8_",)
    attacks: ClassVar[dict[str, str]] = {"delta_upper": "delta_lower"}
    layout = Layout(apart={"privacy": ("delta_upper", "delta_lower")})


class Claimed(Eighth):
    name = "claims"
    kind = "claims"
    title = "Statements and numbers of the text"
    statements = ()


def verdicts(*numbers: str, statements: tuple[str, ...] = ()) -> pd.DataFrame:
    rows = [("table8", f"sampler={place}", name, "E1") for place, name in enumerate(numbers)]
    rows += [("claims", f"table8_{place}", name, "E2") for place, name in enumerate(statements)]
    frame = pd.DataFrame(rows, columns=["artefact", "row", "verdict", "erratum"])
    return frame.assign(paper="paper", column="holds")


@pytest.mark.parametrize(
    ("numbers", "statements", "colour", "sentence"),
    [
        (
            ("reproduced", "within_error"),
            ("holds", "proved"),
            "good",
            "**Table 8: yes.** All 2 printed numbers are reproduced. "
            "Both statements about it hold.",
        ),
        (
            ("reproduced", "reproduced", "differs"),
            (),
            "bad",
            "**Table 8: partly.** 2 of 3 printed numbers are reproduced; 1 differs (E1).",
        ),
        (
            ("within_error_as_done", "within_error_as_done"),
            (),
            "done",
            "**Table 8: no.** All 2 printed numbers come out only by following what was "
            "done, not what the paper says (E1).",
        ),
        (
            ("reproduced", "reproduced_as_done", "reproduced_as_done"),
            ("refuted",),
            "bad",
            "**Table 8: no.** 1 of 3 printed numbers is reproduced; 2 come out only by following "
            "what was done, not what the paper says (E1). The statement about it fails (E2).",
        ),
        (
            ("reproduced", "reported", "not_compared"),
            (),
            "good",
            "**Table 8: yes, 1 of 3 judged.** Its judged number is reproduced. 1 "
            "clock time is shown next to ours and not judged. 1 number cannot be compared in this "
            "run.",
        ),
        (
            (),
            (),
            "plain",
            "**Table 8: not judged.** This run is too small for the finding of the full one, or "
            "lacks its data.",
        ),
    ],
)
def test_the_words_and_the_colour_follow_from_the_verdicts(
    numbers: tuple[str, ...], statements: tuple[str, ...], colour: str, sentence: str
) -> None:
    found = judge(Eighth(), verdicts(*numbers, statements=statements))
    assert (found.colour, found.sentence) == (colour, sentence)


def test_a_paper_gives_its_own_words_but_neither_answer_nor_colour() -> None:
    found = judge(Eighth(), verdicts("differs"), "It is fine.")
    assert (found.colour, found.sentence) == ("bad", "**Table 8: no.** It is fine.")


def test_an_artefact_of_this_project_has_a_result() -> None:
    class Own(Eighth):
        title = "Accuracy of two samplers"

    found = judge(Own(), verdicts(), "One is better.")
    assert (found.colour, found.sentence) == ("plain", "**Result.** One is better.")


def test_a_list_is_judged_by_how_many_fail() -> None:
    listed = verdicts(statements=("holds", "refuted", "fails", "open", "proved"))
    found = judge(Claimed(), listed)
    assert found.colour == "bad"
    assert found.sentence == (
        "**Statements and numbers of the text: no.** 2 of 5 judged statements and numbers stand; "
        "2 fail; 1 is open. Reasons: E2."
    )


def cells(attained: float) -> pd.DataFrame:
    rows = [
        ("wor", "accuracy", "0.9", 0.8, float("nan")),
        ("wor", "delta_upper", "1e-6", 1e-6, 0.9),
        ("wor", "delta_lower", "0", 0.0, attained),
    ]
    frame = pd.DataFrame(rows, columns=["sampler", "column", "printed", "stated", "rigorous"])
    return frame.assign(verdict="", erratum="", note="")


def test_a_printed_bound_that_an_attack_exceeds_is_refuted() -> None:
    for attained, signs in ((2e-6, {"delta_upper"}), (1e-6, set()), (float("nan"), set())):
        shown = annotated(Eighth(), cells(attained), pd.DataFrame())
        marked = shown[[mark(cell, "printed") == "refuted" for cell in shown.to_dict("records")]]
        assert set(marked["column"]) == signs


def test_quantities_apart_are_a_table_of_their_own_without_empty_rows() -> None:
    made = blocks(
        Eighth.layout, cells(2e-6), display, lambda cell, source: cell[source] == cell[source]
    )
    assert [(block.title, block.heads) for block in made] == [
        ("privacy", ["δ upper", "δ lower"]),
        ("", ["accuracy"]),
    ]
    sources = [[row.source for group in block.groups for row in group.rows] for block in made]
    assert sources == [["printed", "stated", "rigorous"], ["printed", "stated"]]
