"""The paper that docs/adding.md shows, one folder in a copy of the project: run to verdicts and
report."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from dpsub.reproduce import experiments
from dpsub.reproduce.papers import papers
from tests.few import few
from tests.packaging.scratch import ROOT, copied, ran, tried

PAGE = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
FILES = dict(
    re.findall(
        r"^```\w+\n# "
        r"(src/dpsub/papers/demo/\S+|demo\.yaml)\n(.*?)^```$",
        PAGE,
        flags=re.M | re.S,
    )
)
OTHER = min(papers())
OF_ANOTHER = min(experiments.REGISTRY.names())
RUN = ("-m", "snakemake", "--cores", "2", "--configfile")


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy in which the files of the page stand, and nothing else is changed."""
    place = copied(tmp_path_factory.mktemp("clone"))
    for name, text in FILES.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def results(top: Path) -> Path:
    ran(top, *RUN, "demo.yaml")
    return top / "results-demo"


def test_three_files_and_what_is_printed_are_enough() -> None:
    code = [text for name, text in FILES.items() if name.endswith(".py")]
    assert len(code) == 3 and sum(text.count("\n") for text in code) < 120
    assert len(FILES) == 6


@pytest.mark.slow
def test_every_printed_number_has_its_verdict(results: Path) -> None:
    table = pd.read_csv(results / "comparison.csv")
    assert set(table["paper"]) == {"demo"}
    verdicts = {(row["artefact"], row["row"]): row["verdict"] for row in table.to_dict("records")}
    assert verdicts == {
        ("table1", "rate=0.01; epsilon=0.5"): "reproduced",
        ("table1", "rate=0.01; epsilon=1"): "reproduced",
        ("table1", "rate=0.1; epsilon=0.5"): "reproduced",
        ("table1", "rate=0.1; epsilon=1"): "differs",
        ("claims", "never_worse"): "holds",
        ("claims", "first_rate"): "used",
    }


@pytest.mark.slow
def test_the_figure_is_drawn_and_its_numbers_are_written(results: Path) -> None:
    assert (results / "figures/demo/figure1.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (results / "figures/demo/figure1.png").stat().st_size > 5000
    assert len(pd.read_csv(results / "figures/demo/figure1.csv")) == 6


@pytest.mark.slow
def test_the_report_shows_all_of_it(results: Path) -> None:
    page = "".join(
        path.read_text(encoding="utf-8") for path in sorted((results / "report").glob("*.html"))
    )
    for words in (
        "Doe 2020: what a sample hides",
        "Amplified epsilon of Poisson samples",
        "0.195",
        "0.159",
        "figure1",
        "in 6 of 6 cases",
        "two digits changed places",
    ):
        assert words in page, words


@pytest.mark.slow
def test_its_verdicts_are_accepted_and_its_experiment_is_swept(top: Path, results: Path) -> None:
    scripts = ("--comparison", str(results / "comparison.csv"), "--papers", "src/dpsub/papers")
    ran(top, "workflow/scripts/accept_verdicts.py", *scripts)
    expected = pd.read_csv(top / "src/dpsub/papers/demo/expected_verdicts.csv")
    assert sorted(expected["verdict"]) == [
        "differs",
        "holds",
        "reproduced",
        "reproduced",
        "reproduced",
        "used",
    ]
    (top / "enforced.yaml").write_text(
        FILES["demo.yaml"].replace("report", "enforce"), encoding="utf-8"
    )
    assert "no verdict changed of 6 at published settings" in ran(top, *RUN, "enforced.yaml")
    file = top / "src/dpsub/papers/demo/expected_verdicts.csv"
    file.write_text(
        file.read_text(encoding="utf-8").replace("stated,differs", "stated,reproduced"),
        encoding="utf-8",
    )
    stopped = tried(top, *RUN, "enforced.yaml")
    assert stopped.returncode == 1 and "error: 1 of 6 verdicts changed" in stopped.stdout
    block = "{experiment: demo_hiding, rates: [0.1, 0.2]}"
    (top / "sweep.yaml").write_text(
        f"seed: 1\nresults_dir: swept\nsweep: [{block}]\n", encoding="utf-8"
    )
    assert (
        json.loads(ran(top, "-m", "dpsub", "plan", "sweep.yaml", "--cores", "1", "--json"))["cells"]
        == 4
    )


PLANTED = [
    (
        "experiments.py",
        '"demo_hiding"',
        '"demo_hidden"',
        "unknown experiment 'demo_hiding'; did you mean 'demo_hidden'?",
    ),
    (
        "tables.py",
        '{"epsilon_amplified": "epsilon_amplified"}',
        '{"epsilon_amplified": "epsilon_ampl"}',
        "demo/table1: unknown column of demo_hiding 'epsilon_ampl'; did you mean "
        "'epsilon_amplified'?",
    ),
    (
        "tables.py",
        '"epsilon",\n                "in {n} of',
        '"epsilons",\n                "in {n} of',
        "demo/claims, claim never_worse: unknown column of demo_hiding 'epsilons'; did you mean "
        "'epsilon'?",
    ),
    (
        "tables.py",
        '"demo_hiding.rates.0"',
        '"demo_hiding.rate.0"',
        "demo/claims must name a setting that is there, got 'demo_hiding.rate.0'",
    ),
    (
        "published/claims.csv",
        "never_worse,",
        "never_better,",
        "what demo/claims declares must be printed, got no row never_worse, holds in "
        "demo/published/claims.csv; ",
    ),
    (
        "published/table1.csv",
        "rate,epsilon,column",
        "rate,eps,column",
        "the keys of demo/published/table1.csv must be of rate, epsilon, in that order, got rate, "
        "eps; ",
    ),
    (
        "published/table1.csv",
        "0.1,1,epsilon_amplified,0.195,exact",
        "0.1,1,epsilon_amplified,0.195,exakt",
        "table1.csv, line 5: kind must be one of ",
    ),
    (
        "__init__.py",
        'key="demo"',
        f'key="{OTHER}"',
        f"two papers must not have one key, got {OTHER!r} in papers/",
    ),
    (
        "smoke.yaml",
        "",
        "size: 3\n",
        "unknown configuration key 'size' in papers/demo/smoke.yaml; known: experiments, shared",
    ),
    (
        "smoke.yaml",
        "",
        f"experiments: {{{OF_ANOTHER}: {{}}}}\n",
        f"unknown configuration key 'experiments.{OF_ANOTHER}' in papers/demo/smoke.yaml; ",
    ),
    (
        "smoke.yaml",
        "",
        "experiments: {demo_hiding: {rate: [0.1]}}\n",
        "unknown configuration key 'experiments.demo_hiding.rate'; did you mean 'rates'?",
    ),
]


@pytest.mark.parametrize(("name", "right", "wrong", "said"), few(PLANTED, most=0, more=2))
def test_a_mistake_is_told_in_one_sentence_before_any_work(
    top: Path, name: str, right: str, wrong: str, said: str
) -> None:
    path = top / "src/dpsub/papers/demo" / name
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    assert right in text
    # nothing may be made before the mistake is found
    shutil.rmtree(top / "results-planted", ignore_errors=True)
    config = top / "planted.yaml"
    config.write_text(
        FILES["demo.yaml"].replace("-demo", "-planted") + "size: smoke\n", encoding="utf-8"
    )
    try:
        path.write_text(text.replace(right, wrong) if right else wrong, encoding="utf-8")
        done = tried(top, *RUN, str(config))
    finally:
        path.write_text(text, encoding="utf-8") if text else path.unlink()
    assert done.returncode == 1
    assert said in done.stderr and "Traceback" not in done.stderr
    assert not (top / "results-planted").exists()
