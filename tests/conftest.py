"""Settings of all tests: generated examples are the same in every run, slow machines do not fail by
the clock, and `pytest -n auto` keeps all processors busy."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from dpsub import cli, threads
from dpsub.accounting.questions import question
from dpsub.cli.parsing import Parser

os.environ.update(threads.ONE)
# else each program that a test starts compiles the package anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
settings.register_profile("dpsub", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("dpsub")

# most tests are about the first bound, however much work it takes: tests of later bounds ask
# with quick=False
question.DEFAULT = replace(question.DEFAULT, effort=None, quick=True)
parser_of_commands = cli.parser_of


def _parser_without_budget(command: str) -> Parser:
    parser = parser_of_commands(command)
    if parser.get_default("effort") is not None:
        parser.set_defaults(effort=None)
    return parser


cli.parser_of = _parser_without_budget

_FIRST = (
    "tests/cluster/",
    "tests/workflow/",
    "tests/browser/",
    "tests/packaging/",
    "tests/conformance/test_experiments.py",
    "tests/properties/test_same_twice.py",
)
"""Tests that take longest, or mostly wait for other programs, as do tests of papers in a
browser."""
_BROWSER = "/test_in_browser.py"
_WHOLE_FILES = (
    "tests/browser/",
    "tests/conformance/test_experiments.py",
    "tests/packaging/",
    "tests/papers/",
    "tests/properties/test_same_twice.py",
    "tests/unit/",
    "tests/workflow/",
)
"""Folders whose files share what is expensive to make; another worker would make it again."""


_PAGES = (
    "tests/unit/test_cited.py",
    "tests/unit/test_deviations.py",
    "tests/unit/test_found.py",
    "/report/test_report.py",
)
"""Files that remember in a process what they compute of pages; the last is in the folder of a
paper."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of processors, and two more for the thorough tests: some of their workers
    mostly wait for a cluster or a browser."""
    processors = os.cpu_count() or 1
    return processors if "not thorough" in config.option.markexpr else processors + 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest and end with single tests, so that no worker is left alone at
    the end."""
    items.sort(
        key=lambda item: (
            not (item.nodeid.startswith(_FIRST) or _BROWSER in item.nodeid),
            not item.nodeid.startswith(_WHOLE_FILES),
        )
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Give files or single tests to the next free worker, and all of `tests/cluster` to one: it has
    one Slurm.

    The mark `xdist_group` of pytest-xdist 3.8 has no effect with pytest 9.2, where names of tests
    cannot be changed.
    """
    # pytest-xdist would begin with the files that have most tests, which are not those that last
    config.option.loadscopereorder = False
    return FilesAndTests(config, log)


class FilesAndTests(LoadScopeScheduling):
    """Files that share fixtures as one piece of work, those of the cluster, of the workflow or of a
    paper together, other tests one by one."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/cluster/"):
            return "slurm"
        if nodeid.startswith("tests/workflow/"):
            # they share an undisturbed run
            return "workflow"
        if any(name in nodeid for name in _PAGES):
            return "pages"
        if nodeid.startswith("tests/papers/"):
            return nodeid.rpartition("/")[0]
        return nodeid.partition("::")[0] if nodeid.startswith(_WHOLE_FILES) else nodeid
