"""Print the answers to questions of all commands, as one line of JSON: each its text, its JSON and
the claims of its certificate. `test_same_twice` compares runs.

    python same_questions.py ORDER CLOCK     ORDER: forwards or backwards; CLOCK: true or nonsense
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

EFFORT = "--effort 0.1"
TARGET = "--delta 1e-5"
ONCE = f"--steps 5 {TARGET}"
WOR = "wor --n 1000 --m 20 --noise-multiplier 2 --steps 100"
LINES = [
    f"account poisson --rate 0.02 --noise-multiplier 1 --steps 500 {TARGET}",
    "account poisson --rate 0.02 --noise-multiplier 1 --steps 500 --epsilon 1,2",
    f"account poisson --rate 0.1 --noise-multiplier 1 --steps 20 {TARGET} --mechanism laplace",
    f"account poisson --rate 0.02 --noise-multiplier 1 --steps 50 {TARGET} --group 3",
    f"account {WOR} {TARGET}",
    f"account {WOR} {TARGET} --adjacency zero_out",
    f"account {WOR} {TARGET} --adjacency add_remove",
    f"account {WOR} {TARGET} --quick",
    f"account {WOR} --epsilon 0.5",
    f"account wr --n 1000 --m 20 --noise-multiplier 2 --steps 100 {TARGET}",
    f"account must_ow --n 1000 --b 50 --m 20 --noise-multiplier 2 --steps 100 {TARGET}",
    f"account must_ww --n 1000 --b 50 --m 20 --noise-multiplier 2 --steps 100 {TARGET}",
    f"account multistage --n 1000 --stages wr:200,poisson:0.1 --noise-multiplier 2 {ONCE}",
    f"account shuffle --n 60000 --m 60 --noise-multiplier 4 --epochs 10 {TARGET}",
    f"account shuffle --n 1000 --m 1 --noise-multiplier 4 --epochs 1 {TARGET} --adjacency zero_out",
    f"account random_allocation --t 100 --k 1 --noise-multiplier 1 --epochs 3 {TARGET}",
    f"account random_allocation --t 60 --k 3 --noise-multiplier 1 {TARGET} --epochs 1 "
    "--adjacency zero_out",
    f"account deterministic --n 600 --m 20 --noise-multiplier 2 --epochs 5 {TARGET}",
    f"account cyclic_poisson --rate 0.2 --cycle 5 --noise-multiplier 1 --epochs 4 {TARGET}",
    f"account truncated_poisson --n 1000 --rate 0.02 --max-batch 30 --noise-multiplier 1 {ONCE}",
    f"check {WOR} {TARGET} --claimed-epsilon 0.3",
    "check poisson --rate 0.02 --noise-multiplier 1 --steps 500 --delta 1e-5 --claimed-epsilon 2.3",
    f"curve {WOR} --epsilon 0,0.5,1",
    "curve poisson --rate 0.02 --noise-multiplier 1 --steps 50 --epsilon 0,1",
    f"calibrate poisson --rate 0.02 --steps 500 --epsilon 2 {TARGET}",
    f"calibrate wor --n 1000 --m 20 --steps 100 --epsilon 1 {TARGET}",
    f"calibrate poisson --rate 0.02 --noise-multiplier 1 --solve steps --epsilon 2 {TARGET}",
    f"recommend --n 10000 --batch-size 100 --epochs 2 --epsilon 2 {TARGET} --adjacency zero_out",
    f"recommend --n 10000 --batch-size 100 --epochs 2 --epsilon 2 {TARGET}",
    f"select poisson --rate 0.02 --noise-multiplier 1 --steps 50 --runs-mean 5 {TARGET}",
    "audit wor --n 20 --m 4 --noise-multiplier 1 --steps 3 --epsilon 0.5 --draws 200",
    f"brdp --sensitivity 1 --bound 1 --epsilon 1 {TARGET} --steps 3",
    "law must_ww --n 1000 --b 50 --m 20",
]
"""Command lines, each asked for a text and for JSON."""


def of_line(line: str) -> Any:
    """Return both forms of an answer on the command line."""
    from dpsub.cli import main

    effort = [] if line.startswith("law") else EFFORT.split()  # a law is no search
    shown = []
    for form in ("--explain", "--json"):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                status = main([*line.split(), *effort, form])
            shown.append([status, out.getvalue()])
    return shown


def ledger_of_decaying_noise() -> Any:
    import dpsub

    ledger = dpsub.Ledger()
    for step in range(12):
        noise = 1.5 - 0.05 * step
        ledger = ledger.add(dpsub.Poisson(0.05), noise_multiplier=noise, steps=20)
    found = ledger.account(delta=1e-5, effort=0.1, quick=False)
    left = ledger.steps_left(
        dpsub.Poisson(0.05), noise_multiplier=1, epsilon=9, delta=1e-5, effort=0.1
    )
    return [found.lower, found.upper, str(found), left]


def opacus() -> Any:
    from dpsub.opacus import OpacusAccountant

    accountant = OpacusAccountant()
    for step in range(40):
        accountant.step(noise_multiplier=1 + step % 4 / 4, sample_rate=0.02)
    return accountant.get_epsilon(delta=1e-5)


def events() -> Any:
    import dpsub

    gaussian = {"class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
    sampled = {
        "class_name": "PoissonSampledDpEvent",
        "sampling_probability": 0.01,
        "event": gaussian,
    }
    composed = {"class_name": "SelfComposedDpEvent", "event": sampled, "count": 300}
    found = dpsub.ledger_of(composed).account(delta=1e-6, effort=0.1, quick=False)
    return [found.lower, found.upper]


def certificate() -> Any:
    import dpsub

    asked: dict[str, Any] = {"noise_multiplier": 2.0, "steps": 50, "delta": 1e-5}
    found = dpsub.account(dpsub.Wor(20), 1000, **asked, effort=0.1, quick=False)
    return found.certificate()


def statement() -> Any:
    import dpsub

    asked: dict[str, Any] = {"noise_multiplier": 2.0, "epochs": 2, "delta": 1e-5}
    found = dpsub.account(dpsub.Shuffle(10), 100, **asked, effort=0.1, quick=False)
    return str(found.statement())


PIECES: dict[str, Callable[[], Any]] = {
    "a ledger": ledger_of_decaying_noise,
    "Opacus": opacus,
    "events": events,
    "a certificate": certificate,
    "a statement": statement,
}
"""Questions in Python."""


def answers(order: str, every: int) -> dict[str, Any]:
    """Return the answers to all questions, or to every second, third and so on, in the order of the
    questions however they were asked."""
    asked: dict[str, Callable[[], Any]] = {line: lambda line=line: of_line(line) for line in LINES}
    asked |= PIECES
    names = list(asked)[::every]
    found = {name: asked[name]() for name in (names if order == "forwards" else names[::-1])}
    return {name: found[name] for name in names}


def nonsense() -> Callable[[], float]:
    """Return a clock that runs backwards, in leaps."""
    ticks = itertools.count()
    return lambda: 1e9 - 1e4 * next(ticks)


if __name__ == "__main__":
    if sys.argv[2] == "nonsense":
        time.monotonic = nonsense()
    sys.stdout.write(json.dumps(answers(sys.argv[1], int(sys.argv[3])), default=str))
