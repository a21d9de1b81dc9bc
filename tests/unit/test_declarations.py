"""Tables and claims as declarations: their results, and the messages about wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsub.errors import DataError, PlanError
from dpsub.reproduce import artefacts, claims, plan
from dpsub.reproduce.artefact import all_values, setting_values
from dpsub.reproduce.claims import Claim, Finding, MissingRecordsError, Numbers, Setting
from dpsub.reproduce.tables import Column, Part, Table, deviation, difference, mean, shared

COLUMNS = {
    "replicate": "int64",
    "sampler": "str",
    "b": "int64",
    "x": "float64",
    "y": "float64",
    "hits": "int64",
}
KNOWN = {"study": COLUMNS}


def records(**changes: Any) -> dict[str, pd.DataFrame]:
    rows = [
        {
            "variant": "stated",
            "data": "",
            "replicate": i,
            "sampler": sampler,
            "b": b,
            "x": base + step,
            "y": base,
            "hits": i,
        }
        for sampler, b, base in (("wor", 0, 2.0), ("must_ow", 5, 1.0), ("poisson", 0, 4.0))
        for i, step in enumerate((-1.0, 0.0, 1.0))
    ]
    return {"study": pd.DataFrame(rows).assign(**changes)}


def table(*parts: Part, **more: Any) -> Table:
    """Return a table of these parts."""
    fields = {
        "paper": "demo",
        "name": "made_up",
        "caption": "",
        "keys": ("sampler", "b"),
        "parts": parts,
        "absent": {"b": 0},
        **more,
    }
    return type("MadeUp", (Table,), fields)()


def rows(made: Table, frames: dict[str, pd.DataFrame] | None = None) -> pd.DataFrame:
    return pd.DataFrame(made.rows(frames or records()))


class TestTables:
    def test_statistics_by_key(self) -> None:
        table_rows = rows(
            table(Part("study", {"mean": mean("x"), "sd": deviation("x"), "base": shared("y")}))
        )
        wor = table_rows[table_rows["sampler"] == "wor"].set_index("column")
        assert wor["value"].to_dict() == {"mean": 2.0, "sd": 1.0, "base": 2.0}
        assert wor.loc["mean", ["standard_error", "replicates"]].tolist() == [
            pytest.approx(1 / np.sqrt(3)),
            3,
        ]
        assert set(table_rows.loc[table_rows["sampler"] == "must_ow", "b"]) == {5}
        assert wor["b"].isna().all()  # no first stage, no such field

    def test_paired_differences_leave_the_reference_out(self) -> None:
        part = Part("study", {"x": difference("x", {"sampler": "poisson"})}, where={"b": 0})
        table_rows = rows(table(part))
        assert table_rows[["sampler", "value", "standard_error"]].to_numpy().tolist() == [
            ["wor", -2.0, 0.0]
        ]
        alone = records()["study"].query("sampler != 'poisson'")
        assert rows(table(part), {"study": alone}).empty

    def test_each_column_under_one_key(self) -> None:
        made = table(
            Part("study", {"mean": mean("which")}, each={"which": {"first": "x", "second": "y"}}),
            keys=("sampler", "which"),
        )
        found = made.values(records())[["sampler", "which"]].head(2)
        assert found.to_numpy().tolist() == [["wor", "first"], ["wor", "second"]]

    def test_order_words_and_rows_brought_together(self) -> None:
        ranks = {"sampler": ("poisson", "wor", "must_ow")}
        made = table(
            Part("study", {"mean": mean("x")}),
            Part("study", {"sd": deviation("x")}),
            together=("sampler",),
            words={"sampler": {"must_ow": "OW"}},
            order=("sampler",),
            ranks=lambda self: ranks,
        )
        assert list(rows(made)["sampler"]) == ["poisson", "poisson", "wor", "wor", "OW", "OW"]

    def test_numbers_that_are_not_there(self) -> None:
        lacking = records(x=lambda frame: frame["x"].where(frame["sampler"] != "wor"))
        reason = mean("x", drop=True, empty=True, note="b = {b}")
        table_rows = rows(
            table(Part("study", {"mean": mean("x", drop=True), "with_reason": reason})), lacking
        )
        (row,) = table_rows.query("sampler == 'wor'").to_dict("records")
        assert (row["column"], row["note"]) == ("with_reason", "b = 0") and np.isnan(row["value"])

    def test_a_key_that_does_not_tell_records_apart_is_refused(self) -> None:
        with pytest.raises(
            DataError,
            match=r"got 'sampler=wor', 'x' 3 times; .* add the key of "
            r"demo/made_up",
        ):
            rows(table(Part("study", {"x": "x"})))
        with pytest.raises(DataError, match=r"must share their x, got 1\.0 and 3\.0"):
            rows(table(Part("study", {"x": shared("x")})))

    @pytest.mark.parametrize(
        ("part", "said"),
        [
            (
                Part("stuudy", {"x": "x"}),
                "demo/made_up: unknown experiment 'stuudy'; did you mean 'study'",
            ),
            (Part("study", {"x": mean("xx")}), "unknown column of study 'xx'"),
            (Part("study", {"x": Column("x", lower="low")}), "unknown column of study 'low'"),
            (
                Part("study", {"x": "x"}, where={"samplr": "wor"}),
                "unknown column of study 'samplr'",
            ),
            (
                Part("study", {"x": "x"}, keys={"b": "first_stage"}),
                "unknown column of study 'first_stage'",
            ),
            (
                Part("study", {"x": "part"}, each={"part": {"one": "z"}}),
                "unknown column of study 'z'",
            ),
            (Part("study", {"x": "x"}, keys={"b": None}), "no part gives the key 'b'"),
        ],
    )
    def test_a_wrong_declaration_is_refused_before_any_work(self, part: Part, said: str) -> None:
        with pytest.raises(PlanError, match=said):
            table(part).check(KNOWN)
        table(Part("study", {"x": mean("x")})).check(KNOWN)


X = Numbers("study", "x", ("replicate",))
ALL = Numbers("study", "x")
ALONG = Numbers("study", "x", ("sampler", "replicate"))
LARGEST = Numbers("study", "x", ("sampler",), statistic="max")
ONE = Numbers("study", "y", where={"sampler": "wor"})
CHAIN, SAID = "must_ow < wor < poisson", "{holding} of {n}: {first:.1f} at {at_first}"
MIXED = {"x": lambda frame: frame["x"].mask(frame["sampler"].eq("wor") & frame["hits"].eq(1), 9.0)}
TIE = claims.agree(ALL, "y", "{failing} of {n}, at {worst[sampler]}", tolerance=1e-9)


@pytest.mark.parametrize(
    ("question", "changes", "holds", "note"),
    [
        (
            claims.ordered(X, CHAIN, SAID),
            {},
            True,
            "3 of 3: MUST.OW 0.0, WOR 1.0, Poisson 3.0 at 0",
        ),
        (
            claims.ordered(X, CHAIN, SAID),
            MIXED,
            False,
            "2 of 3: MUST.OW 0.0, WOR 1.0, Poisson 3.0 at 0",
        ),
        (claims.ordered(X, CHAIN, anywhere=True), MIXED, True, "3 points"),
        (claims.ordered(X, "must_ow = wor"), {}, False, "3 points"),
        (claims.ordered(X, "wor = must_ow"), {"x": 1.0}, True, "3 points"),
        (claims.ordered(X, "must_ow < wor poisson"), {"x": 1.0}, False, "3 points"),
        (claims.ordered(X, "wor < must_ow", anywhere=True), {}, False, "3 points"),
        (claims.increasing(ALONG, "replicate", "{least:g}"), {}, True, "1"),
        (claims.increasing(ALONG, "replicate", "", falling=True), {}, False, ""),
        (claims.increasing(ALONG, "replicate", ""), {"x": np.nan}, False, ""),
        (claims.below(X, 5.5, "{largest:g}"), {}, True, "3"),
        (claims.below(LARGEST, 5.5, "{at_largest}"), {}, True, "Poisson"),
        (claims.below(LARGEST, 5.0, ""), {}, False, ""),
        (claims.below(LARGEST, 5.0, "", strict=False), {}, True, ""),
        (claims.below(LARGEST, 5.5, ""), {"x": np.nan}, False, ""),
        (claims.below(ALL, Numbers("study", "y"), ""), {}, False, ""),
        (claims.near(ONE, 2.1, "", tolerance=0.1), {}, True, ""),
        (claims.near(ONE, 2.2, "", tolerance=0.1), {}, False, ""),
        (claims.near(ONE, 2.09, "", relative=0.05), {}, True, ""),
        (claims.near(ONE, 2.2, "", relative=0.05), {}, False, ""),
        (claims.near(ONE, lambda: 19.0, "{ratio:.3f}", factor=10.0), {}, True, "0.105"),
        (claims.near(ONE, 21.0, "", factor=10.0), {}, False, ""),
        (TIE, {}, False, "6 of 9, at wor"),
        (TIE, {"y": lambda frame: frame["x"]}, True, "0 of 9, at wor"),
        (claims.agree(ALL, "y", "", at_most=True), {}, False, ""),
        (claims.agree(ALL, "y", "", at_most=True, tolerance=1.0), {}, True, ""),
        (claims.every(claims.below(X, 5.5, "a"), claims.below(X, 6, "b")), {}, True, "a, b"),
        (claims.every(claims.below(X, 5.5, "a"), claims.below(X, 0, "b")), {}, False, "a, b"),
    ],
)
def test_a_question_holds_where_it_should_and_fails_on_a_planted_counter_example(
    question: claims.Ask, changes: dict[str, Any], holds: bool, note: str
) -> None:
    found = question(records(**changes))
    assert isinstance(found, Finding)
    assert (found.holds, found.note) == (holds, note)


def test_a_range_is_given_where_asked() -> None:
    assert claims.near(ONE, 2.1, "", tolerance=0.1, bounds=True)(records()) == Finding(
        True, "", 2.0, 2.0
    )


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (claims.ordered(X, "must_ww < wor"), "no records of sampler must_ww"),
        (
            claims.number(Numbers("study", "x", where={"b": lambda b: b > 9})),
            "no records of the b asked for",
        ),
        (
            claims.increasing(Numbers("study", "x", ("sampler", "b"), {"sampler": "wor"}), "b", ""),
            "one value of b only",
        ),
        (claims.number(Numbers("study", "x", where={"b": (0, 5, 7)})), "no records of b 7"),
    ],
)
def test_what_a_run_lacks_is_said(question: claims.Ask, reason: str) -> None:
    with pytest.raises(MissingRecordsError, match=reason):
        question(records())


def made_up_claims(*declared: Claim | Setting) -> claims.Claims:
    fields = {"paper": "demo", "name": "made_up_claims", "caption": "", "claims": declared}
    return type("MadeUp", (claims.Claims,), fields)()


ORDER = Claim("order", "Table 1", claims.ordered(X, "must_ow < wor"))


class TestClaims:
    def test_rows_of_claims_and_settings(self) -> None:
        made = made_up_claims(
            ORDER,
            Claim("largest", "Section 2", claims.number(ALL, "max"), column="x"),
            Setting("size", "m", "study.sizes.m"),
            Setting("second", "k", "study.steps.1"),
            Setting("third", "k", "study.steps.2"),
        )
        found = all_values(
            made, records(), {"study": {"sizes": {"m": 30}, "steps": [10, 20]}}
        ).set_index("claim")
        assert found["value"].to_dict() == {
            "order": 1.0,
            "largest": 5.0,
            "size": 30.0,
            "second": 20.0,
        }
        assert found["configured"].to_dict() == {
            "order": False,
            "largest": False,
            "size": True,
            "second": True,
        }
        assert made.experiments == ("study",)

    def test_a_run_without_records_says_so(self) -> None:
        found = all_values(made_up_claims(ORDER, Setting("m", "m", "study.sizes.m")), {})
        assert list(found["note"]) == ["this run has no stated records of study"]
        assert found["value"].isna().all()

    @pytest.mark.parametrize(
        ("claim", "said"),
        [
            (
                Claim("odd", "", lambda frames: 1.0, ("stuudy",)),
                "claim odd: unknown experiment 'stuudy'; did you mean",
            ),
            (
                Claim("odd", "", claims.number(Numbers("study", "xx"))),
                "claim odd: unknown column of study 'xx'",
            ),
            (
                Claim("odd", "", claims.agree(X, "yy", "")),
                "claim odd: unknown column of study 'yy'",
            ),
            (
                Claim(
                    "odd",
                    "",
                    claims.number(Numbers("exact", "xx")),
                    shared={"exact": ("study", "rigorous")},
                ),
                "claim odd: unknown column of study 'xx'",
            ),
            (Setting("odd", "m", "stuudy.sizes.m"), "claim odd: unknown experiment 'stuudy'"),
            (Setting("known", "m", "study.sizes.m"), "each claim comes once, got 'known' twice"),
        ],
    )
    def test_a_wrong_claim_is_refused_before_any_work(
        self, claim: Claim | Setting, said: str
    ) -> None:
        with pytest.raises(PlanError, match=said):
            made_up_claims(Setting("known", "m", "study.sizes.m"), claim).check(KNOWN)

    def test_a_setting_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(
            DataError,
            match=r"must name a setting that is there, got "
            r"'study\.sizes\.mm'",
        ):
            setting_values(
                made_up_claims(Setting("odd", "m", "study.sizes.mm")),
                {"study": {"sizes": {"m": 30}}},
            )


def test_every_declaration_of_every_paper_fits() -> None:
    assert {artefact.identifier for artefact in plan.declared()} == set(artefacts.REGISTRY.names())
