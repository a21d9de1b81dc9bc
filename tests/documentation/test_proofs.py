"""Numbers in docs/proofs are those that the commands of its pages print: each command runs, and
every number next to it is found.

Ends are rounded to their side in the text, and to the nearest by some commands: a number may be off
by one unit of its last place.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from decimal import Decimal
from functools import cache

import pytest

from tests.documentation.console import ROOT

PAGES = sorted((ROOT / "docs/proofs").glob("*.md"))
HALVES = [page.read_text(encoding="utf-8").partition("\n## Check\n") for page in PAGES]
TEXT = "\n\n".join(text for text, *_ in HALVES)
CHECKS = "\n".join(checks for *_, checks in HALVES)
PARTS = re.split(r"^\[(C\d+)\] ", CHECKS, flags=re.MULTILINE)
COMMANDS = {
    name: re.findall(
        r"^    (\.venv/bin/.*?(?:\"$(?:\n    .*?)*?^ "
        r"   \"$|$))",
        part,
        re.MULTILINE | re.DOTALL,
    )
    for name, part in zip(PARTS[1::2], PARTS[2::2], strict=True)
}
TESTS = {"C8"}
"""Entries whose numbers are shown by tests, which run anyway."""
ASKED = ".venv/bin/dpsub account"
BATCHES = "--n 10000 --m 200 --noise-multiplier 4 --delta 1e-5 --adjacency substitute"
ALLOCATIONS = (
    ("100", "1", 1, "1e-6"),
    ("100", ".3", 1, "1e-6"),
    ("1000", "1", 10, "1e-5"),
    ("10000", ".5", 10, "1e-12"),
    ("10000", ".3", 100, "1e-6"),
)
MORE = {
    "C9": [
        f"{ASKED} wor {BATCHES} --steps {steps} {options}"
        for steps in (100, 1000)
        for options in ("--quick", "", "--quick --mechanism laplace", "--mechanism laplace")
    ],
    "C19": [
        f"{ASKED} must_ww {sizes} --noise-multiplier 4 --delta 1e-5 "
        f"--adjacency substitute {options}"
        for sizes, options in (
            ("--n 1000 --b 100 --m 50 --steps 1", ""),
            ("--n 1000 --b 100 --m 50 --steps 1", "--quick"),
            ("--n 10000 --b 500 --m 200 --steps 1000", "--quick"),
        )
    ]
    + [
        f"{ASKED} must_ow --b 118 {BATCHES} --steps 1000 {options}"
        for options in ("--effort none", "--quick")
    ],
    "C14": [
        f"{ASKED} {question} --noise-multiplier {s} --delta {delta} "
        "--adjacency zero_out --effort none"
        for t, s, epochs, delta in ALLOCATIONS
        for question in (
            f"random_allocation --t {t} --epochs {epochs}",
            f"poisson --rate {1 / int(t)} --steps {epochs * int(t)}",
            f"deterministic --n {t} --m 1 --epochs {epochs}",
        )
    ],
}
"""Commands for the other lines of a table: the same questions with the options that the text
names."""
ELSEWHERE = {".51662"}
"""Numbers found by quadrature, in tests/unit/test_attacks.py."""
NUMBER = re.compile(r"(?<![\w.^/])(\d*\.\d{3,}|\d+\.\d{2,})(e-?\d+)?(?![\w^])")
MARKS = {
    # some seconds
    "C2": pytest.mark.thorough,
    **dict.fromkeys(
        (
            "C1",
            "C9",
            "C10",
            "C11",
            "C12",
            "C14",
            "C16",
            "C17",
            "C18",
            "C19",
            "C20",
            "C21",
            "C23",
            "C24",
            "C25",
            "C28",
            "C29",
            "C31",
            "C32",
        ),
        pytest.mark.slow,
    ),
}


def passages(name: str) -> list[str]:
    """Return the sentences that name a command, each with the rest of its paragraph after a colon,
    or with a table."""
    blocks, found = TEXT.split("\n\n"), []
    for block, after in zip(blocks, [*blocks[1:], ""], strict=True):
        for sentence in re.split(r"(?<=[.\])])\s+(?=[A-Z*])(?<!\bi\.)", block):
            if f"[{name}]" in sentence:
                found.append(
                    f"{sentence}\n{after}"
                    if sentence.endswith(":") and after.startswith("|")
                    else sentence
                )
    return found


@cache
def printed(name: str) -> list[Decimal]:
    """Return the numbers that the commands print."""
    found: list[str] = []
    for command in (*COMMANDS[name], *MORE.get(name, ())):
        typed = command.replace("\n    ", "\n")
        words = typed.replace(".venv/bin/python", sys.executable)
        words = words.replace(".venv/bin/dpsub", f"{sys.executable} -m dpsub")
        done = subprocess.run(
            ["bash", "-c", words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        found += re.findall(r"(?<![\w.])-?\d*\.?\d+(?:e[+-]?\d+)?%?", done.stdout)
    return [Decimal(text.rstrip("%")) for text in found]


def shows(text: str, number: Decimal) -> bool:
    """Whether a text such as ".2104" or "1.1e-3" shows a number: it is off by at most one unit of
    its last place."""
    wanted = Decimal(text)
    return abs(wanted - number) <= Decimal(1).scaleb(int(wanted.as_tuple().exponent))


def unexplained(name: str) -> list[str]:
    """Return the numbers next to a command's name that it does not print, and that are no parameter
    of it."""
    found = []
    for passage in passages(name):
        names = set(re.findall(r"\[(C\d+)\]", passage)) - TESTS
        asked = {
            Decimal(text)
            for one in names
            for text in re.findall(r"(?<!\w)\d*\.\d+", " ".join(COMMANDS[one]))
        }
        answers = [number for one in names for number in printed(one)]
        texts = ["".join(digits) for digits in NUMBER.findall(passage)]
        unknown = [text for text in texts if Decimal(text) not in asked and text not in ELSEWHERE]
        found += [text for text in unknown if not any(shows(text, one) for one in answers)]
    return found


def test_every_name_has_a_command_and_is_named() -> None:
    named = set(re.findall(r"\[(C\d+)\]", TEXT))
    assert set(COMMANDS) >= named and all(COMMANDS.values())


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=MARKS.get(one, ())) for one in COMMANDS if one not in TESTS],
)
def test_numbers_are_those_that_the_command_prints(name: str) -> None:
    assert unexplained(name) == []


def test_a_wrong_digit_is_found() -> None:
    assert shows(".2104", Decimal("0.21043")) and shows(".2105", Decimal("0.21043"))
    assert not shows(".2106", Decimal("0.21043")) and not shows("1.16e-3", Decimal("1.1431e-3"))


def test_the_index_has_every_theorem_with_its_page() -> None:
    proved = {
        (name, page.stem)
        for page in PAGES
        for name in re.findall(
            r"^\*\*((?:Theorem|Lemma) \d+)\b", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        if name != "Theorem 1" or page.stem == "poisson"  # holds for Laplace noise, too
    }
    index = (ROOT / "docs/proofs/index.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^\| ((?:Theorem|Lemma) \d+) \|.*\| \[(\w+)\]\(\2\.md#", index, re.MULTILINE
    )
    assert len(listed) == len(set(listed)) and set(listed) == proved
