"""Each paper can be taken away: its folder is deleted in a copy of the project, and what is left works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpsub.reproduce import experiments
from dpsub.reproduce.papers import of_module, papers

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {key for paper in papers().values() for key in paper.reads}
REMOVABLE = [key for key in papers() if key not in NEEDED]
LEFT_OUT = (
    ".git", ".venv*", ".snakemake", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info", "raw", "interim", "results",
    "results-*", "site", "build",
)  # fmt: skip
PLAN = """
import json, sys
from pathlib import Path
from dpsub.reproduce import settings
from dpsub.reproduce.plan import Plan
plan = Plan(settings.load([Path("config.yaml")], schema=Path("workflow/schemas/config.schema.yaml")))
print(json.dumps([[product.target for product in plan.products], list(plan.experiments)]))
"""


def without(top: Path, key: str) -> Path:
    """Return a copy of the project in which the folder of one paper is missing."""
    ignored = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(ROOT, top, ignore=ignored, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(top / "src/dpsub/papers" / key)
    return top


def overrides(top: Path, key: str, name: str) -> dict[str, Any]:
    """Take the entries of a paper's experiments out of a configuration, which has one for each of them so far."""
    config: dict[str, Any] = yaml.safe_load((top / name).read_text(encoding="utf-8"))
    gone = {one for one, kind in experiments.REGISTRY.members().items() if of_module(kind.__module__) == key}
    config["experiments"] = {one: value for one, value in config["experiments"].items() if one not in gone}
    (top / name).write_text(yaml.safe_dump(config), encoding="utf-8")
    return config


def ran(top: Path, *words: str, patience: float = 300) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=top, env=os.environ | {"PYTHONPATH": str(top / "src")}, timeout=patience,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def test_most_papers_can_go() -> None:
    assert len(REMOVABLE) >= 5


@pytest.mark.parametrize("key", REMOVABLE)
def test_without_a_paper_tests_are_collected_and_the_rest_is_planned(tmp_path: Path, key: str) -> None:
    top = without(tmp_path, key)
    wanted = overrides(top, key, "config.yaml")["experiments"]
    collected = ran(top, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
    assert not re.search(rf"^tests/papers/{key}/", collected, flags=re.MULTILINE)
    assert all(f"tests/papers/{other}/" in collected for other in REMOVABLE if other != key)

    targets, planned = json.loads(ran(top, "-c", PLAN))
    assert planned == sorted(wanted) and len(targets) > 30
    assert not [target for target in targets if target.startswith(f"{key}_")]

    ran(top, "workflow/scripts/tabulate_errata.py")
    document = (top / "docs/deviations.md").read_text(encoding="utf-8")
    chapters = re.findall(r"^## .*\(`(\w+)`\)$", document, flags=re.MULTILINE)
    assert chapters == [paper.key for paper in papers().values() if paper.errata.exists() and paper.key != key]


@pytest.mark.slow
def test_without_a_paper_the_smoke_run_ends_in_a_report(tmp_path: Path) -> None:
    key = REMOVABLE[1]
    top = without(tmp_path, key)
    for name in ("config.yaml", "workflow/smoke.yaml"):
        overrides(top, key, name)
    ran(top, "workflow/scripts/run.py", "--cores", "2", "--config", "workflow/smoke.yaml", patience=1800)
    page = (top / "results-smoke/report/index.html").read_text(encoding="utf-8")
    assert papers()[key].title not in page
    assert all(other.title in page for other in papers().values() if other.key != key)
