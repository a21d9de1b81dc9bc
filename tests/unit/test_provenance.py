"""Code digests: a change of one file reruns what imports it, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import dpsub
from dpsub.reproduce import experiments, provenance
from dpsub.reproduce.papers import of_module

FILES = {
    "__init__": "",
    "registry": "class Registry: pass",
    "samplers/__init__": "from toy.registry import Registry\nREGISTRY = Registry('toy.samplers', "
    "object, 'sampler')",
    "samplers/base": "",
    "samplers/wor": "from toy.samplers.base import *",
    "samplers/wr": "from . import base",
    "mechanism": "def release():\n    from toy import deep",
    "deep": "",
    "typed": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import toy.deep",
    "experiments/__init__": "from toy.registry import Registry\nR = Registry('toy.experiments', "
    "object, 'experiment')",
    "experiments/counts": "from toy import samplers",
    "experiments/noise": "import toy.mechanism",
    "experiments/direct": "from toy.samplers import wr",
}
Digest = Callable[..., str]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a package named toy, to change."""
    for name, text in FILES.items():
        path = tmp_path / "toy" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield tmp_path / "toy"
    sys.modules.pop("toy", None)
    forget()


def forget() -> None:
    p = provenance
    for function in (p.closure, p._graph, p._source, p._registers_itself, p._code):
        function.cache_clear()


def digests() -> dict[str, str]:
    forget()
    return {
        name: provenance.digest(f"toy.experiments.{name}") for name in ("counts", "noise", "direct")
    }


@pytest.mark.parametrize(
    ("changed", "rerun"),
    [
        ("samplers/wor", {"counts"}),  # found by discovery
        ("samplers/wr", {"counts", "direct"}),
        ("samplers/base", {"counts", "direct"}),
        ("mechanism", {"noise"}),
        ("deep", {"noise"}),  # imported inside a function
        ("experiments/noise", {"noise"}),  # members of a registry do not depend on each other
        ("experiments/__init__", {"counts", "noise", "direct"}),
        ("registry", {"counts", "noise", "direct"}),
        ("typed", set()),
    ],
)
def test_a_changed_file_reruns_what_uses_it(changed: str, rerun: set[str], toy: Path) -> None:
    before = digests()
    path = toy / f"{changed}.py"
    path.write_text(f"{path.read_text(encoding='utf-8')}\nADDED = 1\n", encoding="utf-8")
    after = digests()
    assert {name for name in before if before[name] != after[name]} == rerun


def test_a_new_sampler_reruns_what_lists_samplers(toy: Path) -> None:
    before = digests()
    (toy / "samplers/poisson.py").write_text("", encoding="utf-8")
    after = digests()
    assert {name for name in before if before[name] != after[name]} == {"counts"}


def test_comments_and_docstrings_rerun_nothing(toy: Path) -> None:
    before = digests()
    (toy / "deep.py").write_text('"""What it is."""\n\n# why\n', encoding="utf-8")
    assert digests() == before


def test_imports_for_type_checkers_do_not_count(toy: Path) -> None:
    assert provenance.closure("toy.typed") == ("toy", "toy.typed")


def test_scripts_count_with_their_content(toy: Path) -> None:
    script = toy / "job.py"
    script.write_text("x = 1\n", encoding="utf-8")
    first = provenance.digest("toy.deep", files=[script])
    script.write_text("x = 2\n", encoding="utf-8")
    forget()
    assert provenance.digest("toy.deep", files=[script]) != first


def test_an_unknown_module_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"no module named 'dpsub\.nothing'"):
        provenance.closure("dpsub.nothing")


def test_experiments_depend_on_no_other_paper_and_on_no_table() -> None:
    for kind in experiments.REGISTRY.members().values():
        closure = provenance.closure(kind.__module__)
        assert {of_module(module) for module in closure} <= {"", kind.paper}
        assert "dpsub.reproduce.artefacts" not in closure


def test_a_change_reruns_the_experiments_that_use_it_and_no_other_papers(tmp_path: Path) -> None:
    """In a copy of the package there is one experiment each of two papers."""
    source = tmp_path / "dpsub"
    shutil.copytree(
        Path(dpsub.__file__).parent,
        source,
        ignore=shutil.ignore_patterns("__pycache__", "published"),
    )
    modules = sorted(member.__module__ for member in experiments.REGISTRY.members().values())
    one, other = (
        modules[0],
        next(name for name in modules if name.split(".")[:3] != modules[0].split(".")[:3]),
    )
    code = (
        "import sys; from dpsub.reproduce.provenance import digest;"
        "print(*(digest(name, 'dpsub.reproduce.records') for name in sys.argv[1:]))"
    )

    def changed_by(module: str, text: str) -> list[bool]:
        path = source.parent.joinpath(*module.split(".")).with_suffix(".py")
        before = path.read_text(encoding="utf-8")
        path.write_text(before + text, encoding="utf-8")
        found = now()
        path.write_text(before, encoding="utf-8")
        return [a != b for a, b in zip(found, first, strict=True)]

    def now() -> list[str]:
        return subprocess.run(
            [sys.executable, "-c", code, one, other],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()

    first = now()
    assert first == [provenance.digest(name, "dpsub.reproduce.records") for name in (one, other)]
    assert changed_by(one, "\nADDED = 1\n") == [True, False]
    assert changed_by(other, "\nADDED = 1\n") == [False, True]
    assert changed_by(one, "\n# a comment\n") == [False, False]
    assert changed_by("dpsub.reproduce.records", "\nADDED = 1\n") == [True, True]


def test_versions_name_what_numbers_pass_through() -> None:
    assert {"python", "dpsub", "numpy", "scipy", "pandas", "pyarrow"} <= set(provenance.versions())


def test_the_date_is_that_of_the_commit(tmp_path: Path) -> None:
    assert provenance.date(tmp_path) == ""
    commands = (
        ("init", "--quiet"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-mx"),
    )
    for command in commands:
        subprocess.run(
            ["git", *command],
            cwd=tmp_path,
            env={**os.environ, "GIT_COMMITTER_DATE": "2026-11-23T12:00:00Z"},
            check=True,
        )
    assert provenance.date(tmp_path) == "2026-11-23"


def test_memory_is_a_programs_own_and_not_what_its_parent_held() -> None:
    held = np.ones(2**26)  # 512 MiB, which ru_maxrss hands down to what is started
    code = "import dpsub.reproduce.provenance as provenance; print(provenance.peak_memory())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 5 < int(done.stdout) < held.nbytes / 2**21
    assert provenance.peak_memory() >= held.nbytes / 2**20
