"""Artefacts and advice of the fair comparison, from records in which the answer is known."""

from __future__ import annotations

import math
import re
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsub.data import adult
from dpsub.errors import DataError
from dpsub.papers.fair.figures import NoiseSizes, points, sections
from dpsub.papers.fair.paired import groups, p_value
from dpsub.papers.fair.tables import coverage
from dpsub.papers.fair.takeaways import TAKEAWAYS, Statement, statements
from dpsub.reproduce import artefacts
from dpsub.reproduce.artefact import OutputDirs, build, printed_rows
from dpsub.reproduce.figures import styled
from dpsub.reproduce.report.takeaways import Tables, read_cells
from dpsub.reproduce.statistics import Estimate, paired_difference
from tests.papers.must.conftest import records_of
from tests.unit import made_up_fair

TABLES = ("winners", "measures", "noise", "rankings")


@cache
def of_the_main_paper() -> dict[str, pd.DataFrame]:
    with tempfile.TemporaryDirectory() as folder:
        data = {"adult": Path(folder) / "adult.parquet"}
        adult.write(adult.scaled(adult.stand_in()), data["adult"], label="synthetic", sources={})
        return {name: records_of(name, data) for name in ("linear_regression", "adult_logistic")}


def records(**changes: pd.DataFrame) -> dict[str, pd.DataFrame]:
    made_up = {"fair_comparison": made_up_fair.fair_comparison(), "fair_noise": made_up_fair.fair_noise()}
    return {**made_up, **of_the_main_paper(), **changes}


def tables(folder: Path, **changes: pd.DataFrame) -> Tables:
    dirs, found = OutputDirs.under(folder), {}
    for name in TABLES:
        artefact = artefacts.REGISTRY.get(f"fair/{name}")()
        found[name] = read_cells(build(artefact, records(**changes), printed_rows(artefact), dirs)["csv"])
    return Tables(found)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return tables(tmp_path_factory.mktemp("fair"))


def said(found: list[Statement], heading: str) -> str:
    (statement,) = (one for one in found if one.heading == heading)
    return statement.text


def test_pairing_takes_the_seed_out(made: Tables) -> None:
    where = {"dataset": "adult", "epsilon": "0.5", "sampler": "must_ow"}
    value, lower, upper = (
        made.number("winners", "difference_to_poisson", f"rigorous{end}", **where) for end in ("", "_lower", "_upper")
    )
    assert lower < 0.4 < upper and upper - lower < 0.03
    frame = made_up_fair.fair_comparison().query("variant == 'rigorous' and dataset == 'adult'")
    frame = frame[frame["target_epsilon"] == 0.5]
    wide = frame.pivot(index="replicate", columns="sampler", values="log_loss")
    found = stats.ttest_rel(wide["must_ow"], wide["poisson"])
    interval = found.confidence_interval(0.95)
    assert (value, lower, upper) == pytest.approx((wide["must_ow"].sub(wide["poisson"]).mean(), *interval), rel=1e-9)


def test_p_values_are_students() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=12), rng.normal(size=12)
    assert p_value(paired_difference(x, y)) == pytest.approx(stats.ttest_rel(x, y).pvalue, rel=1e-9)
    assert p_value(Estimate(0.0, 0.0, 12)) == p_value(Estimate(1.0, math.nan, 1)) == 1.0
    assert p_value(Estimate(1.0, 0.0, 12)) == 0.0


def test_coverage_has_the_exact_interval() -> None:
    found = coverage(pd.DataFrame({"covered": [1.0] * 18 + [0.0] * 2}))
    exact = stats.binomtest(18, 20).proportion_ci(0.95, method="exact")
    assert (found.lower, found.upper) == pytest.approx((exact.low, exact.high), rel=1e-9)
    assert coverage(pd.DataFrame({"covered": np.ones(20)})).upper == 1.0


def test_winners_are_ties_where_nothing_tells_them_apart(made: Tables) -> None:
    cells = made.rows("winners", "among_the_best", dataset="*", epsilon="*", sampler="*")
    best = cells.groupby("sampler")["rigorous"].mean()
    assert best["poisson"] == best["wor"] == best["must_oo"] == 1 and best["must_ow"] == 0
    assert cells["note"].str.contains("not told apart").all()
    reverse = cells.groupby("sampler")["consistent"].mean()
    assert reverse["must_ow"] == 1 and reverse["poisson"] == 0


def test_rankings_count_the_reversals(made: Tables) -> None:
    where = {"dataset": "digits", "epsilon": "2"}
    assert made.number("rankings", "rank", "rigorous", **where, sampler="must_ow") == 4
    assert made.number("rankings", "rank", "consistent", **where, sampler="must_ow") == 1
    assert made.number("rankings", "pairs_separated", "rigorous", **where) == 3
    assert made.number("rankings", "pairs_reversed", "consistent", **where) == 3


def test_the_front_holds_what_nothing_beats() -> None:
    found = points(made_up_fair.fair_comparison().query("variant == 'rigorous'"))
    front = found.groupby("sampler")["on_front"].mean()
    assert front["must_ow"] == 1, "the cheapest stays on the front"
    assert front["poisson"] >= 0.75 and front["wor"] >= 0.75, "equals leave it by chance only"
    dear = made_up_fair.fair_comparison().query("variant == 'rigorous'")
    dear = dear.assign(gradients_expected=dear["gradients_expected"].where(dear["sampler"] != "must_ow", 120.0))
    found = points(dear)
    assert not found.loc[found["sampler"] == "must_ow", "on_front"].any()


def test_every_sign_of_the_noise_figure_has_a_key() -> None:
    with styled():
        figure, _ = NoiseSizes().draw(records())
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == len(set(texts))
    assert texts[-2:] == ["papers' pair, no guarantee", "from attack up to proof"]


def test_sections_of_the_noise_hold_one_size_fixed() -> None:
    along_b, along_m, fixed = sections(made_up_fair.fair_noise())
    assert (fixed["m"], fixed["b"]) == (100, 200)
    with pytest.raises(DataError, match="noise against b needs a surface with a two-stage sampler, got none"):
        sections(made_up_fair.fair_noise().assign(surface=0))
    assert set(along_b.loc[along_b["sampler"] == "must_ow", "b"]) == {100, 200, 400}
    assert set(along_m.loc[along_m["sampler"] == "must_ow", "m"]) == {50, 100, 150}


def test_unpaired_seeds_and_two_sizes_are_refused() -> None:
    frame = made_up_fair.fair_comparison()
    short = frame[~((frame["sampler"] == "wor") & (frame["replicate"] == 3))]
    with pytest.raises(DataError, match="samplers must have the same seeds to be paired"):
        list(groups(short))
    with pytest.raises(DataError, match="a sampler must have one size on linear, got more"):
        list(groups(pd.concat([frame, frame.assign(m=50)])))


def test_the_words_follow_from_the_numbers(made: Tables, tmp_path: Path) -> None:
    found = statements(made)
    assert said(found, "Which sampler").startswith("Use any of Poisson, WOR and MUST.OO, a tie: in all 8 comparisons")
    shown = re.match(r"Of 24 paired 95 % intervals against Poisson, (\d+) lie", said(found, "How much it matters"))
    assert shown and 8 <= int(shown[1]) <= 11, "MUST.OW's 8, and of 16 others what chance gives"
    assert said(found, "The papers' pair").endswith("Do not calibrate noise by that pair.")
    assert "24 are told apart the other way" in said(found, "Rankings")
    other = {"poisson": 0.3, "wor": 0.3, "must_oo": 0.3, "must_ow": 0.0}
    turned = statements(tables(tmp_path, fair_comparison=made_up_fair.fair_comparison(worse=other)))
    assert said(turned, "Which sampler").startswith("Use MUST.OW: in all 8 comparisons")
    honest = made_up_fair.fair_comparison()
    honest["epsilon_lower"] = 0.5 * honest["target_epsilon"]
    assert "No attack known here" in said(statements(tables(tmp_path, fair_comparison=honest)), "The papers' pair")


def test_every_number_of_the_advice_stands_in_a_table(made: Tables) -> None:
    found = statements(made)
    assert len(found) == 9
    for cell in (cell for statement in found for cell in statement.evidence):
        where = {"dataset": cell.dataset, "epsilon": cell.epsilon}
        if cell.sampler:
            where["sampler"] = cell.sampler
        if cell.table == "noise":
            where |= {"steps": "50", "m": "*"}
            values = made.rows("noise", cell.column, **where)[cell.source]
            assert cell.value in set(values)
        else:
            assert made.number(cell.table, cell.column, cell.source, **where) == cell.value


def test_the_report_gets_statements_with_their_numbers(made: Tables) -> None:
    sentences = TAKEAWAYS.sentences(made)
    evidence = TAKEAWAYS.evidence(made)
    assert len(sentences) == 9 and list(evidence) == sentences
    assert [len(table) for table in evidence.values()] == [len(one.evidence) for one in statements(made)]
    assert set(evidence[sentences[0]]["table"]) == {"fair/winners"}
    assert TAKEAWAYS.sentences(Tables({})) == []
