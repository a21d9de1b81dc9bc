"""The report as a file: what stands first, cells with addresses, numbers that say what they are, nothing unescaped."""

from __future__ import annotations

import math
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from dpsub.errors import DataError
from dpsub.reproduce import artefacts
from dpsub.reproduce.artefacts import OutputDirs
from dpsub.reproduce.digits import written
from dpsub.reproduce.labels import KINDS, number_kind
from dpsub.reproduce.report import Run, numbers, page
from dpsub.reproduce.report.numbers import CHECKS, address, cell_verdicts
from dpsub.reproduce.report.takeaways import Tables, read_cells, without_stand_ins
from dpsub.reproduce.verdicts import COLUMNS, VARIANTS
from tests import report_run
from tests.papers.cells import cells
from tests.report_run import HOSTILE, Made

CHOSEN = ("must/table2", "must/table6", "must/table8", "must/table9", "must/table10", "must/figureS4", "must/claims")


class Page(HTMLParser):
    """What a browser sees of a page: elements (tag and attributes) and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def given(self, name: str) -> list[str]:
        """Return the values of an attribute."""
        return [attributes[name] for _, attributes in self.elements if name in attributes]

    def count(self, tag: str) -> int:
        return sum(tag == name for name, _ in self.elements)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return report_run.make(tmp_path_factory.mktemp("results"), CHOSEN)


@pytest.fixture(scope="module")
def text(made: Made) -> str:
    return made.write(remarks=["A run of reduced size."])


def section(text: str, name: str) -> str:
    (found,) = re.findall(rf'<article id="{name}".*?</article>', text, flags=re.DOTALL)
    return found


def test_labels_and_remarks_stand_before_everything_else(text: str, made: Made) -> None:
    head = text[text.index("<header>") : text.index("</header>")]
    assert 'adult <strong class="stand-in">synthetic</strong>' in head
    assert "come from a stand-in, not from the real data" in head and "A run of reduced size." in head
    assert "synthetic twins" not in text
    real = made.write(
        data=[{**report_run.ADULT, "label": "real"}, {"dataset": "song", "label": "subset"}], twins=["song", "<rna>"]
    )
    assert "come from a stand-in" not in real and "synthetic data" not in real
    top = real[: real.index("Every printed number")]
    assert "made from song come from a part of the published data" in top
    assert "Numbers made from song, &lt;rna&gt; come from synthetic twins" in top
    for name, there in (("table8", True), ("figureS4", True), ("table6", False)):
        assert ("synthetic data" in section(text, f"must/{name}")) == there


def test_the_page_loads_nothing_and_its_links_lead_somewhere(text: str, made: Made) -> None:
    page = Page(text)
    (source,) = [value for name in ("src", "srcset", "action", "data") for value in page.given(name)]
    assert source.startswith("data:image/png")
    assert [attributes["href"] for tag, attributes in page.elements if tag == "link"] == ["data:,"]
    assert "default-src 'none'" in text and "@import" not in text and "url(" not in text.replace("data:", "")[:20000]
    ids = page.given("id")
    assert len(ids) == len(set(ids))
    for link in page.given("href"):
        if link.startswith("#"):
            assert link.startswith("#numbers?") or link[1:] in {*ids, *page.given("data-cell")}, link
        else:
            assert link.startswith("data:") or (made.page.parent / link).resolve().exists(), link


def test_every_printed_number_has_a_line_and_its_verdict(text: str, made: Made) -> None:
    page, expected = Page(text), cell_verdicts(made.run.comparison)
    assert Counter(value.split()[0] for value in page.given("data-verdict")) == Counter(expected["verdict"])
    addresses = {address(*key) for key in expected[["paper", "artefact", "row", "column"]].itertuples(index=False)}
    assert addresses == set(page.given("data-cell"))
    assert addresses >= {"must/table9/experiment=1/sampler=poisson/distinct_mean"}
    in_tables = {address for address in addresses if "/table6/" in address}
    assert in_tables and in_tables <= set(page.given("id"))


def test_each_row_says_what_kind_of_check_it_is(text: str, made: Made) -> None:
    row = re.compile(r'<tr data-cell.*?data-kind="(\w+)".*?<span class="what quiet">(.*?)</span>', flags=re.DOTALL)
    rows = row.findall(text)
    assert len(rows) == len(cell_verdicts(made.run.comparison))
    assert all(words == CHECKS[kind][0] for kind, words in rows)
    assert {"exact", "monte_carlo", "claim", "setting", "timing"} <= {kind for kind, _ in rows}
    assert all(f"<dt>{name}</dt><dd>" in text for name, _ in CHECKS.values())


def test_the_paper_and_ours_stand_one_above_the_other(made: Made) -> None:
    artefact = made.run.artefacts[1]
    table = read_cells(made.run.dirs.files(artefact)["csv"])
    blocks = numbers.blocks_of(artefact, table)
    assert [row.source for row in blocks[0].groups[0].rows][:2] == ["printed", "stated"]
    rows = [row for block in blocks for group in block.groups for row in group.rows]
    entries = [entry for row in rows for entry in row.entries if entry and entry.mark]
    found = table[table["verdict"].isin(["differs", "fails"]) | table["verdict"].str.endswith("_as_done")]
    assert len(found)
    assert {name for entry in entries for name in entry.errata} == set(" ".join(found["erratum"]).split())


def test_no_printed_number_stands_next_to_one_of_a_stand_in(made: Made) -> None:
    (table8,) = [one for one in made.run.artefacts if one.identifier == "must/table8"]
    files = made.run.dirs.files(table8)
    table = read_cells(files["csv"])
    groups = [group for block in numbers.blocks_of(table8, table) for group in block.groups]
    columns = [column for group in groups for column in zip(*(row.entries for row in group.rows), strict=True)]
    synthetic = [{entry.mark for entry in column if entry} >= {"stand_in"} for column in columns]
    printed = [group.rows[0].source == "printed" for group in groups for _ in group.rows[0].entries]
    assert any(synthetic) and any(there and column[0] for column, there in zip(columns, printed, strict=True))
    assert not any(odd and there and column[0] for column, odd, there in zip(columns, synthetic, printed, strict=True))
    text = files["md"].read_text(encoding="utf-8")
    assert "† from other data than the paper's (synthetic)" in text and "0.976" not in text and "| 2.654 |" in text
    known, kept = Tables({"table8": table}), Tables({"table8": without_stand_ins(table8, table)})
    for tables, finite in ((known, [True, True]), (kept, [True, False])):
        found = [tables.number("table8", name, "stated", sampler="poisson") for name in ("sigma_times_m", "accuracy")]
        assert [math.isfinite(number) for number in found] == finite
    lines = [line for line in numbers.lines(made.run.comparison, [table8], {}) if line.place == "must/table8"]
    found = {quantity: {(line.data, bool(line.values)) for line in lines if line.quantity == quantity}
             for quantity in ("accuracy", "σ m")}  # fmt: skip
    assert found == {"accuracy": {("synthetic", False)}, "σ m": {("simulated", True)}}


def test_privacy_numbers_say_what_they_are(text: str) -> None:
    table8 = section(text, "must/table8")
    assert set(re.findall(r'class="kind (\w+)"', table8)) >= {"paper", "lower", "upper"}
    for variant, row in re.findall(r'<tr class="(\w+)">(.*?)</tr>', table8, flags=re.DOTALL):
        assert variant == "rigorous" or set(re.findall(r'class="kind (\w+)"', row)) <= {"paper"}, variant


def test_names_say_what_a_privacy_number_is() -> None:
    for variant, kinds in {
        "stated": {"delta_amplified": "paper", "accuracy": "", "delta_amplified_formula": ""},
        "consistent": {"delta_c_upper": "paper"},
        "rigorous": {"delta_c_upper": "upper", "epsilon_c_lower": "lower", "epsilon_c_pair": "paper",
                     "optimum": "exact", "epsilon": "upper", "noise_refuted": "lower", "noise_over_wor": ""},
    }.items():  # fmt: skip
        assert {column: number_kind(column, variant) for column in kinds} == kinds


def test_artefacts_know_their_own_privacy_numbers() -> None:
    noise, exact = (artefacts.REGISTRY.get(name)() for name in ("fair/noise", "bun/tableA"))
    assert noise.number_kind("epsilon_lower", "consistent") == "lower"  # attained with the noise of the papers' pair
    assert noise.number_kind("noise_multiplier", "consistent") == "paper"
    assert exact.number_kind("upper", "rigorous") == "exact" and exact.number_kind("upper", "stated") == "paper"
    for artefact in (kind() for kind in artefacts.REGISTRY.members().values()):
        assert {artefact.number_kind("epsilon", variant) for variant in VARIANTS} <= set(KINDS)


def test_every_erratum_stands_with_evidence_and_command(text: str) -> None:
    for name, command in (("E1", "test_errata.py -k e01"), ("BL5", "-k bl5_"), ("BN16", "-k bn16_")):
        found = section(text, name)
        assert "<strong>Claim.</strong>" in found and command in found
    assert "show_erratum.py E1\n" in section(text, "E1")
    assert "show_erratum.py" not in section(text, "BN12")  # it has no cell


def test_provenance_stands_at_the_foot(text: str, made: Made, tmp_path: Path) -> None:
    foot = text[text.index("<footer") :]
    assert "0123abcd" in foot and "seed: 7" in foot and "numpy 2.0.0" in foot
    head = "s\th:m:s\tmax_rss\tcpu_time\n"
    for part, row in (("1-of-2", "12.5\t0:00:12\t200.5\t12.0"), ("2-of-2", "7.5\t0:00:07\t-\t-")):
        (tmp_path / "adult_logistic/stated").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"adult_logistic/stated/{part}.tsv").write_text(f"{head}{row}\n", encoding="utf-8")
    assert page.stages(tmp_path) == [{"name": "adult_logistic", "jobs": 2, "seconds": 20.0, "peak_mib": 200.5}]
    timed = made.write(timings=tmp_path)
    assert "Times: 20 s in 2 jobs" in timed and "adult_logistic" in timed


def test_same_input_same_bytes(made: Made, text: str) -> None:
    assert made.write(remarks=["A run of reduced size."]) == text


def test_hostile_names_stay_text(made: Made, text: str) -> None:
    plain, hostile = Page(text), Page(made.write(**report_run.hostile(made)))
    for tag, times in (("script", 2), ("img", 1)):
        assert hostile.count(tag) == plain.count(tag) == times
    assert not [name for _, attributes in hostile.elements for name in attributes if name.startswith("on")]
    assert sum(HOSTILE in part for part in hostile.texts) >= 8
    assert all(link.startswith(("#", "data:", "../")) for link in hostile.given("href"))


def test_prose_obeys_no_html_and_loads_nothing() -> None:
    shown = str(page.html(f"**a** {HOSTILE} ![x](http://x/y.png) [z](javascript:w)\n\n<div>b</div>"))
    assert "<strong>a</strong>" in shown
    assert not re.search(r"<(script|img|div|a|details)\b", shown)
    assert "<mfrac>" in numbers.formula(r"\frac{m}{n}")
    assert "<script" not in numbers.formula(HOSTILE)


def test_a_missing_file_is_named(made: Made, tmp_path: Path) -> None:
    for changes in ({"dirs": OutputDirs.under(tmp_path)}, {"errata": [tmp_path / "none.md"]}):
        made.page.unlink(missing_ok=True)
        with pytest.raises(DataError, match=r"^the report needs .*, got no .*; (build|restore) "):
            made.write(**changes)
        assert not made.page.exists()


def test_an_empty_run_says_so(tmp_path: Path) -> None:
    run = Run([], OutputDirs.under(tmp_path), pd.DataFrame(columns=list(COLUMNS)), data=[], errata=[], provenance={})
    text = Made(tmp_path, run).write()
    assert "Data:\nsimulated only." in text and "This run has no number to compare." in text


def test_numbers_of_the_takeaways_come_from_the_tables(made: Made, text: str) -> None:
    found = Tables({"table6": read_cells(made.run.dirs.files(made.run.artefacts[1])["csv"])})
    where = {"epsilon_amplified": "0.001", "sampler": "must_ow"}
    value = found.number("table6", "rmse_mean", "consistent", **where)
    error = found.number("table6", "rmse_mean", "consistent_standard_error", **where)
    assert f"MUST.OW {written(value, error=error)}" in text


def test_look_up_needs_exactly_one_cell() -> None:
    rows = [("3", sampler, "mean", value) for sampler, value in (("wor", 300.0), ("must_ww", 225.0))]
    tables, here = Tables({"table9": cells("experiment sampler column stated", *rows)}), {"experiment": "3"}
    assert tables.number("table9", "mean", "stated", **here, sampler="wor") == 300
    for source, fields in (("stated", {}), ("rigorous", {"sampler": "wor"}), ("stated", {"sampler": "wor", "b": "1"})):
        assert math.isnan(tables.number("table9", "mean", source, **here, **fields))
    assert len(tables.rows("table9", "mean", **here, sampler="*")) == 2
    assert tables.rows("table1", "mean").empty


def test_a_table_without_cells_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table8.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="must be a table of cells, got the columns a, b; build it again"):
        read_cells(path)
