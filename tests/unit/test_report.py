"""The report: what stands first, numbers from the tables, links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsub import artefacts, comparison
from dpsub.artefacts import OutputDirs, build, printed_rows
from dpsub.artefacts.base import Artefact, Records
from dpsub.errors import DataError
from dpsub.report import REGISTRY, write_report
from dpsub.report.index import cell_verdicts
from dpsub.report.must import MustTakeaways
from dpsub.report.takeaways import Tables, read_cells
from tests.unit import made_up_records

CHOSEN = ("must/table6", "must/table8", "must/table9", "must/table10", "must/figureS4", "must/figure3", "must/claims")


class Run:
    """A results tree of a few artefacts."""

    def __init__(self, results: Path, records: Records) -> None:
        self.results, self.dirs = results, OutputDirs.under(results)
        self.artefacts: list[Artefact] = [artefacts.REGISTRY.get(name)() for name in CHOSEN]
        frames = []
        for artefact in self.artefacts:
            files = build(artefact, records, printed_rows(artefact), self.dirs)
            frames.append(comparison.read(files["comparison"]))
        self.comparison = pd.concat([frame for frame in frames if len(frame)], ignore_index=True)

    def report(self, *, labels: dict[str, str] | None = None, **provenance: str) -> str:
        path = self.results / "report" / "index.md"
        write_report(
            path, artefacts=self.artefacts, dirs=self.dirs, comparison=self.comparison,
            data_labels={"adult": "synthetic"} if labels is None else labels,
            provenance={"seed": "7", **provenance}, timings=self.results / "run" / "timings",
        )  # fmt: skip
        return path.read_text()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("results"), made_up_records.everything())


def test_labels_and_counts_stand_first(run: Run) -> None:
    lines = [line for line in run.report().splitlines() if line]
    assert lines[0] == "# Report"
    assert lines[1] == "Data: adult **synthetic**."
    cells = cell_verdicts(run.comparison)
    assert lines[2].startswith(f"{len(cells)} printed numbers: ")
    counts = {word: int(count) for count, word in re.findall(r"(\d+) ([a-z ]+?)[,.]", lines[2].split(":")[1])}
    assert sum(counts.values()) == len(cells)
    assert counts["not compared"] == (cells["verdict"] == "not_compared").sum()
    assert "come from a stand-in, not from the real data" in lines[3]


def test_real_data_needs_no_warning(run: Run) -> None:
    text = run.report(labels={"adult": "real"})
    assert "stand-in" not in text
    assert "synthetic data" not in text


def test_sections_made_from_a_stand_in_say_so(run: Run) -> None:
    text = run.report()
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n### must/")[1:]}
    assert "**synthetic data**" in sections["table8"]
    assert "**synthetic data**" in sections["figureS4"]
    assert "**synthetic data**" not in sections["table6"]


def test_links_lead_to_files(run: Run) -> None:
    text = run.report()
    here = run.results / "report"
    targets = re.findall(r"\]\(([^)#]+)\)", text)
    assert "../figures/must/figureS4.png" in targets
    assert all((here / target).resolve().exists() for target in targets)
    anchors = set(re.findall(r'<a id="([^"]+)">', text))
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors


def test_clock_times_are_only_linked(run: Run) -> None:
    text = run.report()
    assert "microseconds" not in text
    assert "../run/timings/tables/must/table10.md" in text
    assert text.rstrip().endswith("Clock times of this run: [timings](../run/timings).")


def test_every_finding_is_listed_with_its_erratum(run: Run) -> None:
    text = run.report()
    cells = cell_verdicts(run.comparison)
    bad = cells[cells["verdict"].isin(["differs", "fails"])]
    assert len(bad) > 0
    part = text.split("### Printed numbers that differ")[1].split("### Printed numbers that only")[0]
    assert part.count("\n| must/") == len(bad)
    assert "| E3 |" in part


def test_numbers_of_the_takeaways_come_from_the_tables(run: Run) -> None:
    cells = read_cells(run.dirs.files(run.artefacts[0])["csv"])
    tables = Tables({"table6": cells})
    where = {"epsilon_amplified": "0.001", "scheme": "must_ow"}
    value = tables.number("table6", "rmse_mean", "consistent", **where)
    error = tables.number("table6", "rmse_mean", "consistent_standard_error", **where)
    assert f"MUST.OW {value:.4g} ± {error:.2g}" in run.report()


def test_takeaways_leave_out_what_a_run_lacks(run: Run) -> None:
    assert REGISTRY.get("must") is MustTakeaways
    assert MustTakeaways().sentences(Tables({})) == []
    (only,) = MustTakeaways().sentences(Tables({"table9": _law_means()}))
    assert only == (
        "**Fewer gradients.** In the sizes of experiment 3 a subset drawn by MUST.WW has 225.0 distinct records on "
        "average where WOR has 300: 25 % fewer gradients to evaluate."
    )


def test_composed_privacy_is_judged_by_its_brackets() -> None:
    def sentence(upper: float) -> str:
        rows = []
        for scheme, noise, low, high in (
            ("poisson", 2.6, 1e-5, upper), ("wor", 2.6, 1e-3, 2e-3), ("wr", 2.6, 1e-3, 2e-3),
            ("must_ow", 2.1, 0.4, 0.5), ("must_ww", 2.0, 0.4, 0.5),
        ):  # fmt: skip
            rows += [(scheme, "sigma_times_m", noise, np.nan), (scheme, "delta_c_lower", np.nan, low),
                     (scheme, "delta_c_upper", np.nan, high)]  # fmt: skip
        cells = pd.DataFrame(rows, columns=["scheme", "column", "stated", "consistent"])
        (text,) = MustTakeaways().sentences(Tables({"table8": cells}))
        return text

    assert "MUST.WW adds 23 % less noise than Poisson" in sentence(1e-4)
    assert "Even by that measure MUST.WW pays for the smaller noise with privacy." in sentence(1e-4)
    assert "The brackets of MUST.WW and Poisson do not separate the two." in sentence(0.45)


def test_what_is_proved_stands_with_what_is_not() -> None:
    rows = [
        (scheme, column, value)
        for scheme, low, high in (
            ("poisson", 0.377, 1.0), ("wor", 0.369, 0.571), ("wr", 0.39, 0.58), ("must_ow", 0.9, 0.95),
            ("must_ww", 0.9, 0.96),
        )
        for column, value in (("delta_c_lower", low), ("delta_c_upper", high))
    ]  # fmt: skip
    cells = pd.DataFrame(rows, columns=["scheme", "column", "rigorous"])
    (text,) = MustTakeaways().sentences(Tables({"table8": cells}))
    assert "Poisson at least 0.37 (nothing is proved: its sums are divided by the realised size)" in text
    assert "WOR 0.36 to 0.58," in text  # .369 to .571, each rounded to its safe side
    assert "No guarantee below the first numbers can hold" in text


def test_noise_is_compared_at_equal_proved_privacy() -> None:
    rows = [
        (target, scheme, "substitute", "noise_over_wor", ratio)
        for target, scheme, ratio in (("1", "must_ow", 1.4), ("8", "must_ow", 2.9), ("1", "must_ww", 1.7))
    ]
    cells = pd.DataFrame(rows, columns=["target_epsilon", "scheme", "adjacency", "column", "rigorous"])
    (text,) = MustTakeaways().sentences(Tables({"noise_at_equal_privacy": cells}))
    assert "that of MUST.OW is 1.4 to 2.9 times and that of MUST.WW is 1.7 to 1.7 times that of WOR" in text


def test_look_up_needs_exactly_one_cell() -> None:
    tables = Tables({"table9": _law_means()})
    assert tables.number("table9", "law_mean", "stated", experiment="3", scheme="wor") == 300
    assert np.isnan(tables.number("table9", "law_mean", "stated", experiment="3"))
    assert np.isnan(tables.number("table9", "law_mean", "rigorous", experiment="3", scheme="wor"))
    assert np.isnan(tables.number("table9", "law_mean", "stated", experiment="3", scheme="wor", b="1"))
    assert len(tables.rows("table9", "law_mean", experiment="3", scheme="*")) == 2
    assert tables.rows("table1", "law_mean").empty


def test_same_input_same_bytes(run: Run) -> None:
    assert run.report() == run.report()


def test_remarks_stand_at_the_top(run: Run) -> None:
    path = run.results / "report" / "remarks.md"
    write_report(path, artefacts=[], dirs=run.dirs, comparison=run.comparison, data_labels={}, provenance={},
                 remarks=["A run of | reduced size."])
    head = path.read_text().split("## What to take")[0]
    assert "**A run of \\| reduced size.**" in head


def test_hostile_provenance_and_notes_are_escaped(run: Run) -> None:
    text = run.report(versions="a|b\n# head <script>")
    assert "| versions | a\\|b \\# head \\<script\\> |" in text
    before = run.comparison
    try:
        run.comparison = before.assign(note="x|y\n## z")
        assert "\n## z" not in run.report()
    finally:
        run.comparison = before


def test_a_missing_file_is_named(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "report" / "index.md"
    with pytest.raises(DataError, match=r"the report needs every .*, got no .*; build"):
        write_report(output, artefacts=run.artefacts, dirs=OutputDirs.under(tmp_path), comparison=run.comparison,
                     data_labels={}, provenance={})
    assert not output.exists()


def test_a_table_without_cells_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table8.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="must be a table of cells, got the columns a, b; build it again"):
        read_cells(path)


def test_an_empty_run_says_so(tmp_path: Path) -> None:
    output = tmp_path / "index.md"
    empty = pd.DataFrame(columns=list(comparison.COLUMNS))
    write_report(output, artefacts=[], dirs=OutputDirs.under(tmp_path), comparison=empty, data_labels={}, provenance={})
    text = output.read_text()
    assert "Data: simulated only." in text
    assert "0 printed numbers: none." in text
    assert "This run is too small to say anything." in text


def _law_means() -> pd.DataFrame:
    return pd.DataFrame({
        "experiment": "3", "scheme": ["wor", "must_ww"], "column": "law_mean", "printed": "", "stated": [300.0, 225.0],
        "verdict": "", "erratum": "", "note": "",
    })  # fmt: skip
