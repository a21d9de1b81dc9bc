"""Golden answers of the command line: record what each command says, or check that it still says so.

    python tests/golden/commands.py record    # runs all commands and writes commands.json
    python tests/golden/commands.py check     # runs all again and prints which differ; exit status 1 if any does

An answer is the exit status, the standard error and the standard output: of a command with --json the parsed JSON, its
keys in the order printed, otherwise the lines.  Times are left out.  Numbers may differ by 1e-12 of their size; texts,
lists of keys and everything else must be equal.

Where the command line is changed on purpose, list the change below.  The recorded answers keep the old words, and are
put into the new ones before they are run and compared.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dpsub import threads
from dpsub.cli import main

TARGET = Path(__file__).with_name("commands.json")
RELATIVE = 1e-12  # of numbers

RENAMED_FIELDS: dict[str, str] = {}
"""Keys of JSON, old name to new name; "" for one that is gone."""
RENAMED_OPTIONS: dict[str, str] = {
    "--convention": "--variant",
    "--target-epsilon": "--epsilon",
    "--target-delta": "--delta",
    "--compositions": "--steps",
}
"""Whole words of commands and of what they say in text, such as "--steps" or "--convention paper", old to new; "" for
what is gone."""

RENAMED_VALUES = {("kind", "pair"): "paper"}
"""Words that are values of JSON, with their key, old to new."""

ANSWERS = """
law poisson --rate 0.1
law wr --n 1e3 --m 20
law must_ow --n 1000 --b 50 --m 20
law must_wo --n 100 --b 30 --m 10
law must_ww --n 100 --b 200 --m 10
law multistage --n 100 --stages wor:50,wr:20,poisson:0.5
amplify poisson --rate 0.1 --ratio 0.5 --epsilon 0.3
amplify wor --n 1000 --m 20 --mechanism laplace --ratio 1 --epsilon 0.5
amplify wr --n 1000 --m 20 --ratio 0.5 --epsilon 2
amplify must_wo --n 1000 --b 50 --m 20 --mechanism laplace --ratio 0.25 --epsilon 0.3
amplify must_ww --n 1000 --b 50 --m 20 --ratio 1 --epsilon 1
amplify multistage --n 1000 --stages wor:500,wr:400 --ratio 0.5 --epsilon 1
translate --rate 0.1 --ratio 1 --epsilon 0.1
translate --base substitute --target substitute --rate 0.1 --n 50 --ratio 1 --epsilon 0.5
translate --target substitute --rate 0.1 --mechanism laplace --ratio 1 --epsilon 0.3
translate --sampler wor --base substitute --target substitute --n 1000 --m 100 --ratio 1 --epsilon 0.1
translate --sampler wor --base add_remove --target substitute --n 1000 --m 100 --ratio 1 --epsilon 0.1
translate --sampler wr --base substitute --target substitute --n 1000 --m 100 --mechanism laplace --ratio 1 \
--epsilon 0.1
translate --sampler wr --base substitute --target add_remove --n 10 --m 3 --ratio 1 --epsilon 0.1
account poisson --rate 0.01 --noise-multiplier 1 --steps 500 --delta 1e-5
account poisson --rate 0.01 --noise-multiplier 1 --steps 1 --epsilon 1
account poisson --n 10000 --m 200 --noise-multiplier 4 --steps 1000 --delta 1e-5 --adjacency substitute
account poisson --rate 0.02 --noise-multiplier 2 --steps 5000 --delta 1e-10 --width 0.01
account poisson --rate 0.02 --noise-multiplier 1 --steps 50 --epsilon 0.8 --convention paper
account poisson --rate 0.02 --noise-multiplier 3 --steps 50 --delta 1e-6 --mechanism laplace
account poisson --rate 0.02 --noise-multiplier 3 --steps 50 --epsilon 0.2 --mechanism laplace --adjacency substitute
account wor --n 1000 --m 20 --noise-multiplier 2 --steps 50 --delta 1e-6
account wor --n 1000 --m 20 --noise-multiplier 2 --steps 1 --epsilon 0.8
account wor --n 1000 --m 20 --noise-multiplier 2 --steps 50 --delta 1e-3 --denominator realised
account wor --n 1000 --m 20 --noise-multiplier 2 --steps 50 --delta 1e-6 --mechanism laplace
account wor --n 1000 --m 20 --noise-multiplier 2 --steps 50 --epsilon 0.8 --convention paper
account wr --n 1000 --m 20 --noise-multiplier 2 --steps 50 --delta 1e-6
account wr --n 1000 --m 20 --noise-multiplier 2 --steps 50 --delta 1e-6 --convention paper
account must_ow --n 10000 --b 500 --m 200 --noise-multiplier 4 --steps 1000 --delta 1e-5
account must_ow --n 10000 --b 500 --m 200 --noise-multiplier 4 --steps 1000 --delta 1e-5 --convention paper
account must_ow --n 1000 --b 50 --m 20 --noise-multiplier 2 --steps 50 --epsilon 0.8
account must_wo --n 1000 --b 50 --m 20 --noise-multiplier 2 --steps 10 --delta 1e-8
account must_ww --n 1000 --b 50 --m 20 --noise-multiplier 2 --steps 50 --delta 1e-6
account must_ww --n 1000 --b 50 --m 20 --noise-multiplier 2 --steps 50 --epsilon 0.8 --convention paper
account must_oo --n 1000 --b 50 --m 20 --noise-multiplier 2 --steps 50 --delta 1e-6
account multistage --n 1000 --stages wor:50,wr:20 --noise-multiplier 2 --steps 50 --epsilon 0.8
account multistage --n 1000 --stages wr:200,poisson:0.1 --noise-multiplier 2 --steps 20 --delta 1e-5
account multistage --n 1000 --stages wr:300,wor:100,wr:20 --noise-multiplier 2 --steps 20 --delta 1e-5
calibrate poisson --n 10000 --m 200 --steps 1000 --target-epsilon 1 --target-delta 1e-5 --adjacency substitute
calibrate poisson --rate 0.02 --steps 20 --target-epsilon 2 --target-delta 1e-6 --mechanism laplace
calibrate wor --n 1000 --m 20 --steps 50 --target-epsilon 1 --target-delta 1e-5
calibrate must_ow --n 1000 --b 50 --m 20 --steps 1 --target-epsilon 0.5 --target-delta 1e-8
calibrate multistage --n 1000 --stages wr:200,poisson:0.1 --steps 5 --target-epsilon 1 --target-delta 1e-5
calibrate poisson --solve size --noise-multiplier 2 --steps 50 --target-epsilon 1 --target-delta 1e-5
calibrate must_wo --n 1000 --b 300 --solve size --noise-multiplier 2 --steps 50 --target-epsilon 1 --target-delta 1e-5
calibrate multistage --n 1000 --stages wor:500,poisson:0.5 --solve size --noise-multiplier 2 --steps 50 \
--target-epsilon 1 --target-delta 1e-5
calibrate wor --n 1000 --m 20 --solve steps --noise-multiplier 2 --target-epsilon 1 --target-delta 1e-5
calibrate must_ww --n 1000 --b 50 --m 20 --solve steps --noise-multiplier 10 --target-epsilon 1 --target-delta 1e-5
audit wor --n 4 --m 2 --noise-multiplier 1 --steps 1 --epsilon 0.5 --draws 2000 --seed 3
audit poisson --rate 0.3 --noise-multiplier 2 --steps 50 --epsilon 1 --draws 500
audit must_ow --n 10 --b 4 --m 4 --noise-multiplier 1 --steps 1 --epsilon 1 --draws 20000
audit multistage --n 10 --stages wr:6,poisson:0.5 --noise-multiplier 1 --steps 3 --epsilon 1 --draws 500 \
--confidence 0.9
brdp --sensitivity 1 --bound 1 --epsilon 1 --delta 1e-5
brdp --kernel laplace --sensitivity 1 --bound 1 --epsilon 1 --delta 0.3
brdp --sensitivity 1 --bound 1 --epsilon 3 --delta 1e-5 --compositions 5
brdp --sensitivity 1 --bound 1 --epsilon 1 --delta 1e-5 --scale 4 --rate 0.5 --compositions 20 --adjacency add_remove
brdp --sensitivity 1 --bound 1 --epsilon 1 --delta 1e-5 --scale 4
brdp --sensitivity 1 --bound 100 --epsilon 1 --delta 1e-5 --compositions 2
advise frame.csv --epsilon 1 --rate 0.25
advise frame.csv --epsilon 0.5 --rate 1/10 --value income --upper-limit 100
advise allocated.csv --epsilon 1 --rate 1/4
plan sweep.yaml --cores 2
"""
"""One command a line, all with --json."""

TEXTS = """
account must_ow --n 1000 --b 50 --m 20 --noise-multiplier 2 --steps 50 --delta 1e-6
audit wor --n 4 --m 2 --noise-multiplier 1 --steps 1 --epsilon 0.5 --draws 2000
"""
"""Answers as text."""

ERRORS = """
acount
law worr --n 10 --m 3
law multistage --n 9 --stages poisson:.1,wr:5
amplify must_ww --n 10 --b 11 --m 3 --ratio 1 --epsilon 1
translate --sampler wor --n 10 --m 3 --ratio 1 --epsilon 0.1
account wor --m 3 --noise-multiplier 2 --steps 50 --epsilon 1
account wor --n 3 --m 4 --noise-multiplier 2 --steps 50 --epsilon 1
account wor --n 1000 --m 20 --noise-multiplier 2 --steps -5 --epsilon 1
account wor --n 1000 --m 20 --noise-multiplier 0 --steps 50 --epsilon 1
account wor --n 1000 --m 20 --noise-multipler 2 --steps 50 --epsilon 1
account wor --n 1000 --m 20 --noise-multiplier 2 --steps 50 --delta 1
account wor --n 1000 --m 20 --noise-multiplier 2 --steps 50 --epsilon 1 --adjacency add_remove
account wor --n 1000 --m 20 --noise-multiplier 2 --steps 50 --epsilon 1 --adjacency add_remove --convention paper
account wr --n 9 --m 4 --noise-multiplier 2 --steps 50 --epsilon 1 --mechanism laplace
account poisson --rate 0.1 --noise-multiplier 2 --steps 50 --epsilon 1 --denominator realised
calibrate wor --n 1000 --m 20 --solve size --noise-multiplier 2 --steps 50 --target-epsilon 1 --target-delta 1e-5
calibrate wor --n 5 --solve size --noise-multiplier 2 --steps 50 --target-epsilon 1 --target-delta 1e-5
audit wor --n 4 --m 2 --noise-multiplier 1 --steps 1 --epsilon 0.5 --confidence 1
brdp --sensitivity 1 --bound 1 --epsilon 1 --delta 1e-5 --rate 0.5
advise frame.csv --epsilon 1 --rate 0.25 --value wealth
plan nowhere.yaml --cores 2
"""
"""Commands that are refused."""

COMMANDS = sorted(
    [f"{line} --json" for line in ANSWERS.split("\n") if line]
    + [line for line in f"{TEXTS}{ERRORS}".split("\n") if line]
)

SWEEP = """
seed: 1
results_dir: results
job_minutes: 0.3
memory_mib: 8000
sweep:
  - {experiment: distinct_draws, samplers: &all [poisson, wor, wr, must_oo, must_ow, must_wo, must_ww],
     replicates: 4, n: 1000, m: 50, b: 100, vary: {steps: [100, 400]}}
  - {experiment: distinct_draws, samplers: *all, replicates: 4, n: 2000, m: 50, b: 200, vary: {steps: [100, 400]}}
  - experiment: fair_comparison
    variants: [rigorous]
    replicates: 2
    grid: [{dataset: [linear, adult], samplers: [poisson, wor, "wor:200,wr:100"], m: 100, steps: 20, target_epsilon: 2}]
"""
FILES = {
    "frame.csv": ["stratum,cluster,size,income", *(f"{'ab'[i % 2]},{i % 4},{i + 1},{7 * i % 23}" for i in range(40))],
    "allocated.csv": [
        "stratum,cluster,size,allocation",
        *(f"{'ab'[i % 2]},{i % 4},{i + 1},{5 + 2 * (i % 2)}" for i in range(40)),
    ],
    "sweep.yaml": SWEEP.splitlines(),
}
"""What commands read, in the folder where they run."""


def run(command: str) -> dict[str, Any]:
    """Run a command in this process, in a folder of its own."""
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, lines in FILES.items():
            Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(shlex.split(command))
    text = out.getvalue()
    if text.startswith("{"):
        answer = json.loads(text, object_hook=_untimed)
    else:
        answer = [line for line in text.splitlines() if not line.startswith("  seconds ")]
    return {"status": status, "stderr": err.getvalue(), "answer": answer}


def recorded() -> dict[str, dict[str, Any]]:
    """Return the golden answers, by command, as they were recorded."""
    answers: dict[str, dict[str, Any]] = json.loads(TARGET.read_text(encoding="utf-8"))["answers"]
    return answers


def check(command: str, golden: dict[str, Any]) -> list[str]:
    """Run a command and return the differences between its golden answer and what it says now."""
    answer = golden["answer"]
    answer = _in_new_fields(answer) if isinstance(answer, dict) else [_in_new_words(line) for line in answer]
    expected = {"status": golden["status"], "stderr": _in_new_words(golden["stderr"]), "answer": answer}
    return differences(expected, run(" ".join(_in_new_words(command).split())))


def differences(golden: Any, now: Any, where: str = "") -> list[str]:
    """Return where two answers differ, one line for each place."""
    if isinstance(golden, dict) and isinstance(now, dict) and list(golden) == list(now):
        return [line for key in golden for line in differences(golden[key], now[key], f"{where}.{key}".lstrip("."))]
    if isinstance(golden, list) and isinstance(now, list) and len(golden) == len(now):
        pairs = enumerate(zip(golden, now, strict=True))
        return [line for i, pair in pairs for line in differences(*pair, f"{where}[{i}]")]
    if isinstance(golden, dict) and isinstance(now, dict):
        golden, now, where = list(golden), list(now), f"{where}, keys"
    if {type(golden), type(now)} <= {int, float}:
        same = math.isclose(golden, now, rel_tol=RELATIVE, abs_tol=0.0)
    else:
        same = type(golden) is type(now) and golden == now
    return [] if same else [f"{where}: {golden!r}, now {now!r}"]


def _untimed(found: dict[str, Any]) -> dict[str, Any]:
    return {key: 0 if key == "seconds" else value for key, value in found.items()}


def _in_new_words(text: str) -> str:
    for old, new in RENAMED_OPTIONS.items():
        text = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, text)
    return text


def _in_new_fields(value: Any) -> Any:
    """Rename keys, also where one is the value of another ("solved")."""
    if isinstance(value, dict):
        renamed = ((RENAMED_FIELDS.get(key, key), _in_new_fields(item)) for key, item in value.items())
        return {key: RENAMED_VALUES.get((key, str(item)), item) for key, item in renamed if key}
    if isinstance(value, list):
        return [_in_new_fields(item) for item in value]
    return RENAMED_FIELDS.get(value, value) if isinstance(value, str) else value


def _record() -> int:
    document = {
        "about": "generated by tests/golden/commands.py; do not edit",
        "answers": {command: run(command) for command in COMMANDS},
    }
    TARGET.write_text(f"{json.dumps(document, indent=1, ensure_ascii=False)}\n", encoding="utf-8")
    print(f"{len(COMMANDS)} answers in {TARGET}")
    return 0


def _check() -> int:
    started, golden, different = time.perf_counter(), recorded(), 0
    for command in sorted({*COMMANDS, *golden}):
        known = command in COMMANDS and command in golden
        lines = check(command, golden[command]) if known else ["in only one of commands.py and commands.json"]
        different += bool(lines)
        if lines:
            print("\n  ".join([f"dpsub {command}", *lines]))
    print(f"{different} of {len(COMMANDS)} commands differ, {time.perf_counter() - started:.0f} s")
    return 1 if different else 0


if __name__ == "__main__":
    os.environ.update(threads.ONE)  # numpy is not imported yet
    tasks = {"record": _record, "check": _check}
    if len(sys.argv) != 2 or sys.argv[1] not in tasks:
        sys.exit(f"usage: python {sys.argv[0]} {{{','.join(tasks)}}}")
    sys.exit(tasks[sys.argv[1]]())
