"""The report of this paper as a file: its first lines, cells with addresses, numbers with their
meaning, nothing unescaped."""

from __future__ import annotations

import html
import json
import math
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from dpsub.errors import DataError
from dpsub.reproduce.artefacts import OutputDirs
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.digits import written
from dpsub.reproduce.papers import papers
from dpsub.reproduce.report import (
    cited,
    judgement,
    numbers,
    oversized,
    page,
    write_report,
)
from dpsub.reproduce.report.cells import LookUp, read_cells, without_stand_ins
from dpsub.reproduce.report.citation import bibtex
from dpsub.reproduce.report.numbers import CHECKS, address, cell_verdicts
from dpsub.reproduce.verdicts import AGREEING, FAILING, spoken
from tests import report_run
from tests.documentation.test_words import MOST, NUMBER, PLACE
from tests.papers.must.sizes import SMALLER
from tests.report_run import HOSTILE, Made

CHOSEN = (
    "must/table3",
    "must/table6",
    "must/table8",
    "must/table9",
    "must/table10",
    "must/figureS4",
    "must/claims",
)
COARSE = {"composition": SMALLER["composition"]}
"""Settings over the sizes of the smoke run: pages look the same, and are there sooner."""
TABLE8 = {"n": 120, "b": 12, "m": 4, "epsilon": 0.5, "n_compositions": 10}
SHOWN = {"proved_composition": {"table8": TABLE8}}

MATHML = "http://www.w3.org/1998/Math/MathML"

ELEMENTS = "math mrow mi mn mo mfrac msub msup msubsup munder mover munderover mtext mspace mstyle"

"""Names of the elements that formulas have."""


class Page(HTMLParser):
    """Elements (tag and attributes) and texts of a page, as a browser gets them."""

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
    return report_run.make(tmp_path_factory.mktemp("results"), CHOSEN, COARSE, SHOWN)


@pytest.fixture(scope="module")
def pages(made: Made) -> dict[str, str]:
    return made.write(remarks=["A run of reduced size."])


@pytest.fixture(scope="module")
def text(pages: dict[str, str]) -> str:
    """Return the page of the paper."""
    return pages["must"]


def section(text: str, name: str) -> str:
    (found,) = re.findall(rf'<article id="{name}".*?</article>', text, flags=re.DOTALL)
    return found


def test_the_summary_says_first_what_came_out(pages: dict[str, str], made: Made) -> None:
    judged = cell_verdicts(made.run.comparison)["verdict"].value_counts()
    good, bad = (sum(judged.get(name, 0) for name in names) for names in (AGREEING, FAILING))
    top = pages["index"][: pages["index"].index("</section>")]
    assert (
        f"<strong>{good} are confirmed</strong>"
    ) in top and f"<strong>{bad} differ or fail</strong>" in top
    table8 = read_cells(made.run.dirs.files(made.run.artefacts[2])["csv"])
    attack = table8[
        (table8["column"] == "delta_c_lower")
        & (table8["statistic"] == "")
        & (table8["sampler"] != "")
    ]
    # what an attack attains is a lower bound, and rounded down
    least, most = (
        written(end, "1.00e+00", side="lower")
        for end in (attack["rigorous"].min(), attack["rigorous"].max())
    )
    assert "Worst finding." in top and f"{least} to {most}" in top
    good, of = (
        (
            read_cells(made.run.dirs.files(made.run.artefacts[0])["csv"])["verdict"] == "reproduced"
        ).sum(),
        240,
    )
    assert f"Table 3: {good} of {of} printed" in top
    (line,) = re.findall(r"printed numbers and statements: (.*?)\. They are", pages["index"])
    terms, _, total = re.sub(r"\(.*?\)", "", line).rpartition(" = ")
    assert sum(int(term.split()[0]) for term in terms.split(" + ")) == int(total) == judged.sum()
    assert f"They are the {len(made.run.comparison)} rows of" in pages["index"]
    assert "For one query the theory stands." in top and "<strong>Table 8: " in top
    assert 'href="must.html#must/table8"' in top and 'href="must.html#E2"' in top and "<svg" in top


def test_data_that_are_not_the_papers_are_named_in_one_line(
    pages: dict[str, str], made: Made
) -> None:
    top = pages["index"][: pages["index"].index('id="verdicts"')]
    assert top.count('class="warning"') == 2 and "A run of reduced size." in top
    assert "a synthetic stand-in: adult" in top and "synthetic twins" not in top
    real = made.write(data=[{**report_run.ADULT, "label": "real"}])
    assert "synthetic stand-in" not in real["index"] + real["must"]
    assert "real: adult" in real["index"] and "real: adult" in real["must"]
    made.write(remarks=["A run of reduced size."])
    for name, there in (("table8", True), ("figureS4", True), ("table6", False)):
        assert ("synthetic data" in section(pages["must"], f"must/{name}")) == there


def test_links_say_where_they_lead(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        links = re.findall(r"<a\b[^>]*>(.*?)</a>", text, flags=re.DOTALL)
        texts = [html.unescape(re.sub(r"<[^>]+>", "", link)).strip() for link in links]
        assert texts and all(texts), name
        assert not {"see", "here", "this"} & {one.lower() for one in texts}, name
    assert '">Table 8</a>, <a href="must.html#E2">erratum E2</a>' in pages["index"]


def test_a_run_is_made_again_by_its_own_configuration(pages: dict[str, str], made: Made) -> None:
    assert "<code>make reproduce</code>" in pages["index"]
    other = made.write(options="--configfile mine/run/config.yaml")
    assert (
        "<code>.venv/bin/snakemake --cores 2 --configfile mine/run/config.yaml</code>"
    ) in other["index"]
    assert ("snakemake --cores 2 must/table8 --configfile mine/run/config.yaml</code>") in other[
        "must"
    ]
    made.write(remarks=["A run of reduced size."])


def test_pages_load_nothing_and_their_links_lead_somewhere(
    pages: dict[str, str], made: Made
) -> None:
    found = {name: Page(text) for name, text in pages.items()}
    ids = {name: page.given("id") for name, page in found.items()}
    for name, shown in found.items():
        loaded = [one for key in ("src", "srcset", "action", "data") for one in shown.given(key)]
        assert all(one.startswith("data:image/webp") for one in loaded)
        assert [attributes["href"] for tag, attributes in shown.elements if tag == "link"] == [
            "data:,"
        ]
        assert (
            "default-src 'none'" in pages[name]
            and "@import" not in pages[name]
            and "url(" not in pages[name]
        )
        assert len(ids[name]) == len(set(ids[name]))
        for link in shown.given("href"):
            where, _, place = link.partition("#")
            target = where.removesuffix(".html") or name
            if target not in found:
                assert link == "data:," or (made.folder / link).resolve().exists(), link
            elif target != "numbers":
                assert not place or place in ids[target], link
    places = json.loads(re.search(r'id="places">(.*?)</script>', pages["index"])[1])  # type: ignore[index]
    assert {link.partition("#")[2] for _, link, _, _ in places} <= set(ids["must"])
    assert len([title for title, *_ in places if title.startswith("Table 8. ")]) == 1


def test_prose_is_finished(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        prose = re.sub(
            r"<(code|pre|script|style|math)\b.*?</\1>",
            "",
            text[text.index("<main") :],
            flags=re.DOTALL,
        )
        seen = html.unescape(re.sub(r"<[^>]+>", "", prose))
        for stray in (r"\{[A-Za-z_]+\}", r"\*\*", r"\^\{", "`", r"\\[a-z]+"):
            assert not re.findall(rf".{{0,30}}{stray}.{{0,30}}", seen), name


def visible(page: str) -> str:
    """Return the words of a page outside code."""
    hidden = re.compile(r"<(code|pre|script|style|math)\b.*?</\1>", re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", hidden.sub(" ", page)))


def formulas_in(text: str) -> list[ElementTree.Element]:
    """Return the formulas of a page; each must be well-formed by itself."""
    found = re.findall(r"<math\b.*?</math>", text, flags=re.DOTALL)
    assert len(found) == text.count("</math")
    return [ElementTree.fromstring(one) for one in found]


def test_formulas_are_elements_as_they_were_written(tmp_path: Path) -> None:
    """A browser reads whole elements of MathML in Table 2; `<math` and a no-break space begins
    none."""
    made = report_run.make(tmp_path, ("must/table2", "must/table3"), COARSE)
    found = formulas_in(made.write()["must"])
    names = {part.tag.removeprefix(f"{{{MATHML}}}") for one in found for part in one.iter()}
    assert len(found) >= 12 and names <= set(ELEMENTS.split())
    assert sum(any(part.tag.endswith("msup") for part in one.iter()) for one in found) >= 4


def test_no_tag_holds_a_no_break_space(pages: dict[str, str]) -> None:
    for text in pages.values():
        assert not re.findall(r"<[a-zA-Z/][^<>]*\xa0[^<>]*>", re.sub(r'"[^"]*"', '""', text))


def test_names_of_keys_and_claims_stay_inside(pages: dict[str, str]) -> None:
    # one letter and an index is a symbol, such as x_i
    inside = re.compile(
        r"\b\w*[A-Za-z0-9]{2,}_[A-Za-z0-9]{2,}\w*\b|\bn_\w{4,}|\b[A-Z]\d{3}\b|\beps-"
    )
    for name, text in pages.items():
        assert not inside.findall(visible(text)), name


def test_claims_that_print_no_sentence_are_named_by_their_place(pages: dict[str, str]) -> None:
    rows = re.findall(r'<tr id="must/claims[^>]*><th scope="row">([^<]*)', pages["must"])
    assert "Figure S2, n: 10000" in rows
    assert "Section S8, Laplace, crossover, δ: 0.25" in rows
    # A place and a quantity, or a sentence: nothing is a bare number or the name of a row.
    assert not [row for row in rows if re.match(r"[\d.]+$|(s2|s8|fig\d|fa|exp\d) ", row)]


def test_headings_are_as_printed_and_lead_to_their_errata(text: str) -> None:
    table8 = section(text, "must/table8")
    assert ">Table 8. Experiment 3: logistic regression on Adult</h3>" in table8
    assert (
        '<a href="#E1">E1</a> The label is among the predictors'
    ) in table8 and '<a href="#E2">E2</a>' in table8
    assert '<a href="#must/table8">Table 8</a>' in section(text, "E2")
    contents = text[
        text.index('class="contents"') : text.index("</nav>", text.index('class="contents"'))
    ]
    titles = re.findall(r'<a href="#must/\w+">(Table \d+)', contents)
    assert titles == ["Table 3", "Table 6", "Table 8", "Table 9", "Table 10"]


def test_a_judgement_stands_above_every_artefact(text: str, made: Made) -> None:
    expected = {"bad": FAILING, "done": ("_as_done", "open"), "good": AGREEING}
    judged = cell_verdicts(made.run.comparison)
    for artefact in made.run.artefacts:
        article = section(text, artefact.identifier)
        ((colour, answer),) = re.findall(
            r'<p class="judgement (\w+)"><strong>(.*?)\.</strong>', article
        )
        number = judgement.number_of(artefact)
        assert answer.startswith(f"{number}: ") or not number
        assert article.index('class="judgement') < article.index('class="caption"')
        own = judged.loc[judged["artefact"] == artefact.name, "verdict"]
        said = judgement.about(artefact, judged)["verdict"]
        found = [*own, *said]
        worst = next(
            (
                name
                for name, endings in expected.items()
                if any(verdict.endswith(endings) for verdict in found)
            ),
            "plain",
        )
        assert colour == worst, artefact.identifier


def crowded(page: str) -> list[str]:
    """Return the items of lists with more numbers than a reader can take in; a table in an item,
    and parts that are closed until they are asked for, have their own form. Errata have theirs in
    every entry."""
    items = re.findall(r"<li\b[^>]*>(.*?)(?=</li>|<li\b)", page, re.DOTALL)
    prose = [
        re.sub(r"<table.*?</table>|<details.*?</details>|<[^>]+>", "", one, flags=re.DOTALL)
        for one in items
        if not re.match(r"\s*(<p>)?<strong>(Claim|Evidence|Corrected|Rigorous|Effect)\b", one)
    ]
    return [one for one in prose if len(NUMBER.findall(PLACE.sub("", one))) > MOST]


def test_no_item_of_a_list_holds_more_than_three_numbers(pages: dict[str, str]) -> None:
    assert {name: crowded(page) for name, page in pages.items() if crowded(page)} == {}
    assert crowded("<ul><li>0.1, 0.2, 0.3 <table>0.4</table></li></ul>") == []
    assert len(crowded("<ul><li>0.1, 0.2, 0.3 and 0.4</li></ul>")) == 1


def test_bounds_that_an_attack_exceeds_are_red(text: str, made: Made) -> None:
    table8 = read_cells(made.run.dirs.files(made.run.artefacts[2])["csv"])
    rows = table8[table8["statistic"] == ""].set_index(["column", "sampler"])
    printed = pd.to_numeric(rows.loc["delta_c_upper", "printed"])
    refuted = int((rows.loc["delta_c_lower", "rigorous"] > printed).sum())
    article = section(text, "must/table8")
    assert article.count('class="refuted"') == refuted > 0
    assert f'{refuted} <span class="verdict bad">refuted by an attack</span>' in article


def _judged(pages: dict[str, str]) -> list[tuple[str, str]]:
    """Return the verdict and the kind of check of each row of the list, as they are shown."""
    row = r'<td><span class="verdict \w+">(.*?)</span> <small>(.*?)</small>'
    return re.findall(row, pages["numbers"])


def test_every_printed_number_has_a_line_and_its_verdict(pages: dict[str, str], made: Made) -> None:
    listed, expected = Page(pages["numbers"]), cell_verdicts(made.run.comparison)
    assert Counter(verdict for verdict, _ in _judged(pages)) == Counter(
        map(spoken, expected["verdict"])
    )
    addresses = {
        address(*key)
        for key in expected[["paper", "artefact", "row", "column"]].itertuples(index=False)
    }
    assert "must/table9/experiment=1/sampler=poisson/distinct_mean" in addresses
    # a number that stands next to none of ours, in a figure or where data stand in, leads to the
    # heading
    elsewhere = {one for one in addresses if one.startswith(("must/figure", "must/table8"))}
    assert addresses - elsewhere <= set(Page(pages["must"]).given("id"))
    links = {f"must.html#{one}" for one in addresses - elsewhere} | {"must.html#must/table8"}
    assert links <= set(listed.given("href"))


def test_each_row_says_what_kind_of_check_it_is(pages: dict[str, str], made: Made) -> None:
    kinds = made.run.comparison.drop_duplicates(["paper", "artefact", "row", "column"])["kind"]
    judged = _judged(pages)
    assert Counter(check for _, check in judged) == Counter(CHECKS[kind][0] for kind in kinds)
    fails = [verdict in FAILING for verdict, _ in judged]
    assert any(fails) and fails == sorted(fails, reverse=True)
    assert {"exact", "monte_carlo", "claim", "setting", "timing"} <= set(kinds)
    assert all(f"<dt>{name}</dt><dd>" in pages["index"] for name, _ in CHECKS.values())


def test_statements_that_fail_come_first_with_their_reason(text: str) -> None:
    rows = re.findall(r'<tr id="must/claims.*?(?=<tr|</tbody>)', text, flags=re.DOTALL)
    fails = ['class="verdict bad"' in row for row in rows]
    assert 0 < sum(fails) < len(rows) and fails == sorted(fails, reverse=True)
    assert all(re.search(r'<td class="note">\w', row) for row in rows[: sum(fails)])


def test_the_paper_and_ours_stand_one_above_the_other(made: Made) -> None:
    artefact = made.run.artefacts[1]
    table = read_cells(made.run.dirs.files(artefact)["csv"])
    blocks = numbers.blocks_of(artefact, table)
    assert [row.source for row in blocks[0].groups[0].rows][:2] == ["printed", "stated"]
    rows = [row for block in blocks for group in block.groups for row in group.rows]
    entries = [entry for row in rows for entry in row.entries if entry and entry.mark]
    found = table[
        table["verdict"].isin(["differs", "fails"]) | table["verdict"].str.endswith("_as_done")
    ]
    assert len(found)
    assert {name for entry in entries for name in entry.errata} == set(
        " ".join(found["erratum"]).split()
    )


def test_no_printed_number_stands_next_to_one_of_a_stand_in(made: Made) -> None:
    (table8,) = [one for one in made.run.artefacts if one.identifier == "must/table8"]
    files = made.run.dirs.files(table8)
    table = read_cells(files["csv"])
    groups = [group for block in numbers.blocks_of(table8, table) for group in block.groups]
    columns = [
        column
        for group in groups
        for column in zip(*(row.entries for row in group.rows), strict=True)
    ]
    synthetic = [{entry.mark for entry in column if entry} >= {"stand_in"} for column in columns]
    printed = [group.rows[0].source == "printed" for group in groups for _ in group.rows[0].entries]
    assert any(synthetic) and any(
        there and column[0] for column, there in zip(columns, printed, strict=True)
    )
    assert not any(
        odd and there and column[0]
        for column, odd, there in zip(columns, synthetic, printed, strict=True)
    )
    text = files["md"].read_text(encoding="utf-8")
    assert (
        ("† from other data than the paper's (synthetic)") in text
        and "0.976" not in text
        and "| 2.654 |" in text
    )
    with_stand_ins = LookUp({"table8": table})
    without = LookUp({"table8": without_stand_ins(table8, table)})
    for cells_of_run in (with_stand_ins, without):
        noise = cells_of_run.number("table8", "sigma_times_m", "stated", sampler="poisson")
        assert math.isfinite(noise)
    assert math.isfinite(with_stand_ins.number("table8", "accuracy", "stated", sampler="poisson"))
    with pytest.raises(MissingRecordsError):
        without.number("table8", "accuracy", "stated", sampler="poisson")
    lines = [
        line
        for line in numbers.lines(made.run.comparison, [table8], {}, {})
        if line.place == "must/table8"
    ]
    found = {
        quantity: {(line.data, bool(line.values)) for line in lines if line.quantity == quantity}
        for quantity in ("accuracy", "σ m")
    }
    assert found == {"accuracy": {("synthetic", False)}, "σ m": {("simulated", True)}}


def test_privacy_numbers_say_what_they_are(text: str) -> None:
    table8 = section(text, "must/table8")
    assert set(re.findall(r'<i class="(\w+)"', table8)) >= {"paper", "lower", "upper"}
    for variant, row in re.findall(
        r'<th scope="row">([a-z '
        r"]+)(.*?)(?=<tr|</tbody>)",
        table8,
        flags=re.DOTALL,
    ):
        assert variant == "rigorous" or set(re.findall(r'<i class="(\w+)"', row)) <= {"paper"}, (
            variant
        )


def test_a_number_is_written_in_one_way(made: Made) -> None:
    """A number has the same form in the list of all numbers as in its table."""
    (table8,) = [one for one in made.run.artefacts if one.identifier == "must/table8"]
    table = read_cells(made.run.dirs.files(table8)["csv"])
    groups = [group for block in numbers.blocks_of(table8, table) for group in block.groups]
    rigorous = [row for group in groups for row in group.rows if row.source == "rigorous"]
    in_table = {entry.text for row in rigorous for entry in row.entries if entry}
    listed = [
        line.values["rigorous"].text
        for line in made.run.lines
        if line.place == "must/table8" and "rigorous" in line.values
    ]
    assert len(listed) == 10 and set(listed) <= in_table
    # an attack and a proof of one delta end in the same place
    assert all(re.fullmatch(r"0\.\d{3}|1\.00|0|\d\.\d\d × 10.*", text) for text in listed)


def test_a_number_can_be_cited(pages: dict[str, str], made: Made) -> None:
    entry = made.run.made_by["bibtex"]
    assert entry.startswith("@software{dpsub,") and entry.endswith("}")
    for field in ("author = {{the dpsub authors}}", "version = {0.2.0}", "year = {2026}"):
        assert f"  {field}," in entry
    assert "note = {commit 0123abcd}" in entry
    assert html.escape(entry) in pages["index"] and "How to cite" in pages["index"]
    for text in pages.values():
        facts = json.loads(re.search(r'id="run">(.*?)</script>', text)[1])  # type: ignore[index]
        assert facts["bibtex"] == entry and facts["papers"]["must"] == "Zhao and Liu 2023"
    people = [{"family-names": "Zhao", "given-names": "Xingyuan"}, {"name": "a group"}]
    of_people = bibtex({"authors": people, "title": "T"}, "1", "c", "")
    assert "author = {Zhao, Xingyuan and {a group}}" in of_people and "year" not in of_people


def test_every_erratum_stands_with_evidence_and_command(text: str, made: Made) -> None:
    compared = set(" ".join(made.run.comparison["erratum"]).split())
    assert "E1" in compared and "E15" not in compared
    for number in range(1, 19):
        found, own = section(text, f"E{number}"), f"show_erratum.py E{number}\n"
        assert "<strong>Claim.</strong>" in found and "To see it:" in found
        assert f"E{number}" not in compared or f"-k e{number:02}" not in found or own in found
    assert ("test_errata.py -k e15") in section(text, "E15") and "show_erratum.py" not in section(
        text, "E15"
    )
    # of a paper that is not in this run; letters of pictures may be any
    assert "BL5" not in re.sub(r"base64,[^\"')]+", "", text)


@pytest.mark.slow
def test_errata_mark_numbers_that_the_run_does_not_have(made: Made) -> None:
    """At reduced size and with stand-ins the numbers of the sentences are those of the run that is
    kept."""
    kept = cited.kept_of(papers()["must"])
    assert kept is not None
    look_up = LookUp(kept)
    attack = look_up.number("table8", "delta_c_lower", "rigorous", sampler="wor")
    reduced = made.write(published=[])["must"]
    assert f"{math.floor(1000 * attack) / 1000:.3f}‡" in section(reduced, "E2")
    assert (
        cited.origin_of(papers()["must"]) in reduced
        and ("‡ This run has no such number") in reduced
    )
    whole = made.write(published=["must/table9"])["must"]
    mean = look_up.number("table9", "law_mean", "stated", sampler="must_ow", experiment="2")
    assert f"{mean:.2f}‡" not in section(whole, "E7") and f"{mean:.2f}‡" in section(reduced, "E7")
    made.write(remarks=["A run of reduced size."])


def test_provenance_stands_at_the_foot(pages: dict[str, str], made: Made, tmp_path: Path) -> None:
    foot = pages["index"][pages["index"].index("<footer") :]
    assert "0123abcd" in foot and "seed: 7" in foot and "numpy 2.0.0" in foot
    assert "commit 0123abcd" in pages["must"][pages["must"].index("<footer") :]
    head = "s\th:m:s\tmax_rss\tcpu_time\n"
    for part, row in (("1-of-2", "12.5\t0:00:12\t200.5\t12.0"), ("2-of-2", "7.5\t0:00:07\t-\t-")):
        (tmp_path / "adult_logistic/stated").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"adult_logistic/stated/{part}.tsv").write_text(
            f"{head}{row}\n", encoding="utf-8"
        )
    assert page.stages(tmp_path) == [
        {"name": "adult_logistic", "jobs": 2, "seconds": 20.0, "peak_mib": 200.5}
    ]
    timed = made.write(timings=tmp_path)["index"]
    assert "Times: 20 s in 2 jobs" in timed and "adult_logistic" in timed


@pytest.mark.thorough
def test_same_input_same_bytes(made: Made, pages: dict[str, str]) -> None:
    assert made.write(remarks=["A run of reduced size."]) == pages


@pytest.mark.slow
def test_pages_written_in_parallel_have_the_same_bytes(made: Made, tmp_path: Path) -> None:
    for processes in (1, 2):
        write_report(tmp_path / str(processes), made.run, processes=processes)
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert "index.html" in names and len(names) >= 3
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_a_report_that_is_too_large_is_told(made: Made, tmp_path: Path) -> None:
    assert oversized(made.folder) == []
    (tmp_path / "index.html").write_bytes(b" " * 800_000)
    (tmp_path / "must.html").write_bytes(b" " * 2_400_000)
    (said,) = oversized(tmp_path)
    assert said.startswith("index.html must stay below 0.75 MB, got 0.8 MB in ")
    (tmp_path / "must.html").write_bytes(b" " * 2_600_000)
    assert len(oversized(tmp_path)) == 2


def test_hostile_names_stay_text(made: Made, pages: dict[str, str]) -> None:
    hostile, seen = (
        {name: Page(text) for name, text in made.write(**report_run.hostile(made)).items()},
        0,
    )
    for name, shown in hostile.items():
        for tag in ("script", "img"):
            assert shown.count(tag) == Page(pages[name]).count(tag)
        assert not [
            one for _, attributes in shown.elements for one in attributes if one.startswith("on")
        ]
        assert all(
            re.match(r"#|data:|\.\./|(index|must|numbers)\.html", link)
            for link in shown.given("href")
        )
        seen += sum(HOSTILE in part for part in shown.texts)
    assert seen >= 8


def test_a_missing_file_is_named(made: Made, tmp_path: Path) -> None:
    for changes in ({"dirs": OutputDirs.under(tmp_path)}, {"errata": [tmp_path / "none.md"]}):
        for path in made.folder.glob("*.html"):
            path.unlink()
        with pytest.raises(DataError, match=r"^the report needs .*, got no .*; (build|restore) "):
            made.write(**changes)
        assert not list(made.folder.glob("*.html"))


def test_numbers_of_the_takeaways_come_from_the_tables(made: Made, text: str) -> None:
    found = LookUp({"table6": read_cells(made.run.dirs.files(made.run.artefacts[1])["csv"])})
    where = {"epsilon_amplified": "0.001", "sampler": "must_ow"}
    value = found.number("table6", "rmse_mean", "consistent", **where)
    error = found.number("table6", "rmse_mean", "consistent_standard_error", **where)
    assert re.search(rf"MUST\.OW\s*(</td>)?<td[^>]*>{written(value, error=error)}", text)


def test_a_takeaway_leads_to_the_errata_of_its_cells(text: str) -> None:
    (said,) = re.findall(
        r'<li id="must-\d+"><strong>Privacy of many '
        r"steps.*?</li>",
        text,
        flags=re.DOTALL,
    )
    assert 'href="must.html#E2">E2</a>' in said
