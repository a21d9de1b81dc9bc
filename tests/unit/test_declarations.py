"""Tables and claims as declarations: what they give, and what a wrong one is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsub.errors import DataError, PlanError
from dpsub.reproduce import artefacts, claims, plan
from dpsub.reproduce.artefact import all_values, setting_values
from dpsub.reproduce.claims import Claim, Finding, LackingError, Numbers, Setting
from dpsub.reproduce.tables import Column, Part, Table, deviation, difference, largest, least, mean, share, shared

COLUMNS = {"replicate": "int64", "sampler": "str", "b": "int64", "x": "float64", "y": "float64", "hits": "int64"}
KNOWN = {"study": COLUMNS}


def records(**changes: Any) -> dict[str, pd.DataFrame]:
    rows = [
        {"variant": "stated", "data": "", "replicate": i, "sampler": sampler, "b": b, "x": base + step, "y": base,
         "hits": i}
        for sampler, b, base in (("wor", 0, 2.0), ("must_ow", 5, 1.0), ("poisson", 0, 4.0))
        for i, step in enumerate((-1.0, 0.0, 1.0))
    ]  # fmt: skip
    return {"study": pd.DataFrame(rows).assign(**changes)}


def table(*parts: Part, **more: Any) -> Table:
    """Return a table of these parts."""
    fields = {"paper": "must", "name": "made_up", "caption": "", "keys": ("sampler", "b"), "parts": parts,
              "absent": {"b": 0}, **more}  # fmt: skip
    return type("MadeUp", (Table,), fields)()


def rows(made: Table, frames: dict[str, pd.DataFrame] | None = None) -> pd.DataFrame:
    return pd.DataFrame(made.rows(frames or records()))


class TestTables:
    def test_statistics_by_key(self) -> None:
        found = rows(table(Part("study", {"mean": mean("x"), "sd": deviation("x"), "base": shared("y"),
                                          "low": least("x"), "high": largest("x")})))  # fmt: skip
        wor = found[found["sampler"] == "wor"].set_index("column")
        assert wor["value"].to_dict() == {"mean": 2.0, "sd": 1.0, "base": 2.0, "low": 1.0, "high": 3.0}
        assert wor.loc["mean", "standard_error"] == pytest.approx(1 / np.sqrt(3))
        assert wor.loc["mean", "replicates"] == 3
        assert set(found.loc[found["sampler"] == "must_ow", "b"]) == {5}
        assert wor["b"].isna().all()  # no first stage, no such field

    def test_share_with_its_interval(self) -> None:
        found = rows(table(Part("study", {"share": share("hits", "trials")}, where={"sampler": "wor"},
                                prepare=lambda frame: frame.assign(trials=2))))  # fmt: skip
        assert found.loc[0, ["value", "replicates"]].tolist() == [0.5, 6]
        assert found.loc[0, "lower"] == pytest.approx(0.11812, abs=1e-5)  # Clopper and Pearson, 3 of 6
        assert found.loc[0, "upper"] == pytest.approx(0.88188, abs=1e-5)

    def test_paired_differences_leave_the_reference_out(self) -> None:
        part = Part("study", {"x": difference("x", {"sampler": "poisson"})}, where={"b": 0})
        found = rows(table(part))
        assert found[["sampler", "value", "standard_error"]].to_numpy().tolist() == [["wor", -2.0, 0.0]]
        alone = records()["study"].query("sampler != 'poisson'")
        assert rows(table(part), {"study": alone}).empty

    def test_each_column_under_one_key(self) -> None:
        made = table(Part("study", {"mean": mean("which")}, each={"which": {"first": "x", "second": "y"}}),
                     keys=("sampler", "which"))  # fmt: skip
        assert made.values(records())[["sampler", "which"]].head(2).to_numpy().tolist() == [
            ["wor", "first"], ["wor", "second"]]  # fmt: skip

    def test_order_words_and_rows_brought_together(self) -> None:
        ranks = {"sampler": ("poisson", "wor", "must_ow")}
        made = table(Part("study", {"mean": mean("x")}), Part("study", {"sd": deviation("x")}), together=("sampler",),
                     words={"sampler": {"must_ow": "OW"}}, order=("sampler",), ranks=lambda self: ranks)  # fmt: skip
        assert list(rows(made)["sampler"]) == ["poisson", "poisson", "wor", "wor", "OW", "OW"]

    def test_numbers_that_are_not_there(self) -> None:
        lacking = records(x=lambda frame: frame["x"].where(frame["sampler"] != "wor"))
        made = table(Part("study", {"mean": mean("x", drop=True), "with_reason": mean(
            "x", drop=True, empty=True, note="b = {b}")}))  # fmt: skip
        found = rows(made, lacking).query("sampler == 'wor'")
        assert list(found["column"]) == ["with_reason"]
        assert list(found["note"]) == ["b = 0"]
        assert np.isnan(found["value"].iloc[0])

    def test_a_function_beside_the_parts(self) -> None:
        class Beside(Table):
            paper, name, caption, keys = "must", "beside", "", ("sampler", "b")
            parts = (Part("study", {"mean": mean("x")}),)

            def rows(self, records: Any) -> list[dict[str, Any]]:
                return [*super().rows(records), {"sampler": "all", "column": "n", "variant": "stated", "value": 9.0}]

        assert Beside().values(records()).iloc[-1]["sampler"] == "all"

    def test_a_key_that_does_not_tell_records_apart_is_refused(self) -> None:
        with pytest.raises(DataError, match=r"got 'sampler=wor', 'x' 3 times; .* add the key of must/made_up"):
            rows(table(Part("study", {"x": "x"})))
        with pytest.raises(DataError, match=r"must share their x, got 1\.0 and 3\.0"):
            rows(table(Part("study", {"x": shared("x")})))

    @pytest.mark.parametrize(
        ("part", "said"),
        [
            (Part("stuudy", {"x": "x"}), "must/made_up: unknown experiment 'stuudy'; did you mean 'study'"),
            (Part("study", {"x": mean("xx")}), "unknown column of study 'xx'"),
            (Part("study", {"x": Column("x", lower="low")}), "unknown column of study 'low'"),
            (Part("study", {"x": "x"}, where={"samplr": "wor"}), "unknown column of study 'samplr'"),
            (Part("study", {"x": "x"}, keys={"b": "first_stage"}), "unknown column of study 'first_stage'"),
            (Part("study", {"x": "part"}, each={"part": {"one": "z"}}), "unknown column of study 'z'"),
            (Part("study", {"x": "x"}, keys={"b": None}), "no part gives the key 'b'"),
        ],
    )
    def test_a_wrong_declaration_is_refused_before_any_work(self, part: Part, said: str) -> None:
        with pytest.raises(PlanError, match=said):
            table(part).check(KNOWN)

    def test_a_right_one_is_not(self) -> None:
        table(Part("study", {"x": mean("x")})).check(KNOWN)


def answer(question: claims.Ask, **changes: Any) -> Finding:
    found = question(records(**changes))
    assert isinstance(found, Finding)
    return found


X = Numbers("study", "x", ("replicate",))


class TestQuestions:
    """Each kind holds where it should, and fails on a planted counter-example."""

    def test_ordered(self) -> None:
        question = claims.ordered(X, "must_ow < wor < poisson", "{holding} of {n}: {first:.1f} at {at_first}")
        assert answer(question) == Finding(True, "3 of 3: must_ow 0.0, wor 1.0, poisson 3.0 at 0")
        worse = answer(question, x=lambda frame: frame["x"].mask(frame["sampler"].eq("wor") & frame["hits"].eq(1), 9.0))
        assert worse == Finding(False, "2 of 3: must_ow 0.0, wor 1.0, poisson 3.0 at 0")
        assert not answer(claims.ordered(X, "must_ow = wor")).holds
        assert answer(claims.ordered(X, "wor = must_ow"), x=1.0).holds
        assert not answer(claims.ordered(X, "must_ow < wor poisson"), x=1.0).holds
        assert not answer(claims.ordered(X, "wor < must_ow", anywhere=True)).holds

    def test_an_absent_sampler_is_lacking(self) -> None:
        with pytest.raises(LackingError, match="no records of sampler must_ww"):
            answer(claims.ordered(X, "must_ww < wor"))

    def test_a_filter_that_leaves_nothing_is_lacking(self) -> None:
        with pytest.raises(LackingError, match="no records of the b asked for"):
            answer(claims.everywhere(Numbers("study", "x", where={"b": lambda b: b > 9})))

    def test_increasing(self) -> None:
        along = Numbers("study", "x", ("sampler", "replicate"))
        assert answer(claims.increasing(along, "replicate", "{least:g}")) == Finding(True, "1")
        assert not answer(claims.increasing(along, "replicate", "", falling=True)).holds
        assert not answer(claims.increasing(along, "replicate", ""), x=np.nan).holds
        with pytest.raises(LackingError, match="one value of replicate only"):
            claims.increasing(along, "replicate", "")({"study": records()["study"].query("replicate == 0")})

    def test_below(self) -> None:
        assert answer(claims.below(X, 5.5, "{largest:g}")) == Finding(True, "3")
        largest_x = Numbers("study", "x", ("sampler",), statistic="max")
        assert answer(claims.below(largest_x, 5.5, "{at_largest}")).note == "poisson"
        assert not answer(claims.below(largest_x, 5.0, "")).holds
        assert answer(claims.below(largest_x, 5.0, "", strict=False)).holds
        assert not answer(claims.below(largest_x, 5.5, ""), x=np.nan).holds
        assert not answer(claims.below(Numbers("study", "x"), Numbers("study", "y"), "")).holds

    def test_near(self) -> None:
        one = Numbers("study", "y", where={"sampler": "wor"})
        assert answer(claims.near(one, 2.1, "", tolerance=0.1, bounds=True)) == Finding(True, "", 2.0, 2.0)
        assert not answer(claims.near(one, 2.2, "", tolerance=0.1)).holds
        assert np.isnan(answer(claims.near(one, 2.09, "", relative=0.05)).lower)
        assert answer(claims.near(one, 2.09, "", relative=0.05)).holds
        assert not answer(claims.near(one, 2.2, "", relative=0.05)).holds
        assert answer(claims.near(one, lambda: 19.0, "{ratio:.3f}", factor=10.0)).note == "0.105"
        assert not answer(claims.near(one, 21.0, "", factor=10.0)).holds

    def test_agree(self) -> None:
        question = claims.agree(Numbers("study", "x"), "y", "{failing} of {n}, at {worst[sampler]}", tolerance=1e-9)
        assert answer(question) == Finding(False, "6 of 9, at wor")
        assert answer(question, y=lambda frame: frame["x"]).holds
        assert not answer(claims.agree(Numbers("study", "x"), "y", "", at_most=True)).holds
        assert answer(claims.agree(Numbers("study", "x"), "y", "", at_most=True, tolerance=1.0)).holds

    def test_everywhere_somewhere_and_every(self) -> None:
        large = Numbers("study", lambda frame: frame["x"] > 1)
        assert answer(claims.everywhere(large)) == Finding(False, "6 of 9")
        assert answer(claims.somewhere(large)) == Finding(True, "6 of 9")
        assert not answer(claims.somewhere(large), x=0.0).holds
        assert answer(claims.every(claims.somewhere(large), claims.everywhere(large))).note == "6 of 9, 6 of 9"
        assert not answer(claims.every(claims.somewhere(large), claims.everywhere(large))).holds


def made_up_claims(*declared: Claim | Setting) -> claims.Claims:
    fields = {"paper": "must", "name": "made_up_claims", "caption": "", "claims": declared}
    return type("MadeUp", (claims.Claims,), fields)()


class TestClaims:
    def test_rows_of_claims_and_settings(self) -> None:
        made = made_up_claims(
            Claim("order", "Table 1", claims.ordered(X, "must_ow < wor")),
            Claim("largest", "Section 2", claims.number(Numbers("study", "x"), "max"), column="x"),
            Setting("size", "m", "study.sizes.m"), Setting("second", "k", "study.steps.1"),
            Setting("third", "k", "study.steps.2"),
        )  # fmt: skip
        found = all_values(made, records(), {"study": {"sizes": {"m": 30}, "steps": [10, 20]}}).set_index("claim")
        assert found["value"].to_dict() == {"order": 1.0, "largest": 5.0, "size": 30.0, "second": 20.0}
        assert found["configured"].to_dict() == {"order": False, "largest": False, "size": True, "second": True}
        assert made.experiments == ("study",)

    def test_a_run_without_records_says_so(self) -> None:
        order = Claim("order", "", claims.ordered(X, "must_ow < wor"))
        made = made_up_claims(order, Setting("m", "m", "study.sizes.m"))
        found = all_values(made, {})
        assert list(found["note"]) == ["this run has no stated records of study"]
        assert found["value"].isna().all()

    @pytest.mark.parametrize(
        ("claim", "said"),
        [
            (Claim("odd", "", lambda frames: 1.0, ("stuudy",)), "claim odd: unknown experiment 'stuudy'; did you mean"),
            (Claim("odd", "", claims.number(Numbers("study", "xx"))), "claim odd: unknown column of study 'xx'"),
            (Claim("odd", "", claims.agree(X, "yy", "")), "claim odd: unknown column of study 'yy'"),
            (Claim("odd", "", claims.number(Numbers("exact", "xx")), shared={"exact": ("study", "rigorous")}),
             "claim odd: unknown column of study 'xx'"),
            (Setting("odd", "m", "stuudy.sizes.m"), "claim odd: unknown experiment 'stuudy'"),
            (Setting("known", "m", "study.sizes.m"), "each claim comes once, got 'known' twice"),
        ],
    )  # fmt: skip
    def test_a_wrong_claim_is_refused_before_any_work(self, claim: Claim | Setting, said: str) -> None:
        with pytest.raises(PlanError, match=said):
            made_up_claims(Setting("known", "m", "study.sizes.m"), claim).check(KNOWN)

    def test_a_setting_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(DataError, match=r"must name a setting that is there, got 'study\.sizes\.mm'"):
            setting_values(made_up_claims(Setting("odd", "m", "study.sizes.mm")), {"study": {"sizes": {"m": 30}}})


def test_every_declaration_of_every_paper_fits() -> None:
    assert {artefact.identifier for artefact in plan.declared()} == set(artefacts.REGISTRY.names())
