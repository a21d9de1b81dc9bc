"""Files that forges, archives and the catalogue of workflows read: they parse, call what exists,
and agree with the package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documentation.console import ROOT

FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
FIELDS = {"checkboxes", "dropdown", "input", "markdown", "textarea"}
"""Types of the parts of an issue form."""


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def read(name: str) -> Any:
    return yaml.safe_load(text_of(name))


PROJECT = tomllib.loads(text_of("pyproject.toml"))
CITATION = read("CITATION.cff")
WORKFLOWS = {
    path.stem: read(str(path.relative_to(ROOT)))
    for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
}
JOBS = {name: job for workflow in WORKFLOWS.values() for name, job in workflow["jobs"].items()}
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", text_of("Makefile"), flags=re.MULTILINE))


def steps(job: str) -> list[str]:
    """Return the commands of a job of the forge."""
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def called(text: str) -> list[str]:
    """Return the targets of make that a text calls, outside comments."""
    commands = re.sub(r"#.*", "", text)
    return re.findall(r"\bmake ([a-z][a-z-]*)", commands)


# ------------------------------------------------------------------------------------- the forge


def test_the_forge_runs_every_command_of_ci() -> None:
    on_forge = {target for job in JOBS for step in steps(job) for target in called(step)}
    assert {"lint", "test", "test-rest", "docs", "smoke"} == set(called(text_of(".ci/run")))
    assert set(called(text_of(".ci/run"))) <= on_forge


def test_the_forge_has_what_ci_installs_for_the_remaining_tests() -> None:
    assert re.findall(r"^\.ci/install$", text_of(".ci/run"), re.M)
    (job,) = (job for job in JOBS if "make test-rest" in steps(job))
    assert steps(job)[-2:] == [".ci/install", "make test-rest"]
    # only root can install and start a Slurm; runners are not root, but in a container of their own
    assert JOBS[job]["container"]["image"].startswith("python:")
    assert "--privileged" in JOBS[job]["container"]["options"]


@pytest.mark.parametrize("job", sorted(JOBS))
def test_a_job_has_an_end_and_keeps_what_it_downloads(job: str) -> None:
    assert 0 < JOBS[job]["timeout-minutes"] <= 90
    used = {
        step["uses"].partition("@")[0]: step["with"]
        for step in JOBS[job]["steps"]
        if "with" in step
    }
    python, kept = used.get("actions/setup-python", {}), used.get("actions/cache", {})
    assert python.get("cache") == "pip" or kept.get("path") == "~/.cache/pip"


def test_the_image_starts_from_any_folder() -> None:
    (start,) = re.findall(r"^ENTRYPOINT (.*)$", text_of("Containerfile"), re.MULTILINE)
    (top,) = re.findall(r"^WORKDIR (.*)$", text_of("Containerfile"), re.MULTILINE)
    assert json.loads(start)[0] == f"{top}/.venv/bin/dpsub"


@pytest.mark.parametrize("job", sorted(JOBS))
def test_a_job_calls_what_exists(job: str) -> None:
    assert JOBS[job]["runs-on"] == "ubuntu-latest" and steps(job)
    for command in steps(job):
        assert set(called(command)) <= TARGETS
        for path in re.findall(r"\b(?:tests|workflow)/[\w./-]+", command):
            assert (ROOT / path).exists()


def test_other_packages_are_judged_each_week() -> None:
    (job,) = WORKFLOWS["packages"]["jobs"]
    # YAML reads the key `on` as true
    ((schedule,),) = [list(WORKFLOWS["packages"][True]["schedule"])]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", schedule["cron"])
    assert "workflow/scripts/judge_packages.py" in steps(job)[-1]
    assert len(JOBS) == sum(len(workflow["jobs"]) for workflow in WORKFLOWS.values())


def test_tests_run_on_every_python_that_is_named() -> None:
    named = {
        found
        for line in PROJECT["project"]["classifiers"]
        if (found := line.removeprefix("Programming Language :: Python :: ")) != line
        and "." in found
    }
    pythons = set(JOBS["tests"]["strategy"]["matrix"]["python"])
    assert pythons == named
    lowest = min(named, key=lambda version: int(version.partition(".")[2]))
    assert PROJECT["project"]["requires-python"] == f">={lowest}"
    others = JOBS["dependencies"]["strategy"]["matrix"]["include"]
    assert {"python": lowest, "age": "oldest"} in others
    assert {case["age"] for case in others} == {"oldest", "newest"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_has_its_fields(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.name == "config.yml":
        assert set(form) <= {"blank_issues_enabled", "contact_links"}
        return
    assert {"name", "description", "body"} <= set(form) <= {"name", "description", "labels", "body"}
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert all(part["type"] in FIELDS and part["attributes"]["label"] for part in fields)
    names = [part["id"] for part in fields]
    assert len(set(names)) == len(names)
    assert any(part.get("validations", {}).get("required") for part in fields)


def test_pages_name_the_forms_and_targets_that_exist() -> None:
    names = {yaml.safe_load(path.read_text(encoding="utf-8")).get("name") for path in FORMS}
    assert {"A number that I doubt", "A scheme that is missing", "A paper to judge"} <= names
    assert '"a number that I doubt"' in text_of("SECURITY.md")
    for page in ("CONTRIBUTING.md", "SECURITY.md"):
        commands = re.findall(r"^make [a-z-]+|`make [a-z-]+", text_of(page), flags=re.MULTILINE)
        assert {command.split()[1] for command in commands} <= TARGETS
        assert len(text_of(page).splitlines()) < 66, "one page"


# -------------------------------------------------------------------------------------- archives


def first_table(page: str) -> list[str]:
    """Return the lines of the first table of a page."""
    return ("|" + text_of(page).partition("\n|")[2].partition("\n\n")[0]).splitlines()


def papers_of_the_readme() -> list[str]:
    """Return the preprints in the list of papers; one folder may have two."""
    rows = re.findall(r"^\| `\w+` \|.*", text_of("README.md"), flags=re.MULTILINE)
    return [name for row in rows for name in re.findall(r"\[(arXiv:[^]]+)\]", row)]


def test_archives_and_citation_agree() -> None:
    archive = json.loads(text_of(".zenodo.json"))
    assert archive["version"] == CITATION["version"] == PROJECT["project"]["version"]
    assert archive["title"] == CITATION["title"]
    assert archive["keywords"] == CITATION["keywords"] == PROJECT["project"]["keywords"]
    assert archive["license"] == CITATION["license"] == PROJECT["project"]["license"]
    assert [one["name"] for one in archive["creators"]] == [
        one["name"] for one in CITATION["authors"]
    ]
    preprints = {one["notes"] for one in CITATION["references"]}
    assert preprints == set(papers_of_the_readme())
    assert {one["identifier"] for one in archive["related_identifiers"]} == preprints


def test_the_address_of_the_repository_stands_in_one_place() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    assert not [path for path, text in texts.items() if re.search(r"<[^>`|]*repository>", text)]
    for name in ("README.md", "docs/how-to/reproduce.md"):
        assert "is `repository-code` in [CITATION.cff]" in text_of(name)
    assert text_of("CITATION.cff").count("repository-code:") == 1
    # elsewhere it could become another one
    if address := CITATION.get("repository-code"):
        assert not [path for path, text in texts.items() if address in text]


def test_a_deployment_names_the_tag_of_this_version() -> None:
    tag = f"--tag v{PROJECT['project']['version']}"
    assert tag in text_of("docs/how-to/reproduce.md")


def test_the_hosted_site_is_built_as_make_docs_builds_it() -> None:
    hosted = read(".readthedocs.yaml")
    assert hosted["version"] == 2 and hosted["sphinx"]["fail_on_warning"] is True
    assert (ROOT / hosted["sphinx"]["configuration"]).exists()
    assert {"requirements": "requirements.lock"} in hosted["python"]["install"]
    pythons = JOBS["tests"]["strategy"]["matrix"]["python"]
    assert hosted["build"]["tools"]["python"] in pythons


def test_groups_for_work_on_the_package_are_not_published() -> None:
    groups, extras = PROJECT["dependency-groups"], PROJECT["project"]["optional-dependencies"]
    assert {"docs", "test"} <= set(groups) and not set(groups) & set(extras)
    assert {"papers", "cluster", "plot"} <= set(extras)
    assert set(extras["plot"]) <= set(extras["papers"])


def test_the_comparison_names_the_versions_that_are_looked_at() -> None:
    lines = first_table("docs/comparison.md")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len(rows) > 10 and {len(row) for row in rows} == {11} and all(map(all, rows))
    versions = dict(head.rsplit(" ", 1) for head in rows[0][1:])
    assert versions["dpsub"] == PROJECT["project"]["version"]
    pins = dict(re.findall(r"^(\S+)==(\S+)$", text_of("requirements.lock"), flags=re.MULTILINE))
    pinned = set(versions) & set(pins)
    assert pinned == {"autodp", "dp-accounting", "prv-accountant"}
    assert all(versions[name] == pins[name] for name in pinned)


def test_supported_versions_are_those_of_the_project() -> None:
    text = text_of("docs/releasing.md")
    named = re.findall(
        r"^\| (Python|NumPy|SciPy) ([\d.]+) \|.*\| (.+) \|$", text, flags=re.MULTILINE
    )
    pythons = {version for name, version, here in named if name == "Python"}
    jobs = JOBS["dependencies"]["strategy"]["matrix"]["include"]
    run = {*JOBS["tests"]["strategy"]["matrix"]["python"], *(job["python"] for job in jobs)}
    assert pythons == run
    for package in ("NumPy", "SciPy"):
        (oldest,) = (
            version
            for name, version, here in named
            if name == package and here.startswith("the oldest that is supported")
        )
        (wanted,) = (
            item for item in PROJECT["project"]["dependencies"] if item.startswith(package.lower())
        )
        assert wanted.partition(">=")[2].startswith(oldest)


# ------------------------------------------------------------------------------------- the paper


def test_the_paper_has_the_form_of_the_journal() -> None:
    _, head, body = text_of("paper/paper.md").split("---\n", 2)
    facts = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} == set(facts)
    assert facts["title"] == CITATION["title"]
    sections = re.findall(r"^# (.+)$", body, flags=re.MULTILINE)
    required = ["Summary", "Statement of need", "State of the field", "Software design"]
    required += ["Research impact statement", "AI usage disclosure", "Acknowledgements"]
    assert [name for name in sections if name in required] == required
    assert sections[-1] == "References"
    table = [line for line in body.splitlines() if line.startswith("|")]
    words = len(body.split()) - len("\n".join(table).split())
    assert 750 <= words <= 1750, "as the journal counts, without the table"
    entries = re.findall(r"^@\w+\{(\w+),$", text_of("paper/paper.bib"), flags=re.MULTILINE)
    assert sorted(entries) == sorted(set(re.findall(r"@(\w+)", body)))
    (picture,) = re.findall(r"^!\[[^]]+\]\((.+)\)$", body, flags=re.MULTILINE)
    assert (ROOT / "paper" / picture).exists()


def test_the_paper_types_no_result() -> None:
    body = text_of("paper/paper.md").split("---\n", 2)[2]
    assert re.findall(r"\d+", re.sub(r"\[@[^]]*\]", "", body)) == []


NUMBERS = dict(enumerate(["nine", "ten", "eleven", "twelve", "thirteen"], start=9))


def test_the_paper_counts_the_papers_of_the_readme() -> None:
    count = len(papers_of_the_readme())
    body = text_of("paper/paper.md")
    words = re.findall(r"claims\s+of\s+(\w+)\s+papers", body)
    assert words == [NUMBERS[count]] * 2
    (cited,) = re.findall(r"^- Papers as folders of the workflow \[(.+?)\]", body, re.MULTILINE)
    assert len(cited.split(";")) == count


def test_the_table_of_the_paper_is_that_of_the_comparison_in_short() -> None:
    def table(page: str) -> dict[tuple[str, str], str]:
        lines = first_table(page)
        head, _, *rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
        names = [name.split()[0] for name in head[1:]]
        return {
            (row[0], name): cell for row in rows for name, cell in zip(names, row[1:], strict=True)
        }

    special = {
        "from any PLD": "upper",
        "event without accountant": "-",
        "Monte Carlo, experimental": "estimate",
        "upper, (ε, δ) of one step": "one step",
    }

    def short(cell: str) -> str:
        if cell in special:
            return special[cell]
        return "both" if cell.startswith("both bounds") else "upper" if "upper" in cell else cell

    long, brief = table("docs/comparison.md"), table("paper/paper.md")
    assert len(brief) == 9 * 8
    assert brief == {place: short(long[place]) for place in brief}


def test_each_item_of_the_review_is_linked_or_open() -> None:
    rows = re.findall(r"^\| (?!item)([a-z].*?) \| (.*) \|$", text_of("paper/checklist.md"), re.M)
    assert len(rows) == 27
    assert all("](" in where for _, where in rows)
    assert [item for item, where in rows if "**open**" in where] == [
        "repository",
        "contribution and authorship",
        "scope and significance",
        "development timeline",
        "open development",
        "collaborative effort",
        "paper: AI usage disclosure",
        "paper: acknowledgements",
    ]


# ------------------------------------------------------------------- the catalogue of workflows
# Rules of snakemake/snakemake-workflow-catalog: its README and scripts/generate-catalog.py.


def test_the_catalogue_finds_the_workflow() -> None:
    first = text_of("README.md").split("\n\n")[1]
    assert "Snakemake workflow" in first
    assert (ROOT / "workflow/Snakefile").is_file()
    rules = [path for path in (ROOT / "workflow/rules").iterdir() if path.is_file()]
    assert rules and all(path.suffix == ".smk" for path in rules)
    assert len(text_of("config/README.md")) > 500
    assert "config.yaml" in text_of("config/README.md")


def test_the_catalogue_shows_how_to_use_it() -> None:
    (usage,) = read(".snakemake-workflow-catalog.yml").values()
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    deployed = usage["software-stack-deployment"]
    assert set(deployed) == {"conda", "apptainer", "apptainer+conda"}
    # tests/workflow/test_deployment.py does both
    assert "With `--sdm conda` Snakemake needs nothing else" in usage["mandatory-flags"]["desc"]
    assert "dpsub must be installed next to Snakemake" in usage["mandatory-flags"]["desc"]
    assert deployed["apptainer"] is (read("config.yaml")["container"] is not None)
    assert usage["report"] is ("report(" in text_of("workflow/rules/report.smk"))


def test_conda_is_promised_as_every_rule_has_its_environment() -> None:
    deployed = read(".snakemake-workflow-catalog.yml")["usage"]["software-stack-deployment"]
    assert deployed["conda"] is True
    for path in sorted((ROOT / "workflow/rules").glob("*.smk")):
        written = text_of(f"workflow/rules/{path.name}")
        # `use rule` inherits the environment.
        rules = re.findall(r"^ *rule(?: \w+)?:\n((?:.*\n)*?)(?=^\S|\Z)", written, re.MULTILINE)
        for rule in rules:
            assert "../envs/dpsub.yaml" in rule, path.name
    assert (ROOT / "workflow/envs/dpsub.yaml").exists()


def test_rules_are_formatted_as_the_catalogue_checks_it() -> None:
    files = [ROOT / "workflow/Snakefile", *sorted((ROOT / "workflow/rules").glob("*.smk"))]
    command = [str(Path(sys.executable).parent / "snakefmt"), "--check", *map(str, files)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
