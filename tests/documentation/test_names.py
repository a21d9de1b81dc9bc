"""Everything that pages name is there: files, commands with their options, tests, names of results
and of Python."""

from __future__ import annotations

import importlib.util
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from dpsub.cli import COMMANDS, parser_of
from dpsub.reproduce import artefacts
from dpsub.reproduce.tables import Table
from dpsub.reproduce.verdicts import COLUMNS, VARIANTS
from tests.documentation.console import MADE, ROOT
from tests.documentation.test_pages import PAGES, TEMPLATES, in_clone, name_of
from tests.gone import needs_all_papers

# it names removed files, too
TEXTS = [page for page in (*PAGES, *TEMPLATES) if page.name != "CHANGELOG.md"]
pytestmark = needs_all_papers  # pages name parts of papers
EVERY = pytest.mark.parametrize("page", TEXTS, ids=name_of)
FOLDERS = (
    "src",
    "docs",
    "tests",
    "workflow",
    "data",
    "config",
    "benchmarks",
    "profiles",
    "verifier",
    "paper",
)
OF_RESULTS = {
    "comparison.csv",
    "report/index.html",
    "run/config.yaml",
    "run/environment.json",
    "run/verdicts.txt",
    "records",
    "tables",
    "figures",
    "comparison",
    "run",
    "logs",
    "report",
    "",
}
"""Files and folders of every results folder."""
YOURS = re.compile(r"(my|mine|once|frame|FRAME|demo)\b")
"""Names of a reader's own files in examples."""
OF_OTHERS = {"coming-from.md"}
"""Pages with names from other libraries."""


def code_of(page: Path) -> list[str]:
    """Return the code of a page: the lines of its blocks, and text between backticks, formulas
    excepted."""
    text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\$`[^`]+`\$", "", page.read_text(encoding="utf-8"))
    both = re.MULTILINE | re.DOTALL
    blocks = re.findall(r"^ *```(?!\{|yaml|text|python|toml|json|math)\w*\n(.*?)^ *```", text, both)
    indented = re.findall(r"^ {4}(\.venv/bin/.+)$", text, re.MULTILINE)
    lines = [line for block in blocks for line in re.sub(r"\\\n", " ", block).splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```", "", text, flags=both))
    return [*lines, *indented, *spans]


def words_of(command: str) -> list[str]:
    try:
        return shlex.split(command.removeprefix("$ "), comments=True)
    except ValueError:
        return command.split()


@cache
def words_of_code() -> set[str]:
    """Return the words of all code and data tables of the project, in which a name must be
    found."""
    found = [
        path
        for folder in ("src", "workflow", "tests", "benchmarks", "config", "data")
        for form in ("py", "yaml", "csv", "smk", "j2", "toml")
        for path in sorted((ROOT / folder).rglob(f"*.{form}"))
        if "raw" not in path.parts
        and "interim" not in path.parts
        and path.name != Path(__file__).name
    ]
    tops = [ROOT / name for name in ("config.yaml", "Snakefile", "pyproject.toml", "Makefile")]
    return {
        word
        for path in [*found, *tops]
        for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    }


def unknown_options(command: str, words: list[str]) -> list[str]:
    known = {option for action in parser_of(command)._actions for option in action.option_strings}
    options = [word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)]
    return [option for option in options if option not in known]


def faults_of_a_command(text: str) -> list[str]:
    """Return the names in a line of code that do not exist."""
    words = words_of(text)
    found = []
    for place, word in enumerate(words):
        rest = words[place + 1 :]
        name = word.rpartition("/")[2]
        if name == "dpsub" and place <= 1 and rest and re.fullmatch(r"[a-z_]+", rest[0]):
            asked = rest[1:] if rest[0] == "help" else rest
            found += (
                [*asked[:1]] if asked[0] not in COMMANDS else unknown_options(asked[0], asked[1:])
            )
        if re.fullmatch(r"(workflow/scripts|benchmarks|tests)/\S+\.py", word) and "*" not in word:
            found += faults_of_a_script(ROOT / word, [] if "pytest" in words else rest)
        if word == "-m" and rest and words[place - 1].endswith("python"):
            found += [] if importlib.util.find_spec(rest[0].partition(".")[0]) else [rest[0]]
        if word == "-k" and rest:
            files = [one for one in words if one.startswith("tests/")]
            tests = "".join(
                (ROOT / one).read_text("utf-8") for one in files if (ROOT / one).is_file()
            )
            found += (
                []
                if re.search(
                    rf"^def test_\w*{rest[0]}|^    "
                    rf"def test_\w*{rest[0]}",
                    tests,
                    re.M,
                )
                else [rest[0]]
            )
        if name == "snakemake" and place == 0:
            asked = [one for one in rest if re.fullmatch(r"[a-z]+/\w+|(table|figure)\w+", one)]
            found += [one for one in asked if not is_artefact(one) and not one.startswith("demo/")]
    return found


def faults_of_a_script(script: Path, words: list[str]) -> list[str]:
    """Return a script that does not exist, or its options that do not; words after `--` are another
    program's."""
    if not script.is_file():
        return [script.name]
    own = words[: words.index("--")] if "--" in words else words
    options = [word.partition("=")[0] for word in own if word.startswith("--")]
    text = script.read_text(encoding="utf-8")
    return [option for option in options if f'"{option}"' not in text]


def is_artefact(name: str) -> bool:
    names = artefacts.REGISTRY.names()
    return name in names or name in {one.partition("/")[2] for one in names}


def missing_file(token: str) -> bool:
    """Whether a token names a file or folder that is neither in a clone nor made by a run."""
    if re.search(r"[<>{}$` ]|\.\.\.|mine$", token) or token.endswith("-"):
        return False
    path = token.rstrip("/;").removeprefix("./")  # answers list their theorems with semicolons
    top, _, inside = path.partition("/")
    if re.fullmatch(r"results(-\w+)?", top):
        return not is_result(inside)
    if top in FOLDERS and "/" in token:
        if any(path.startswith(one) for one in ("data/raw", "data/interim", "docs/api")):
            return False  # the page says that it is made
        return not (any(ROOT.glob(path)) if "*" in path else in_clone(ROOT / path))
    if re.fullmatch(r"[\w-]+\.(py|md|yaml|toml|lock|csv|cff|smk)", path) and not YOURS.match(path):
        return not any(in_clone(one) for one in everywhere().get(path, ()))
    return False


@cache
def everywhere() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for top in sorted(ROOT.iterdir()):
        inside = top.rglob("*") if top.is_dir() and not top.name.startswith(MADE) else [top]
        for path in inside:
            found.setdefault(path.name, []).append(path)
    return found


def is_result(inside: str) -> bool:
    """Whether a run makes this file below its results folder."""
    if inside in OF_RESULTS or "*" in inside:
        return True
    made = re.fullmatch(r"(tables|figures)/(\w+)/(\w+)\.(csv|md|tex|pdf|png)", inside)
    if not made:
        return bool(
            re.fullmatch(
                r"(report/\w+\.html|logs/.*|run/.*|records/.*|comparison/\w+/\w+\.csv)", inside
            )
        )
    kind, paper, name, _ = made.groups()
    if f"{paper}/{name}" not in artefacts.REGISTRY.names():
        return False
    return (artefacts.REGISTRY.get(f"{paper}/{name}").kind == "figure") == (kind == "figures")


@EVERY
def test_commands_and_their_options_are_there(page: Path) -> None:
    assert [(text, fault) for text in code_of(page) for fault in faults_of_a_command(text)] == []


@EVERY
def test_files_that_are_named_are_there(page: Path) -> None:
    tokens = [token for text in code_of(page) for token in words_of(text)]
    assert [token for token in tokens if missing_file(token)] == []


@EVERY
def test_python_names_are_there(page: Path) -> None:
    for text in code_of(page):
        for name in re.findall(r"(?<![\w./-])dpsub(?:\.\w+)+", text):
            assert resolves(name), name


def resolves(name: str) -> bool:
    parts = name.split(".")
    for many in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:many]))
        except ImportError:
            continue
        for attribute in parts[many:]:
            if not hasattr(found, attribute) and attribute not in getattr(
                found, "__dataclass_fields__", {}
            ):
                return False
            found = getattr(found, attribute, None)
        return True
    return False


@EVERY
def test_names_with_underscores_are_names_of_the_project(page: Path) -> None:
    """Names with underscores, such as `relative_width`, are columns, claims, settings, variants or
    options."""
    code = [] if page.name in OF_OTHERS else code_of(page)
    names = {text for text in code if re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", text)}
    assert sorted(name for name in names if not is_known(name)) == []


def is_known(name: str) -> bool:
    return name in words_of_code() or name in quantities(None)


@cache
def quantities(identifier: str | None) -> set[str]:
    """Return the names of the quantities of a table, or of all."""
    found: set[str] = set()
    for name in artefacts.REGISTRY.names():
        kind = artefacts.REGISTRY.get(name)
        if issubclass(kind, Table) and identifier in (None, name):
            for part in kind.parts:
                for column in part.columns:
                    found |= {column.replace("{quantity}", each) for each in ("delta", "epsilon")}
    return found


@EVERY
def test_columns_and_rows_of_results_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    place = r"`results/(?:tables/(\w+/\w+)|comparison)\.(?:csv|md)`"
    for what, name, table in re.findall(
        rf"(columns?|rows?)\s+`([^`]+)`\s+(?:of|in)\s+{place}", text
    ):
        known = (
            {*COLUMNS, *VARIANTS}
            if not table
            else (
                quantities(table)
                if what.startswith("row")
                else {*artefacts.REGISTRY.get(table).keys, *COLUMNS, *VARIANTS}
            )
        )
        assert name in known, f"{what} {name} of {table or 'comparison.csv'}"


@EVERY
def test_sections_that_are_named_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name, number in re.findall(
        r"(\w+)\.md\]?(?:\([^)]*\))?,\s+section\s+(\d+(?:\.\d+)?)", text
    ):
        headings = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
        assert re.search(
            r"^#+ "
            rf"{re.escape(number)}[. ]",
            headings,
            re.MULTILINE,
        ), f"{name}.md, section {number}"
    readme = re.findall(
        r"^#+ (.*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(re.findall(r"\(README, \"([^\"]+)\"\)", text)) <= set(readme)


@pytest.mark.parametrize(
    "wrong",
    [
        "dpsub acount wor",
        ".venv/bin/dpsub account wor --noise 4",
        "python workflow/scripts/none.py",
        ".venv/bin/python workflow/scripts/renew_pages.py --reslts results",
        "snakemake --cores 2 none/table88",
        "pytest tests/documentation/test_names.py -k nothing_of_this_name",
    ],
)
def test_a_wrong_command_is_found(wrong: str) -> None:
    assert faults_of_a_command(wrong)


@pytest.mark.parametrize(
    "wrong", ["src/dpsub/none.py", "results/tables/none/table88.csv", "workflow/none/", "none.md"]
)
def test_a_missing_file_is_found(wrong: str) -> None:
    assert missing_file(wrong)


def test_a_wrong_name_is_found() -> None:
    known = min(name for name in quantities(None) if "_" in name)
    assert not is_known(f"{known}_" + "paer") and is_known(known)
    assert not resolves("dpsub.accounting.nothing") and resolves("dpsub.account")
